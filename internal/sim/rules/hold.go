package rules

import (
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// holdWritten notes since when a hold is in force.
func (w *Watcher) holdWritten(before, after fleethold.Hold) {
	if after.InForce(w.Now) && !before.InForce(w.Now) {
		w.heldSince = w.Now
	}
}

// checkFleetHeld checks that the cloud is not asked to end a machine of a held fleet. A
// replica that read the row just before it was written, and has been suspended since,
// cannot know.
func (w *Watcher) checkFleetHeld(id string) {
	h := engine.Must1(w.Truth.FleetHold(engine.Background))
	if !h.InForce(w.Now.Add(clockSlack)) {
		return
	}
	read := w.Current.LastLook(world.SeesHold)
	if read.At.IsZero() || w.AgeOf(read) > 0 || read.At.After(w.heldSince) {
		w.Broken(RuleFleetHeld, "%s is ended while the fleet is held until %s, since %s; the hold was last read at %s",
			id, engine.SinceEpoch(h.Until), engine.SinceEpoch(w.heldSince), engine.SinceEpoch(read.At))
	}
}
