package sim

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// hotLives: every fifth life has hosts that listen before a run claims them.
const hotLives = 5

// heat gives the default pool hot hosts, and makes runs follow each other on them. They wait for longer than in other
// lives, so that there are some at the end of the faults.
func (l *life) heat() {
	if l.Config.Seed%hotLives != 4 {
		return
	}
	p := l.Pools["default"]
	p.Policy.Standby, p.Policy.IdleTime = lifecycle.StandbyListening, 8*time.Minute
	l.Pools["default"], l.Hot = p, true
	l.workload.repositories, l.workload.pools = world.Repositories[:1+l.Rand.IntN(2)], []string{"default"}
	l.workload.classes, l.workload.spot, l.workload.jobLength = []string{"small"}, 0, 8*time.Second
	l.Intervals.ReadIdle, l.Intervals.ReadStandby = 2*time.Second, 5*time.Second // jobs come before their hosts have read the claim
	l.DrawHotFaults()
}

// hotHosts counts the hosts that wait with a registration, for which more runs come.
func (l *life) hotHosts() int {
	if !l.Hot {
		return 0
	}
	n := 0
	for _, m := range l.Living() {
		if r, err := l.Truth.Instance(engine.Background, m.HostKey); err == nil && r.Standby != nil && r.Pooled() {
			n++
		}
	}
	return n
}

// standbyLabel makes labels that no job of this world names.
func (l *life) standbyLabel() string {
	l.labels++
	return fmt.Sprint(l.labels)
}

// scheduleHotFaults starts the faults of lives with hot hosts.
func (l *life) scheduleHotFaults() {
	if !l.Hot {
		return
	}
	idle := func(h *world.Host) bool {
		return h.Observed.Listener.Phase == agent.ListenerListening && h.Runner != nil && !h.Runner.Deleted && h.Runner.Job == nil && h.Runner.Online
	}
	unclaimed := func(h *world.Host) bool {
		r, err := l.Truth.Instance(engine.Background, h.ID)
		return idle(h) && err == nil && r.Pooled() && r.Standby != nil
	}
	l.recurOnHost(engine.FaultForgotten, idle, func(h *world.Host) { l.GitHub.Forget(h) })
	l.recurOnHost(engine.FaultStrayJob, unclaimed, func(h *world.Host) { l.GitHub.Stray(h.Runner, fmt.Sprintf("stray-%d", l.Rand.IntN(1000))) })
}
