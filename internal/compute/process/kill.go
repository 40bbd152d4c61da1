package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/proc"
	"github.com/remuda-ci/remuda/internal/retry"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// killTimeout is how long the processes of hosts may take to die. They take milliseconds unless they are stuck in
// the kernel.
const killTimeout = 5 * time.Second

// member is a process of a host.
type member struct {
	proc.ID
	host string
	init bool
}

// unclearTimeout is how long a process whose host is not known keeps hosts from being dead once none of theirs is left.
// Such a process starts a program or ends: both take milliseconds. While others work on the same machine there is always
// one, so that this must leave time to remove the hosts' files.
const unclearTimeout = time.Second

// scans are the scans for processes that are being killed.
type scans struct {
	// quiet is how many in a row found nothing; without is how many found no process of a host.
	quiet, without int
	// foundAt is when one last found a process of a host.
	foundAt time.Time
}

// dead reports whether nothing of the hosts is left, given what one more scan has found.
func (s *scans) dead(members, unclear int, now time.Time) bool {
	s.quiet, s.without = s.quiet+1, s.without+1
	if members+unclear > 0 {
		s.quiet = 0
	}
	if members > 0 {
		s.without = 0
	}
	if members > 0 || s.foundAt.IsZero() {
		s.foundAt = now
	}
	return s.quiet >= proc.QuietScans || s.without >= proc.QuietScans && now.Sub(s.foundAt) >= unclearTimeout
}

// kill kills every process of the hosts and returns when none is left. It also waits a while for
// processes whose host is not known yet.
func (c *Compute) kill(ctx context.Context, ids []string) error {
	bounded, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	for done := (scans{}); ; {
		members, unclear, err := c.members(ids)
		if err != nil {
			return err
		}
		if done.dead(len(members), unclear, time.Now()) {
			return nil
		}
		for m, signal := range signals(members) {
			if err := sendSignal(m.ID, signal); err != nil {
				return fmt.Errorf("kill process %d of host %s: %w", m.PID, m.host, err)
			}
		}
		if err := retry.Sleep(bounded, proc.KillPause); err != nil {
			return fmt.Errorf("kill processes: %s left: %w", names(members), err)
		}
	}
}

// signals returns the signal for each process: SIGKILL, except for an init beside which other processes of
// its host live. Such an init is stopped, so that it starts nothing more, and killed last: while it lives,
// its pid is certainly the id of its session, by which the others are found.
func signals(members []member) map[member]syscall.Signal {
	others := map[string]bool{}
	for _, m := range members {
		others[m.host] = others[m.host] || !m.init
	}
	signals := map[member]syscall.Signal{}
	for _, m := range members {
		signals[m] = syscall.SIGKILL
		if m.init && others[m.host] {
			signals[m] = syscall.SIGSTOP
		}
	}
	return signals
}

func names(members []member) string {
	if len(members) == 0 {
		return "none known"
	}
	var s []string
	for _, m := range members {
		s = append(s, fmt.Sprintf("%d of host %s", m.PID, m.host))
	}
	return strings.Join(s, ", ")
}

// members returns the living processes of the hosts. unclear is how many others there are
// whose host is not known at the moment. Processes that end during the scan are left out.
func (c *Compute) members(ids []string) (members []member, unclear int, err error) {
	hosts, inits := map[string]bool{}, map[int]string{}
	for _, id := range ids {
		hosts[id] = true
		if init, ok := c.initOf(c.host(id)); ok && proc.Default.Alive(init) {
			inits[init.PID] = id
		}
	}
	procs, err := ownProcesses()
	if err != nil {
		return nil, 0, err
	}
	for _, p := range procs {
		id, ok := inits[p.Session]
		clear := ok
		if !ok {
			var environ []byte
			environ, clear = proc.Default.Environ(p.PID)
			id = proc.Variable(environ, InstanceIDVariable)
		}
		switch {
		case p.PID == os.Getpid():
		case !clear:
			unclear++
		case hosts[id]:
			members = append(members, member{ID: p.ID, host: id, init: inits[p.PID] != ""})
		}
	}
	return members, unclear, nil
}

// sendSignal signals the process and no later one with its pid: the handle is bound to one process before its start time
// is compared (os.FindProcess opens a pidfd).
func sendSignal(id proc.ID, signal syscall.Signal) error {
	handle, err := os.FindProcess(id.PID)
	if err != nil {
		return err
	}
	defer handle.Release()
	if !proc.Default.Alive(id) {
		return nil
	}
	err = handle.Signal(signal)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// ownProcesses returns the living processes of our user. One that ends during the scan is left out.
func ownProcesses() ([]proc.Stat, error) {
	pids, err := proc.Default.PIDs()
	if err != nil {
		return nil, err
	}
	var all []proc.Stat
	for _, pid := range pids {
		info, err := os.Stat(fmt.Sprintf("%s/%d", proc.Default, pid))
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			continue
		}
		if p, err := proc.Default.Stat(pid); err == nil && !p.Dead() {
			all = append(all, p)
		}
	}
	return all, nil
}

// initOf returns the host's init as it recorded itself. ok is false when it recorded nothing, or in an earlier boot of
// the kernel.
func (c *Compute) initOf(h host) (id proc.ID, ok bool) {
	data, err := safefile.Read(h.path("init.pid"))
	if err != nil {
		return proc.ID{}, false
	}
	var bootID string
	if _, err := fmt.Sscanf(string(data), "%d %d %s", &id.PID, &id.Start, &bootID); err != nil {
		c.log.Warn("pid of init is unreadable", logkey.Instance, h.id, logkey.Error, err)
		return proc.ID{}, false
	}
	return id, bootID == c.bootID && id.PID > 1
}

func (c *Compute) initAlive(h host) bool {
	init, ok := c.initOf(h)
	return ok && proc.Default.Alive(init)
}
