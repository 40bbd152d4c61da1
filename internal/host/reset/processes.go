package reset

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/proc"
	"github.com/remuda-ci/remuda/internal/retry"
)

// process is a process of the host, of any user.
type process struct {
	pid int
	// name is chosen by the process itself.
	name string
	// unit is the unit of its control group; "" for none.
	unit string
	// login is the slice of the user in whose login it is, by its control group; "" for none.
	login string
	// ancestry is its pid, its parent's, and so on, without that of systemd.
	ancestry []int
	// started is when it was started, since the boot.
	started time.Duration
	// kernel says that it is a thread of the kernel, and dead that it has ended.
	kernel, dead bool
}

// readProcess reads what counts of a process.
func (p Plan) readProcess(pid int) (process, error) {
	group, err := p.proc().Cgroup(pid)
	if err != nil {
		return process{}, err
	}
	line, err := p.proc().Lineage(pid)
	if err != nil {
		return process{}, err
	}
	h := process{
		pid: pid, name: line[0].Name, unit: unitOf(group), login: loginOf(group),
		started: line[0].SinceBoot(), kernel: line[0].Kernel, dead: line[0].Exited(),
	}
	for _, one := range line {
		if one.PID > 1 {
			h.ancestry = append(h.ancestry, one.PID)
		}
	}
	return h, nil
}

// unitOf returns the unit that a control group belongs to, the first name below the slices; "" for none.
func unitOf(group string) string {
	for name := range strings.SplitSeq(group, "/") {
		if !strings.HasSuffix(name, ".slice") {
			return name
		}
	}
	return ""
}

// loginOf returns the slice of the user to whose login a control group belongs; "" for none. See user@.service(5).
func loginOf(group string) string {
	rest, ok := strings.CutPrefix(group, "user.slice/")
	name, _, _ := strings.Cut(rest, "/")
	if !ok || !strings.HasPrefix(name, "user-") || !strings.HasSuffix(name, ".slice") {
		return ""
	}
	return name
}

// procID identifies a process within one boot.
type procID struct {
	PID     int           `json:"pid"`
	Started time.Duration `json:"born"` // since the boot
}

func (h process) id() procID { return procID{h.pid, h.started} }

// allProcesses returns all living processes except the kernel's own.
func (p Plan) allProcesses() ([]process, error) {
	pids, err := p.proc().PIDs()
	if err != nil {
		return nil, err
	}
	var all []process
	for _, pid := range pids {
		h, err := p.readProcess(pid)
		if proc.Gone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read process %d: %w", pid, err)
		}
		if !h.kernel && !h.dead {
			all = append(all, h)
		}
	}
	return all, nil
}

// processIDs returns what a baseline has of the processes.
func (p Plan) processIDs() ([]procID, error) {
	all, err := p.allProcesses()
	var ids []procID
	for _, h := range all {
		ids = append(ids, h.id())
	}
	return ids, err
}

// userProcess is a process of the runs' user.
type userProcess struct {
	pid  int
	name string
}

// userProcesses lists the living processes through which the user could do anything: those with its uid as the real,
// effective or saved one, or for files alone.
func (p Plan) userProcesses() ([]userProcess, error) {
	pids, err := p.proc().PIDs()
	if err != nil {
		return nil, err
	}
	var found []userProcess
	for _, pid := range pids {
		uids, err := p.proc().UIDs(pid)
		var s proc.Stat
		if err == nil && slices.Contains(uids[:], p.UID) {
			s, err = p.proc().Stat(pid)
		}
		switch {
		case err != nil && !proc.Gone(err):
			return nil, fmt.Errorf("read process %d: %w", pid, err)
		case err == nil && s.PID == pid && !s.Exited():
			found = append(found, userProcess{pid: pid, name: s.Name})
		}
	}
	return found, nil
}

// killProcesses kills every process of the user until none is left.
func (p Plan) killProcesses(ctx context.Context) error {
	end := time.Now().Add(proc.KillLimit)
	for quiet := 0; ; {
		found, err := p.userProcesses()
		if err != nil {
			return err
		}
		if len(found) == 0 {
			if quiet++; quiet >= proc.QuietScans {
				return nil
			}
			continue
		}
		quiet = 0
		if time.Now().After(end) {
			return fmt.Errorf("kill processes of %s: %d remain after %s, the first is %d (%q): withdraw the host",
				p.User, len(found), proc.KillLimit, found[0].pid, found[0].name)
		}
		p.killAllAtOnce(ctx)
		for _, one := range found {
			if err := syscall.Kill(one.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill process %d (%q): %w", one.pid, one.name, err)
			}
		}
		if err := retry.Sleep(ctx, proc.KillPause); err != nil {
			return err
		}
	}
}

// killAllAtOnce lets the kernel kill everything that the user may kill. A process that forks faster than a scan finds it
// cannot escape that. The killer runs as the user, so one of those processes may kill it first, or it may not start for
// lack of process slots. Then the next round tries again, and what it does not reach is killed one by one.
func (p Plan) killAllAtOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "kill -KILL -1")
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(p.UID), Gid: uint32(p.GID)}}
	_ = cmd.Run()
}
