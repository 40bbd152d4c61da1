// Package proc reads what the kernel says about processes in /proc: who they are, whose they are, where they come from.
//
// The fields come from github.com/prometheus/procfs where it has them. What it lacks is read here: the bounds of the
// environment, the children of a process, and file descriptors and environments whose read errors must not be dropped.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// FS is a directory laid out like /proc. Tests use one of their own.
type FS string

// Default is the proc file system of this machine.
const Default FS = "/proc"

// ID identifies a process within one boot. A later process with the same pid has another start time.
type ID struct {
	PID int
	// Start is when the process started, in clock ticks since the boot.
	Start uint64
}

// userHZ is how many clock ticks /proc counts per second. It is 100 on every architecture that Go supports.
const userHZ = 100

// SinceBoot is when the process started, since the boot. The kernel rounds it down to a hundredth of a second.
func (id ID) SinceBoot() time.Duration { return time.Duration(id.Start) * time.Second / userHZ }

// Stat is what /proc/PID/stat says: see proc_pid_stat(5).
type Stat struct {
	ID
	// Name is chosen by the process itself, so it may hold anything.
	Name string
	// State is one letter, such as R or S.
	State                    string
	Parent, Session, Threads int
	// Kernel says that it is a thread of the kernel.
	Kernel bool
}

// kernelThread is PF_KTHREAD of include/linux/sched.h. No program can set it for itself.
const kernelThread = 0x00200000

// Dead reports whether the process is a zombie or about to be reaped. In a container there may be no parent that reaps
// re-parented processes, so a zombie counts as dead.
func (s Stat) Dead() bool { return s.State == "Z" || s.State == "X" || s.State == "x" }

// Exited reports whether all threads of the process have ended. A process whose first thread has ended is a zombie
// while its other threads run on.
func (s Stat) Exited() bool { return s.Dead() && s.Threads <= 1 }

