package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"github.com/remuda-ci/remuda/internal/testrun"
)

// What package awstest calls SharedVariable and Failed. This command does not import the
// package, which would make it depend on the code under test.
const (
	emulatorsVariable = "REMUDA_TEST_EMULATORS"
	emulatorsFailed   = "failed"
)

// installer installs the emulators where they are missing.
const installer = "scripts/emulators"

// emulators are what stands in for AWS. They are installed and started beside
// everything else: tests that need one wait for it.
type emulators struct {
	// dir hands them over.
	dir     string
	stop    context.CancelFunc
	running sync.WaitGroup
	err     error // after running
}

// startEmulators begins to install and to start the emulators. If that fails, or if they
// end before end is called, it calls failed.
func startEmulators(ctx context.Context, failed func(error)) (*emulators, error) {
	dir, err := os.MkdirTemp("", "remuda-test-emulators-")
	if err != nil {
		return nil, err
	}
	e := &emulators{dir: dir}
	ctx, e.stop = context.WithCancel(ctx)
	e.running.Go(func() {
		err := e.run(ctx)
		if ctx.Err() != nil { // they were stopped
			return
		}
		if err == nil {
			err = errors.New("they ended")
		}
		e.err = fmt.Errorf("start the emulators: %w", err)
		// If this fails too, the tests that wait are interrupted like all others.
		_ = os.WriteFile(filepath.Join(dir, emulatorsFailed), []byte(e.err.Error()), 0o600)
		failed(e.err)
	})
	return e, nil
}

// run runs the emulators until ctx is done.
func (e *emulators) run(ctx context.Context) error {
	install := exec.CommandContext(ctx, installer)
	install.Stderr = os.Stderr
	install.Cancel = func() error { return install.Process.Signal(os.Interrupt) }
	install.WaitDelay = stopWithin
	if err := install.Run(); err != nil {
		return fmt.Errorf("%s: %w", installer, err)
	}
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"run"}, testrun.BuildFlags, []string{"./internal/awstest/cmd/emulators", e.dir})...)
	cmd.Env = append(os.Environ(), testrun.BuildEnviron...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	// They end when their standard input does, also if this process is killed.
	cmd.Cancel = in.Close
	return cmd.Run()
}

// end stops the emulators.
func (e *emulators) end() {
	e.stop()
	e.running.Wait()
	_ = os.RemoveAll(e.dir) // a leftover in the temporary directory is harmless
}
