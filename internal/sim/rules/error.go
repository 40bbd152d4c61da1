package rules

import (
	"errors"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// CheckError checks that use-cases fail only in the ways that they document.
func (w *Watcher) CheckError(what string, err error) {
	if err == nil {
		return
	}
	var transition *lifecycle.TransitionError
	var short *fleet.ShortError
	var released *fleet.ReleasedError
	var held *fleet.HeldError
	var fleetHeld *fleet.FleetHeldError
	var state *fleet.StateError
	switch {
	case errors.As(err, &transition):
		w.Broken(RuleTransition, "%s: %v", what, err)
	case errors.Is(err, lifecycle.ErrUnavailable), errors.Is(err, lifecycle.ErrNotFound), errors.Is(err, fleet.ErrSpecDiffers),
		errors.As(err, &short), errors.As(err, &released), errors.As(err, &held), errors.As(err, &fleetHeld), errors.As(err, &state):
		if !errors.Is(err, lifecycle.ErrUnavailable) {
			w.Tell(w.Who(), what, err.Error())
		}
	default:
		w.Broken(RuleUnexpected, "%s: %v", what, err)
	}
}
