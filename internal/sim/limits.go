package sim

import (
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// limitLives: every fourth life has limits on hosts, so tight that callers meet
// them. Of the lives with warm pools some have a maximum.
const limitLives = 4

func (l *life) limited() bool {
	return l.Config.Seed%limitLives == 3 || l.Config.Seed%(2*limitLives) == 1
}

// limitHosts draws the limits of a life that has some.
func (l *life) limitHosts() {
	if !l.limited() {
		return
	}
	if l.Config.Seed%(2*limitLives) == 3 {
		l.cutLaunches()
	}
	if l.Config.Seed%limitLives == 3 {
		l.Limits = policy.Limits{HostsPerRepository: 2 + l.Rand.IntN(2), HostsPerOwner: 3 + l.Rand.IntN(2)}
	}
	for _, name := range []string{"default", "owner"} {
		p := l.Pools[name]
		p.Maximum = new(2 + l.Rand.IntN(3))
		l.Pools[name] = p
	}
}

// cutLaunches makes launches be interrupted often and machines be listed late, which is
// when the room of a launch could be given back too early.
func (l *life) cutLaunches() {
	l.SetOdds(engine.FaultComputeLost, 14)
	l.SetOdds(engine.FaultTagLag, 2)
	l.SetOdds(engine.FaultReleaseInterim, 6)
}
