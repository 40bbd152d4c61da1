package sim

import "github.com/remuda-ci/remuda/internal/fleet"

// guards is the store of the fleet's hold and of limits, in lives that have one of
// them; nil in others, which then read no more than they did without.
func (w *world) guards() fleet.GuardStore {
	if !w.limited() && !w.holding() && !w.serving() {
		return nil
	}
	return w.store()
}
