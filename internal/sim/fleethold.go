package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// holdLives: in every fifth life operators hold the whole fleet; and in those with stopped hosts.
const holdLives = 5

func (l *life) holding() bool { return l.Config.Seed%holdLives == 2 || l.stopping() || l.resetting() }

// fleetHolds has operators hold the fleet and lift the hold. A hold that is not lifted
// expires.
func (l *life) fleetHolds() {
	if !l.holding() {
		return
	}
	l.holdFleet(engine.FaultFleetHold, func() time.Duration { return l.Between(time.Minute, 15*time.Minute) })
	l.holdFleet(engine.FaultFleetUnhold, func() time.Duration { return 0 })
}

func (l *life) holdFleet(f engine.Fault, length func() time.Duration) {
	l.Recur(f, func() bool {
		r := l.anyReplica()
		if r == nil || f == engine.FaultFleetUnhold && !engine.Must1(l.Truth.FleetHold(engine.Background)).InForce(l.Now) {
			return false
		}
		d := length()
		r.order("hold the fleet", func(now time.Time) error {
			_, _, err := r.fleet.HoldFleet(engine.Background, d, "the operator looks", "operator", now)
			return err
		})
		return true
	})
}
