package process

import (
	"fmt"
	"os"
	"syscall"

	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/proc"
	"github.com/remuda-ci/remuda/internal/safefile"
)

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
