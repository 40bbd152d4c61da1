package hosts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The hold on the whole fleet acts in three places, since a host ends in three ways. Reconcile and
// ApplyChecked do not write the end of a host. EndMachines, the only way to Compute.Terminate, ends no
// machine. A record whose end is due is marked, so that its agent, which leaves held hosts alone, does not
// end it either. TestTheWaysToEndAHost checks all three.

// HoldFleet keeps every host of the fleet from being ended until now + d (at most
// lifecycle.MaxHold); d of 0 removes the hold. by is who asked for it, and is shown to people.
func (hs *Hosts) HoldFleet(ctx context.Context, d time.Duration, reason, by string, now time.Time) (lifecycle.FleetHold, error) {
	if d < 0 || d > lifecycle.MaxHold {
		return lifecycle.FleetHold{}, &InvalidError{"duration", fmt.Sprintf("%s is not between 0 and %s", d, lifecycle.MaxHold)}
	}
	if hs.Guards == nil {
		return lifecycle.FleetHold{}, errors.New("hold the fleet: this fleet has no store for holds")
	}
	j := new(hs.Ops.Recorder(""))
	defer j.Flush(ctx)
	var h lifecycle.FleetHold
	err := op.Rewrite("the fleet's hold", func() (err error) {
		if h, err = hs.Guards.FleetHold(ctx); err != nil {
			return err
		}
		h.SetAt, h.By, h.Reason, h.Until = now, by, reason, time.Time{}
		why := reasoned("the fleet's hold was taken away by "+by, reason)
		if d > 0 {
			h.Until = now.Add(d)
			why = h.String()
		}
		if h, err = hs.Guards.UpdateFleetHold(ctx, h); err == nil {
			j.RecordEffect(lifecycle.Event{At: now, Action: lifecycle.ActionHold, Code: lifecycle.ReasonOrdered, Reason: why})
		}
		return err
	})
	if err != nil {
		return h, fmt.Errorf("hold the fleet: %w", err)
	}
	return h, nil
}

// FleetHold is the hold on the whole fleet, in force or not.
func (hs *Hosts) FleetHold(ctx context.Context) (lifecycle.FleetHold, error) {
	if hs.Guards == nil {
		return lifecycle.FleetHold{}, nil
	}
	h, err := hs.Guards.FleetHold(ctx)
	if err != nil {
		return h, fmt.Errorf("read the fleet's hold: %w", err)
	}
	return h, nil
}

// MayEnd returns a *FleetHeldError while the fleet is held. If the hold cannot be read that is
// an error too, and no host is ended.
func (hs *Hosts) MayEnd(ctx context.Context, now time.Time) error {
	h, err := hs.FleetHold(ctx)
	if err != nil {
		return err
	}
	if h.InForce(now) {
		return &FleetHeldError{Hold: h}
	}
	return nil
}

// markForFleet marks a host whose own hold was just removed, if the fleet is held: otherwise
// its agent could end it before a sweep has looked at it.
func (hs *Hosts) markForFleet(ctx context.Context, r *lifecycle.Record, now time.Time) error {
	h, err := hs.FleetHold(ctx)
	if err == nil && h.InForce(now) {
		r.Hold, r.FleetHeld = h.Mark(), true
	}
	return err
}

// decideUnderHold is Decide with the fleet's hold. If facts lack the hold, it is read once the
// decision depends on it.
func (hs *Hosts) decideUnderHold(ctx context.Context, facts lifecycle.Facts, now time.Time) (lifecycle.Decision, error) {
	d := hs.Decide(facts, now)
	if facts.FleetHold != nil || !d.Ends() && !facts.Record.FleetHeld && !facts.Record.Held(now) {
		return d, nil
	}
	h, err := hs.FleetHold(ctx)
	if err != nil {
		return d, err
	}
	facts.FleetHold = &h
	return hs.Decide(facts, now), nil
}

// EndMachines is the only way to Compute.Terminate. It returns a *FleetHeldError while the fleet is held.
func (hs *Hosts) EndMachines(ctx context.Context, instanceIDs []string, now time.Time) error {
	if err := hs.MayEnd(ctx, now); err != nil {
		return err
	}
	return hs.Ender.Terminate(ctx, instanceIDs)
}

type Ender interface {
	Terminate(ctx context.Context, instanceIDs []string) error
}

// FleetHeldError says that the hold on the whole fleet forbids to end a host.
type FleetHeldError = lifecycle.FleetHeldError
