package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/local"
)

// smallDisk is a disk that a test may fill up to the last byte. It is a small
// file system in memory, mounted where no other process sees it, for which the
// test runs once more in a process of its own. Where neither root nor a user
// namespace may mount, the size of every file of the system is limited instead:
// then nothing can be written either, in other words (file too large).
type smallDisk struct {
	t *testing.T
	// dir is where the disk is.
	dir string
	// remedyOfStore is what the store says that is to be done.
	remedyOfStore string
	// limited: by the size of files.
	limited bool
}

// The environment of a test that runs once more.
const (
	diskVariable = "REMUDA_E2E_DISK" // diskMounted or diskLimited
	dirVariable  = "REMUDA_E2E_DISK_DIR"
	binVariable  = "REMUDA_E2E_BIN"

	diskMounted = "mounted"
	diskLimited = "limited"
)

// diskSize holds the programs of the runner and little else, in MiB.
const diskSize = 64

// cannotMount is the exit code of a test that got no disk.
const cannotMount = 33

// onSmallDisk runs the test on a disk of its own. It returns once, in the
// process that has it; in the first one it is over when that has ended.
func onSmallDisk(t *testing.T, test func(d *smallDisk)) {
	t.Helper()
	switch dir := os.Getenv(dirVariable); os.Getenv(diskVariable) {
	case diskMounted:
		test(&smallDisk{t: t, dir: dir, remedyOfStore: "free some space"})
		return
	case diskLimited:
		test(&smallDisk{t: t, dir: dir, remedyOfStore: "its disk fails", limited: true})
		return
	}
	dir := t.TempDir()
	for _, how := range namespaces() {
		if how.run(t, dir, diskMounted) {
			return
		}
	}
	t.Log("NO PROCESS MAY MOUNT HERE, neither as root nor in a user namespace: the size of files is limited instead")
	if !(namespace{}).run(t, dir, diskLimited) {
		t.Error("the test could not be run once more")
	}
}

// namespace is a way to a mount that no other process sees.
type namespace struct {
	flags uintptr
}

// namespaces are the ways, the likeliest first. A container's root
// may not mount, and then a user namespace may still be allowed.
func namespaces() []namespace {
	ways := []namespace{{flags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER}}
	if os.Geteuid() == 0 {
		ways = append([]namespace{{flags: syscall.CLONE_NEWNS}}, ways...)
	}
	return ways
}

// run runs the test once more and reports whether it got its disk.
func (n namespace) run(t *testing.T, dir, disk string) bool {
	t.Helper()
	cmd := exec.Command("env", "--block-signal=XFSZ", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout="+(2*within).String())
	cmd.Env = append(os.Environ(), diskVariable+"="+disk, dirVariable+"="+dir, binVariable+"="+bin(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: n.flags}
	if n.flags&syscall.CLONE_NEWUSER != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.ProcessState == nil, cmd.ProcessState.ExitCode() == cannotMount:
		t.Logf("no disk: %v: %s", err, out)
		return false
	case err != nil, !bytes.Contains(out, []byte("--- PASS: "+t.Name())):
		t.Errorf("on the disk (%s): %v\n%s", disk, err, out)
	case bytes.Contains(out, []byte("NOT PROVEN HERE")):
		t.Logf("%s", out)
	}
	return true
}

// mountSmallDisk mounts the disk of a test that runs once more, for TestMain.
func mountSmallDisk() error {
	if os.Getenv(diskVariable) != diskMounted {
		return nil
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts from others: %w", err)
	}
	if err := syscall.Mount("remuda", os.Getenv(dirVariable), "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0700", diskSize)); err != nil {
		return fmt.Errorf("mount a small disk: %w", err)
	}
	return nil
}

// fill leaves no byte free. Of a file that ends within a page of the file
// system, that page's rest may still be written.
func (d *smallDisk) fill() {
	d.t.Helper()
	if d.limited {
		d.limit(0)
		return
	}
	ballast, err := os.OpenFile(d.ballast(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer ballast.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for chunk := make([]byte, size); err == nil; {
			_, err = ballast.Write(chunk)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			d.t.Fatal(err)
		}
		err = nil
	}
	if err := os.WriteFile(filepath.Join(d.dir, "probe"), []byte("x"), 0o600); !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatalf("the disk is not full: %v", err)
	}
}

// room makes all of it free again.
func (d *smallDisk) room() {
	d.t.Helper()
	if d.limited {
		d.limit(unix.RLIM_INFINITY)
		return
	}
	if err := os.Remove(d.ballast()); err != nil {
		d.t.Fatal(err)
	}
}

func (d *smallDisk) ballast() string { return filepath.Join(d.dir, "ballast") }

// limit sets the size of the largest file that the processes on the disk, and
// those they start, may write.
func (d *smallDisk) limit(size uint64) {
	d.t.Helper()
	for range 3 { // those that are just being started, too
		processes, err := local.Processes(d.dir)
		if err != nil || len(processes) == 0 {
			d.t.Fatalf("processes on the disk: %v, %v", processes, err)
		}
		for _, p := range processes {
			err := unix.Prlimit(p.PID, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}, nil)
			if err != nil && !errors.Is(err, syscall.ESRCH) {
				d.t.Fatalf("limit process %s: %v", strconv.Itoa(p.PID), err)
			}
		}
	}
}
