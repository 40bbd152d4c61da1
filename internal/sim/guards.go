package sim

import "github.com/remuda-ci/remuda/internal/fleet"

// guards is the store of the fleet's hold, of limits and of pauses, in lives that have one of
// them; nil in others, which then read no more than they did without.
func (l *life) guards() fleet.GuardStore {
	if !l.limited() && !l.holding() && !l.pausing() && !l.serving() {
		return nil
	}
	return l.Store()
}