// Gone reports whether err, from reading a file below /proc/PID, means that the process has ended.
func Gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// BootID returns the kernel's id of this boot.
func (p FS) BootID() (string, error) {
	id, err := os.ReadFile(filepath.Join(string(p), "sys/kernel/random/boot_id"))
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// PIDs lists all processes, in the order of their pids. It fails only if the directory itself cannot be read.
func (p FS) PIDs() ([]int, error) {
	dir, err := os.Open(string(p))
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// open returns the process in the words of procfs. It is an error satisfying Gone if there is none.
func (p FS) open(pid int) (procfs.Proc, error) {
	root, err := procfs.NewFS(string(p))
	if err != nil {
		return procfs.Proc{}, err
	}
	return root.Proc(pid)
}

// Stat reads /proc/PID/stat.
func (p FS) Stat(pid int) (Stat, error) {
	process, err := p.open(pid)
	if err != nil {
		return Stat{}, err
	}
	s, err := process.Stat()
	if Gone(err) {
		return Stat{}, err
	}
	if err != nil {
		return Stat{}, fmt.Errorf("malformed /proc/%d/stat: %w", pid, err)
	}
	return Stat{
		ID: ID{PID: pid, Start: s.Starttime}, Name: s.Comm, State: s.State,
		Parent: s.PPID, Session: s.Session, Threads: s.NumThreads, Kernel: s.Flags&kernelThread != 0,
	}, nil
}

// Alive reports whether this very process lives.
func (p FS) Alive(id ID) bool {
	s, err := p.Stat(id.PID)
	return err == nil && s.ID == id && !s.Dead()
}

// maxLineage bounds how many ancestors Lineage follows.
const maxLineage = 64

// Lineage returns the process, its parent, and so on up to the first process of the PID namespace. It ends early where a
// parent has ended in the meantime, since its child has another parent by then.
func (p FS) Lineage(pid int) ([]Stat, error) {
	var line []Stat
	for next := pid; next > 0 && len(line) < maxLineage; {
		s, err := p.Stat(next)
		if next != pid && Gone(err) {
			break
		}
		if err != nil {
			return line, err
		}
		line, next = append(line, s), s.Parent
	}
	return line, nil
}

// UIDs returns the real, effective, saved and file system uid of a process: see proc_pid_status(5).
func (p FS) UIDs(pid int) ([4]int, error) {
	process, err := p.open(pid)
	if err != nil {
		return [4]int{}, err
	}
	s, err := process.NewStatus()
	if Gone(err) {
		return [4]int{}, err
	}
	if err == nil && s.TGID != pid {
		err = errors.New("no thread group id")
	}
	if err != nil {
		return [4]int{}, fmt.Errorf("malformed /proc/%d/status: %w", pid, err)
	}
	return [4]int{int(s.UIDs[0]), int(s.UIDs[1]), int(s.UIDs[2]), int(s.UIDs[3])}, nil
}

// Cgroup returns the path of the process's control group of version 2, without the leading slash: see cgroups(7). It is
// empty for the root group and for a process without one.
func (p FS) Cgroup(pid int) (string, error) {
	process, err := p.open(pid)
	if err != nil {
		return "", err
	}
	groups, err := process.Cgroups()
	if err != nil {
		return "", err
	}
	for _, group := range groups {
		if group.HierarchyID == 0 && len(group.Controllers) == 0 {
			return strings.TrimPrefix(group.Path, "/"), nil
		}
	}
	return "", nil
}

// Program returns the base name of the path that the process was started by, or "" if the process is gone or a zombie.
func (p FS) Program(pid int) string {
	process, err := p.open(pid)
	if err != nil {
		return ""
	}
	args, err := process.CmdLine()
	if err != nil || len(args) == 0 {
		return ""
	}
	return filepath.Base(args[0])
}

// Children lists the children of a process, whichever of its threads started them. A process that is gone has none.
func (p FS) Children(pid int) ([]int, error) {
	tasks := p.path(pid, "task")
	threads, err := os.ReadDir(tasks)
	if Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list threads: %w", err)
	}
	var pids []int
	for _, thread := range threads {
		data, err := os.ReadFile(filepath.Join(tasks, thread.Name(), "children"))
		if err != nil && !Gone(err) {
			return nil, fmt.Errorf("list children: %w", err)
		}
		for field := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids, nil
}

// Sockets returns the inodes of the sockets that a process has open. Unlike FileDescriptorTargets of procfs it reports a
// descriptor that cannot be read: a socket must not be overlooked.
func (p FS) Sockets(pid int) (map[uint64]bool, error) {
	dir := p.path(pid, "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	sockets := map[uint64]bool{}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if Gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var inode uint64
		if n, err := fmt.Sscanf(target, "socket:[%d]", &inode); n == 1 && err == nil {
			sockets[inode] = true
		}
	}
	return sockets, nil
}

func (p FS) path(pid int, name string) string {
	return filepath.Join(string(p), strconv.Itoa(pid), name)
}

// environTries is how often Environ looks: a process may start another program between the reads of two files.
const environTries = 3

// Environ returns the environment that the process was started with, each variable followed by a zero byte. It is empty
// if the process has none, is gone, or is not ours to read. known is false while it cannot be seen: between two programs
// (execve) a process has neither the old environment nor the new one, and while it ends it has none.
func (p FS) Environ(pid int) (environ []byte, known bool) {
	for range environTries {
		environ, err := os.ReadFile(p.path(pid, "environ"))
		if err != nil {
			return nil, true
		}
		if len(environ) > 0 {
			return environ, true
		}
		s, err := p.Stat(pid)
		if err != nil || s.Dead() || s.Kernel {
			return nil, true
		}
		if empty, err := p.startedWithout(pid); err != nil || empty {
			return nil, true
		}
	}
	return nil, false
}

// Variable returns the value of a variable in an environment; "" if it is not there.
func Variable(environ []byte, name string) string {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// Fields of stat that procfs leaves out, counted from 0 behind the name: 50 and 51 of proc_pid_stat(5).
const (
	envStartField = 47
	envEndField   = 48
)

// startedWithout reports whether the process was started with an empty environment: its bounds in memory are then equal
// and not 0. They are 0 between two programs, and once the process has begun to end.
func (p FS) startedWithout(pid int) (bool, error) {
	text, err := os.ReadFile(p.path(pid, "stat"))
	if err != nil {
		return false, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) <= envEndField {
		return false, fmt.Errorf("malformed /proc/%d/stat: %d fields", pid, len(fields))
	}
	start, err := strconv.ParseUint(fields[envStartField], 10, 64)
	end, err2 := strconv.ParseUint(fields[envEndField], 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return false, fmt.Errorf("malformed /proc/%d/stat: %w", pid, err)
	}
	return end != 0 && start == end, nil
}

// Bounds of the loops that kill processes and scan /proc until none is left.
const (
	// KillLimit is how long processes may take to die of SIGKILL. It is far more than any needs that is not stuck in the
	// kernel.
	KillLimit = 10 * time.Second
	// KillPause is between two scans for processes that are being killed.
	KillPause = 5 * time.Millisecond
	// QuietScans is how many scans in a row must find nothing. A process can slip past one scan: it is born, behind the
	// place that the scan has reached, to a parent that dies before the scan gets there. Two in a row are hardly escaped.
	QuietScans = 2
)
