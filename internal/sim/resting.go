package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/sim/world"
)

// restingLives: every twentieth life has hosts that rest.
const restingLives = 20

// calmDown has hosts of two pools wait for so long that those which the pool can spare rest. Runs of few repositories follow each other on
// them, so that some rest and some are awake.
func (l *life) calmDown() {
	rest := l.Config.Seed%restingLives == 16 && l.script == nil
	for name, p := range l.Pools {
		p.Policy.RestAfter, p.Policy.Awake = 0, 1
		if rest {
			p.Policy.RestAfter, p.Policy.IdleTime = 20*time.Second, 8*time.Minute
		}
		l.Pools[name] = p
	}
	if !rest {
		return
	}
	l.workload.repositories, l.workload.pools, l.workload.classes = world.Repositories[:1], []string{"default"}, []string{"small"}
	l.workload.spot, l.workload.jobLength = 0, 8*time.Second
	l.Intervals.ReadIdle, l.Intervals.ReadStandby = 500*time.Millisecond, 5*time.Second
}
