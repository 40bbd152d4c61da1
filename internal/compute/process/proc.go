package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// procID tells a process from a later one with the same pid.
type procID struct {
	pid   int
	start uint64 // clock ticks since the kernel's boot
}

// proc is a process as its stat file has it.
type proc struct {
	procID
	state   byte
	session int
	kernel  bool // a thread of the kernel
	// The bounds of its environment in its memory. There is an end also of an
	// empty one; there is none between two programs, and once it has begun to end.
	envStart, envEnd uint64
}

// dead reports whether the process has ended. A container may have nobody to
// reap what is re-parented, so a zombie is dead.
func (p proc) dead() bool { return strings.IndexByte("ZXx", p.state) >= 0 }

// alive reports whether this very process lives.
func (p procID) alive() bool {
	now, err := readProc(p.pid)
	return err == nil && now.procID == p && !now.dead()
}

// readProc reads /proc/<pid>/stat.
func readProc(pid int) (proc, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return proc{}, err
	}
	return parseStat(pid, string(data))
}

// Positions in stat behind the command: fields 3, 6, 9, 22, 50 and 51 of
// proc(5), which counts from 1 with the process id and the command before them.
const (
	statState    = 0
	statSession  = 3
	statFlags    = 6
	statStart    = 19
	statEnvStart = 47
	statEnvEnd   = 48
)

// kernelThread is PF_KTHREAD of include/linux/sched.h, one of the flags.
const kernelThread = 0x00200000

// parseStat reads the fields behind the command, which is in parentheses and
// may hold blanks and parentheses itself.
func parseStat(pid int, stat string) (proc, error) {
	_, rest, ok := cutLast(stat, ")")
	fields := strings.Fields(rest)
	if !ok || len(fields) <= statEnvEnd {
		return proc{}, fmt.Errorf("read stat of process %d: it has too few fields", pid)
	}
	numbers := map[int]uint64{}
	for _, at := range []int{statSession, statFlags, statStart, statEnvStart, statEnvEnd} {
		n, err := strconv.ParseUint(fields[at], 10, 64)
		if err != nil {
			return proc{}, fmt.Errorf("read field %d of stat of process %d: %w", at+3, pid, err)
		}
		numbers[at] = n
	}
	return proc{
		procID: procID{pid: pid, start: numbers[statStart]}, state: fields[statState][0],
		session: int(numbers[statSession]), kernel: numbers[statFlags]&kernelThread != 0,
		envStart: numbers[statEnvStart], envEnd: numbers[statEnvEnd],
	}, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// ownProcesses are the living processes of our user. One that ends while we
// look is left out.
func ownProcesses() ([]proc, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var procs []proc
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		info, err := os.Stat(filepath.Join("/proc", e.Name()))
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			continue
		}
		if p, err := readProc(pid); err == nil && !p.dead() {
			procs = append(procs, p)
		}
	}
	return procs, nil
}

// environment is a variable of the environment that the process was started
// with; empty when it has none, or is gone. It is not clear while the process
// is between two programs, since what it had before and will have is not to be
// seen for that moment, nor while it ends.
func environment(pid int, name string) (value string, clear bool) {
	for range 3 { // it may come between the two files
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		if err != nil {
			return "", true
		}
		if len(data) > 0 {
			return variable(data, name), true
		}
		p, err := readProc(pid)
		if err != nil || p.dead() || p.kernel || (p.envEnd != 0 && p.envStart == p.envEnd) {
			return "", true
		}
	}
	return "", false
}

// variable is the value of a variable in an environment.
func variable(environ []byte, name string) string {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// initOf is the host's init as it wrote itself down; false when there is none,
// or it was of an earlier boot of the kernel.
func (c *Compute) initOf(h host) (procID, bool) {
	data, err := readFile(h.path("init.pid"))
	if err != nil {
		return procID{}, false
	}
	var id procID
	var bootID string
	if _, err := fmt.Sscanf(string(data), "%d %d %s", &id.pid, &id.start, &bootID); err != nil {
		c.log.Warn("pid of init is unreadable", "instance_id", h.id, "error", err)
		return procID{}, false
	}
	return id, bootID == c.bootID && id.pid > 1
}

func (c *Compute) initAlive(h host) bool {
	init, ok := c.initOf(h)
	return ok && init.alive()
}
