package reset

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/proc"
	"github.com/remuda-ci/remuda/internal/retry"
)

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
