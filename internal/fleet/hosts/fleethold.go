package hosts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// The hold on the whole fleet acts in three places, since a host ends in three ways. Reconcile and
// ApplyChecked do not write the end of a host. EndMachines, the only way to Compute.Terminate, ends no
// machine. A record whose end is due is marked, so that its agent, which leaves held hosts alone, does not
// end it either. TestTheWaysToEndAHost checks all three.

// HoldFleet keeps every host of the fleet from being ended until now + d (at most
// lifecycle.MaxHold); d of 0 removes the hold. by is who asked for it, and is shown to people.
// If the store answers reads and takes no write, as on a full disk, the hold is kept here, and
// stored is false: this process ends nothing, and stores the hold once it can.
func (hs *Hosts) HoldFleet(ctx context.Context, d time.Duration, reason, by string, now time.Time) (h fleethold.Hold, stored bool, err error) {
	if d < 0 || d > lifecycle.MaxHold {
		return h, false, &InvalidError{"duration", fmt.Sprintf("%s is not between 0 and %s", d, lifecycle.MaxHold)}
	}
	if hs.Guards == nil {
		return h, false, errors.New("hold the fleet: this fleet has no store for holds")
	}
	j := new(hs.Ops.Recorder(""))
	defer j.Flush(ctx)
	wanted := fleethold.Hold{SetAt: now, By: by, Reason: reason}
	why := reasoned("the fleet's hold was taken away by "+by, reason)
	if d > 0 {
		wanted.Until = now.Add(d)
		why = wanted.String()
	}
	read := false
	err = op.Rewrite("the fleet's hold", func() (err error) {
		if h, err = hs.Guards.FleetHold(ctx); err != nil {
			return err
		}
		read, wanted.Version = true, h.Version
		if h, err = hs.Guards.UpdateFleetHold(ctx, wanted); err == nil {
			j.RecordEffect(lifecycle.Event{At: now, Action: lifecycle.ActionHold, Code: lifecycle.ReasonOrdered, Reason: why})
		}
		return err
	})
	switch {
	case err == nil:
		hs.unstored.Store(nil)
		return h, true, nil
	case d > 0 && read && errors.Is(err, lifecycle.ErrUnavailable) && ctx.Err() == nil:
		hs.unstored.Store(&wanted)
		hs.Log.Warn("fleet hold kept in memory; it is stored once the store takes writes", logkey.Error, err)
		return wanted, false, nil
	}
	return h, false, fmt.Errorf("hold the fleet: %w", err)
}

// FleetHold is the hold on the whole fleet, in force or not. A hold that is not stored yet is tried again.
func (hs *Hosts) FleetHold(ctx context.Context) (fleethold.Hold, error) {
	if hs.Guards == nil {
		return fleethold.Hold{}, nil
	}
	h, err := hs.Guards.FleetHold(ctx)
	if err != nil {
		return h, fmt.Errorf("read the fleet's hold: %w", err)
	}
	kept := hs.unstored.Load()
	if kept == nil {
		return h, nil
	}
	if h.SetAt.After(kept.SetAt) { // another replica has stored a later one
		hs.unstored.CompareAndSwap(kept, nil)
		return h, nil
	}
	again := *kept
	again.Version = h.Version
	if stored, err := hs.Guards.UpdateFleetHold(ctx, again); err == nil {
		hs.unstored.CompareAndSwap(kept, nil) // a later hold may have taken its place
		return stored, nil
	}
	return again, nil
}
