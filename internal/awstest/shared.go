package awstest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/safefile"
)

// SharedVariable hands over emulators that several test binaries share, as make test
// does: it is the directory that Start fills. A test that needs an emulator waits for it,
// so tests may begin before the emulators have been installed and started.
const SharedVariable = "REMUDA_TEST_EMULATORS"

// Failed is the file that the caller of Start makes in the directory if the emulators
// did not start. It says why. Tests that wait for an emulator fail then.
const Failed = "failed"

// sharedTimeout bounds the wait for an emulator. An installation takes half a minute.
const sharedTimeout = 10 * time.Minute

// sharedBy is the endpoint of the emulator that was handed over, or else of one that this test binary starts.
func sharedBy(e emulator) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir := sharedDir()
		if dir == "" {
			endpoint, _, err := e.start()
			return endpoint, err
		}
		if _, err := emulators.Root(); err != nil {
			return "", err
		}
		return e.awaitShared(dir)
	})
}

// sharedDir is the directory that was handed over, or "". It is asked for past the os
// package, so that go test does not note the variable: the directory changes from run
// to run and says nothing about a result. Go test notes no file in it, since the
// directory is not in the module.
func sharedDir() string {
	dir, _ := syscall.Getenv(SharedVariable)
	return dir
}

// installedIn is the file in the directory that says where the emulators are installed.
const installedIn = "installed"

// awaitShared returns the endpoint of an emulator that another process starts.
func (e emulator) awaitShared(dir string) (string, error) { return awaitFile(dir, e.name) }

// awaitFile returns the content of a file that another process makes in the directory.
func awaitFile(dir, name string) (string, error) {
	for end := time.Now().Add(sharedTimeout); ; time.Sleep(lookEvery) {
		if reason, err := os.ReadFile(filepath.Join(dir, Failed)); err == nil {
			return "", fmt.Errorf("wait for %s: %s", name, reason)
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			return string(content), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || time.Now().After(end) {
			return "", fmt.Errorf("wait for %s: %w", name, err)
		}
	}
}

// Start starts the emulators for several test binaries. They end with this process. The
// directory hands them over: see SharedVariable.
func Start(dir string) error {
	i, err := installed()
	if err != nil {
		return err
	}
	if err := handOver(dir, installedIn, i.emulators); err != nil {
		return err
	}
	var starting sync.WaitGroup
	all := []emulator{dynamodbLocal, moto}
	errs := make([]error, len(all))
	for i, e := range all {
		starting.Go(func() { errs[i] = e.startShared(dir) })
	}
	starting.Wait()
	return errors.Join(errs...)
}

func (e emulator) startShared(dir string) error {
	endpoint, _, err := e.start()
	if err != nil {
		return err
	}
	return handOver(dir, e.name, endpoint)
}

func handOver(dir, name, content string) error {
	if err := safefile.Replace(filepath.Join(dir, name), []byte(content), 0o600, false); err != nil {
		return fmt.Errorf("hand over %s: %w", name, err)
	}
	return nil
}
