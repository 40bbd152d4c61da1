package rules

import (
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// holdWritten notes since when and until when a hold is in force.
func (w *Watcher) holdWritten(before, after fleethold.Hold) {
	switch {
	case after.InForce(w.Now):
		w.heldUntil = after.Until
	case before.InForce(w.Now):
		w.heldUntil = w.Now
	}
	if after.InForce(w.Now) && !before.InForce(w.Now) {
		w.heldSince = w.Now
	}
}

// checkFleetHeld checks that the cloud is not asked to end a machine of a held fleet.
func (w *Watcher) checkFleetHeld(id string) { w.underHold(id, "is ended") }

// checkMark checks that a host of a held fleet that is past its deadline keeps its mark: its agent ends it without.
func (w *Watcher) checkMark(before, after lifecycle.Record) {
	if before.FleetHeld && !after.Held(w.Now) && after.State != lifecycle.StateTerminated && after.Threshold.Add(clockSlack).Before(w.Now) { // by the clock of a replica it may be early
		w.underHold(after.HostKey, "loses its mark")
	}
}

// underHold breaks the rule if the fleet is held. A replica that read the row just before it was written, and has been
// suspended since, cannot know.
func (w *Watcher) underHold(id, what string) {
	h := engine.Must1(w.Truth.FleetHold(engine.Background))
	if !h.InForce(w.Now.Add(clockSlack)) {
		return
	}
	read := w.Current.LastLook(world.SeesHold)
	if read.At.IsZero() || w.AgeOf(read) > 0 || read.At.After(w.heldSince) {
		w.Broken(RuleFleetHeld, "%s %s while the fleet is held until %s, since %s; the hold was last read at %s",
			id, what, engine.SinceEpoch(h.Until), engine.SinceEpoch(w.heldSince), engine.SinceEpoch(read.At))
	}
}
