//go:build soak

package soak_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
)

// The environment of a test that runs once more, in namespaces of its own.
const (
	binVariable   = "REMUDA_SOAK_BIN"   // the directory of the programs
	olderVariable = "REMUDA_SOAK_OLDER" // that of the programs of the version before, where a test needs them
	diskVariable  = "REMUDA_SOAK_DISK"  // where the small disk is to be
)

// cannotMount is the exit code of a process that did not get its namespaces.
const cannotMount = 33

func TestMain(m *testing.M) {
	if dir := os.Getenv(diskVariable); dir != "" {
		if err := enterNamespaces(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(cannotMount)
		}
		os.Exit(m.Run())
	}
	code := m.Run()
	testrun.System.Remove()
	testrun.Older.Remove()
	os.Exit(code)
}

// bin is the directory with the programs under test.
func bin(t testing.TB) string {
	if dir := os.Getenv(binVariable); dir != "" {
		return dir
	}
	return testrun.System.Dir(t)
}

// older is the directory with the programs of the version before.
func older(t testing.TB) string {
	if dir := os.Getenv(olderVariable); dir != "" {
		return dir
	}
	return testrun.Older.Dir(t)
}

// inNamespaces runs the test once more in a process that has a network and mounts of its own, so that nothing it cuts or fills is that of the
// machine. It needs root or a user namespace. It returns once, in the process that has them; in the first one the test is over when that has ended.
// prepare, if any, is done before, in the network of the machine.
func inNamespaces(t *testing.T, prepare func(), test func(disk *disk)) {
	t.Helper()
	if dir := os.Getenv(diskVariable); dir != "" {
		test(&disk{dir: dir})
		return
	}
	if prepare != nil {
		prepare()
	}
	dir := t.TempDir()
	state, disk := filepath.Join(dir, "state"), filepath.Join(dir, "disk")
	for _, dir := range []string{state, disk} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { endProcesses(t, state) })
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=0")
	cmd.Env = append(os.Environ(), binVariable+"="+bin(t), diskVariable+"="+disk, awstest.SharedVariable+"=",
		"_JAVA_OPTIONS=-XX:TieredStopAtLevel=4") // DynamoDB Local is compiled as a program that runs for long, which it does not for other tests
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	runtime.LockOSThread() // the signal comes when the thread ends that started the process
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		t.Fatalf("in namespaces of its own (exit code %d: it needs root, or user namespaces): %v", cannotMount, err)
	}
}

// endProcesses ends the hosts of the test, which outlive every controld.
func endProcesses(t testing.TB, dir string) {
	t.Helper()
	if err := local.EndProcesses(dir); err != nil {
		t.Error(err)
	}
}

// installEmulators installs what the process with a network of its own cannot fetch.
func installEmulators(t *testing.T) {
	t.Helper()
	out, err := exec.Command("../../../scripts/emulators").CombinedOutput()
	if err != nil {
		t.Fatalf("install the emulators: %v\n%s", err, out)
	}
}

// enterNamespaces makes the small disk and loopback of a process that was started with a network and mounts of its own.
func enterNamespaces(dir string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts from others: %w", err)
	}
	if err := syscall.Mount("remuda", dir, "tmpfs", 0, "mode=0700,size="+strconv.Itoa(diskBytes)); err != nil {
		return fmt.Errorf("mount a small disk: %w", err)
	}
	return run("ip", "link", "set", "lo", "up")
}

// run runs a program to its end.
func run(program string, args ...string) error {
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", program, args, err, out)
	}
	return nil
}

// diskBytes is the size of the small disk while it is not full. Ten minutes of events take some hundred MB.
const diskBytes = 4 << 30

// disk is a file system in memory, which can be full at any moment.
type disk struct{ dir string }

func (d *disk) path(name string) string { return filepath.Join(d.dir, name) }

// fill makes the disk as small as what is on it. What is being written at that moment may come in between, so that is tried again.
func (d *disk) fill() error {
	var err error
	for range 100 {
		var s syscall.Statfs_t
		if err := syscall.Statfs(d.dir, &s); err != nil {
			return err
		}
		if err = d.resize((int64(s.Blocks) - int64(s.Bfree)) * s.Bsize); err == nil {
			return nil
		}
	}
	return err
}

// room makes the disk as large as before.
func (d *disk) room() error { return d.resize(diskBytes) }

func (d *disk) resize(bytes int64) error {
	if err := syscall.Mount("remuda", d.dir, "tmpfs", syscall.MS_REMOUNT, "size="+strconv.FormatInt(bytes, 10)); err != nil {
		return fmt.Errorf("make the small disk %d bytes: %w", bytes, err)
	}
	return nil
}

// minutes is how long a test goes on: SOAK_MINUTES, or as many as the test has by itself.
func minutes(t *testing.T, byDefault float64) time.Duration {
	t.Helper()
	n := byDefault
	if text := os.Getenv("SOAK_MINUTES"); text != "" {
		var err error
		if n, err = strconv.ParseFloat(text, 64); err != nil || n <= 0 {
			t.Fatalf("SOAK_MINUTES=%s is no number of minutes", text)
		}
	}
	return time.Duration(n * float64(time.Minute))
}
