package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// holdLives: in every fifth life operators hold the whole fleet.
const holdLives = 5

func (w *world) holding() bool { return w.cfg.Seed%holdLives == 2 }

// fleetHolds has operators hold the fleet and lift the hold. A hold that is not lifted
// expires.
func (w *world) fleetHolds() {
	if !w.holding() {
		return
	}
	w.holdFleet(FaultFleetHold, func() time.Duration { return w.between(time.Minute, 15*time.Minute) })
	w.holdFleet(FaultFleetUnhold, func() time.Duration { return 0 })
}

func (w *world) holdFleet(f Fault, length func() time.Duration) {
	w.recur(f, func() bool {
		r := w.anyReplica()
		if r == nil || f == FaultFleetUnhold && !must1(w.truth.FleetHold(background)).InForce(w.now) {
			return false
		}
		d := length()
		r.order("hold the fleet", func(now time.Time) error {
			_, err := r.fleet.HoldFleet(background, d, "the operator looks", "operator", now)
			return err
		})
		return true
	})
}

// fleetHoldWritten notes since when a hold is in force.
func (w *world) fleetHoldWritten(before, after lifecycle.FleetHold) {
	w.tell(w.who(), "fleet hold", "until "+sinceEpoch(after.Until))
	if after.InForce(w.now) && !before.InForce(w.now) {
		w.rules.heldSince = w.now
	}
}

// checkFleetHeld checks that the cloud is not asked to end a machine of a held fleet. A
// replica that read the row just before it was written, and has been suspended since,
// cannot know.
func (w *world) checkFleetHeld(id string) {
	h := must1(w.truth.FleetHold(background))
	if !h.InForce(w.now.Add(clockSlack)) {
		return
	}
	a := w.current
	age := w.now.Sub(a.holdRead.at) - (a.stalled - a.holdRead.stalled)
	if a.holdRead.at.IsZero() || age > 0 || a.holdRead.at.After(w.rules.heldSince) {
		w.broken(RuleFleetHeld, "%s is ended while the fleet is held until %s, since %s; the hold was last read at %s",
			id, sinceEpoch(h.Until), sinceEpoch(w.rules.heldSince), sinceEpoch(a.holdRead.at))
	}
}
