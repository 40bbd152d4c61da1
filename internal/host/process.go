package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// childrenOf lists the children of a process, whichever of its threads started
// them. A process that is gone has none.
func childrenOf(pid int) ([]int, error) {
	tasks := filepath.Join("/proc", strconv.Itoa(pid), "task")
	threads, err := os.ReadDir(tasks)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list threads: %w", err)
	}
	var pids []int
	for _, thread := range threads {
		data, err := os.ReadFile(filepath.Join(tasks, thread.Name(), "children"))
		if err != nil && !gone(err) {
			return nil, fmt.Errorf("list children: %w", err)
		}
		for _, field := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids, nil
}

// gone reports whether a file of /proc is missing because its process ended.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// programOf is the name that the process was started by; "" for one that is
// gone or dead and not yet waited for.
func programOf(pid int) string {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return ""
	}
	name, _, _ := bytes.Cut(data, []byte{0})
	return filepath.Base(string(name))
}

// processes lists the processes that belong to this host, but for the agent
// itself and those it descends from: all that carry the host's mark, and all
// in the session of a marked init that the agent runs under.
func (h *Host) processes() ([]int, error) {
	pids, _, err := h.survey()
	return pids, err
}

// survey is processes, and how many there are besides of which nothing can be
// said at the moment.
func (h *Host) survey() (pids []int, unclear int, err error) {
	all, err := os.ReadDir(h.proc)
	if err != nil {
		return nil, 0, fmt.Errorf("list processes: %w", err)
	}
	spared := ancestors()
	session := h.ownSession(spared)
	for _, entry := range all {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || spared[pid] {
			continue
		}
		ours, clear := h.marks(pid)
		switch {
		case ours || (session != 0 && sessionOf(pid) == session):
			pids = append(pids, pid)
		case !clear:
			unclear++
		}
	}
	return pids, unclear, nil
}

// ancestors are this process and those it descends from.
func ancestors() map[int]bool {
	up := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !up[pid]; pid = statOf(pid).parent {
		up[pid] = true
	}
	return up
}

// ownSession is the session that the agent shares with the host's init; 0 when
// the agent was started by somebody else, whose session is not ours to end.
func (h *Host) ownSession(ancestors map[int]bool) int {
	session := statOf(os.Getpid()).session
	if session <= 0 || !ancestors[session] {
		return 0
	}
	if marked, _ := h.marks(session); !marked {
		return 0
	}
	return session
}

// marks reports whether the process was started with this host's mark. It is
// not clear while the process is between two programs, since the environment
// that it had before and will have is not to be seen for that moment, nor while
// it ends.
func (h *Host) marks(pid int) (marked, clear bool) {
	if h.o.InstanceID == "" {
		return false, true // nobody knows yet who this is, and has marked anything
	}
	dir := filepath.Join(h.proc, strconv.Itoa(pid))
	for range 3 { // it may come between the two files
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil {
			return false, true // not ours to read, or gone
		}
		if len(env) > 0 {
			mark := []byte(InstanceIDVariable + "=" + h.o.InstanceID + "\x00")
			return bytes.HasPrefix(env, mark) || bytes.Contains(env, append([]byte{0}, mark...)), true
		}
		s := readStat(dir)
		if s.dead() || s.flags&kernelThread != 0 || (s.envEnd != 0 && s.envStart == s.envEnd) {
			return false, true
		}
	}
	return false, false
}

// findProcess finds a process of this host by its program; 0 when there is none.
func (h *Host) findProcess(program string) (int, error) {
	pids, err := h.processes()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		if programOf(pid) == program {
			return pid, nil
		}
	}
	return 0, nil
}

// stat is what is used of /proc/PID/stat; zero for a process that is gone.
type stat struct {
	state           byte
	parent, session int
	flags           uint64
	// The bounds of its environment in its memory. There is an end also of an
	// empty one; there is none between two programs, and once it has begun to end.
	envStart, envEnd uint64
}

// kernelThread is PF_KTHREAD of include/linux/sched.h.
const kernelThread = 0x00200000

// dead is said of a process that is gone too.
func (s stat) dead() bool { return s.state == 0 || s.state == 'Z' || s.state == 'X' }

func statOf(pid int) stat { return readStat(filepath.Join("/proc", strconv.Itoa(pid))) }

func readStat(dir string) stat {
	data, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return stat{}
	}
	// The name may hold anything, up to the last parenthesis. What follows
	// begins with field 3 of proc(5).
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 49 {
		return stat{}
	}
	s := stat{state: fields[0][0]}
	s.parent, _ = strconv.Atoi(fields[1])
	s.session, _ = strconv.Atoi(fields[3])
	s.flags, _ = strconv.ParseUint(fields[6], 10, 64)
	s.envStart, _ = strconv.ParseUint(fields[47], 10, 64)
	s.envEnd, _ = strconv.ParseUint(fields[48], 10, 64)
	return s
}

// sessionOf is the session of a living process; 0 for a dead one.
func sessionOf(pid int) int {
	if s := statOf(pid); !s.dead() {
		return s.session
	}
	return 0
}

// watch tells of the end of a process as soon as it comes: after a release the
// listener must be stopped before it takes another job. Where the kernel
// cannot, the end is seen by looking.
func (h *Host) watch(pid int) {
	if h.watched.Swap(int64(pid)) == int64(pid) {
		return
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		h.notify()
		return
	}
	go func() {
		defer unix.Close(fd)
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
		h.watched.CompareAndSwap(int64(pid), 0)
		h.notify()
	}()
}
