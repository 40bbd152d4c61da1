package slate

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

// process is a process of the runs' user.
type process struct {
	pid  int
	name string
}

// processes lists the living processes through which the user could do anything: those with his real, effective or saved
// uid, or with his for files alone.
func (p Plan) processes() ([]process, error) {
	fs := p.proc()
	pids, err := fs.PIDs()
	if err != nil {
		return nil, err
	}
	var found []process
	for _, pid := range pids {
		one, ours, err := p.processOf(fs, pid)
		if err != nil && !proc.Gone(err) {
			return nil, fmt.Errorf("look at process %d: %w", pid, err)
		}
		if err == nil && ours {
			found = append(found, one)
		}
	}
	return found, nil
}

func (p Plan) processOf(fs proc.FS, pid int) (one process, ours bool, err error) {
	uids, err := fs.UIDs(pid)
	if err != nil || !slices.Contains(uids[:], p.UID) {
		return process{}, false, err
	}
	s, err := fs.Stat(pid)
	return process{pid: pid, name: s.Name}, err == nil && !s.Exited(), err
}

// killProcesses kills every process of the user until none is left.
func (p Plan) killProcesses(ctx context.Context) error {
	end := time.Now().Add(proc.KillLimit)
	for quiet := 0; ; {
		found, err := p.processes()
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
			return fmt.Errorf("kill processes of %s: %d are left after %s, the first is %d (%q): withdraw the host",
				p.User, len(found), proc.KillLimit, found[0].pid, found[0].name)
		}
		p.killAtOnce(ctx)
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

// killAtOnce lets the kernel kill all that the user may kill, which a process that forks faster than it is found cannot
// escape. The killer is the user's and may be killed by one of them first, or not be born for want of room: then the next
// round tries again, and what it does not reach is killed one by one.
func (p Plan) killAtOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "kill -KILL -1")
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(p.UID), Gid: uint32(p.GID)}}
	_ = cmd.Run()
}
