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

// Instance reads one host with its agent's report, if it has one that may be believed.
func (hs *Hosts) Instance(ctx context.Context, instanceID string, now time.Time) (lifecycle.Record, *lifecycle.Report, error) {
	r, err := hs.Find(ctx, instanceID)
	if err != nil {
		return r, nil, fmt.Errorf("instance %s: %w", instanceID, err)
	}
	reports, err := hs.Reports(ctx, []string{r.HostKey}, now)
	if err != nil {
		return r, nil, fmt.Errorf("instance %s: %w", instanceID, err)
	}
	if report, ok := reports[r.HostKey]; ok {
		return r, &report, nil
	}
	return r, nil, nil
}

// Find reads the record of a host. A host that was launched under an earlier role has another
// key, which the tags of its machine show.
func (hs *Hosts) Find(ctx context.Context, instanceID string) (lifecycle.Record, error) {
	key := hs.HostKey(instanceID)
	r, err := hs.Store.Instance(ctx, key)
	if !errors.Is(err, lifecycle.ErrNotFound) {
		return r, err
	}
	if key == instanceID {
		return r, lifecycle.ErrNotFound // callers name the host
	}
	machines, cloudErr := hs.Compute.Describe(ctx, []string{instanceID})
	if cloudErr != nil || len(machines) != 1 || machines[0].HostKey == "" || machines[0].HostKey == key {
		return r, lifecycle.ErrNotFound
	}
	return hs.Store.Instance(ctx, machines[0].HostKey)
}

// Terminate ends a host by order, busy or not: first its record, then its machine. It is safe
// to repeat. A held host is a *HeldError, a host of a held fleet a *FleetHeldError.
func (hs *Hosts) Terminate(ctx context.Context, instanceID, reason string, now time.Time) (lifecycle.Record, error) {
	j := new(hs.Ops.Recorder(""))
	defer j.Flush(ctx)
	r, err := hs.Change(ctx, instanceID, func(r lifecycle.Record) (lifecycle.Record, error) {
		if r.State == lifecycle.StateTerminated {
			return r, nil
		}
		if r.Held(now) && !r.FleetHeld {
			return r, &HeldError{InstanceID: instanceID, Until: r.Hold}
		}
		d := lifecycle.Decision{Action: lifecycle.ActionTerminate, Code: lifecycle.ReasonOrdered, Reason: reasoned("ordered", reason), LosesRun: true}
		return hs.ApplyChecked(ctx, j, r, d, now)
	})
	if err != nil {
		return r, err
	}
	var held *FleetHeldError
	if err := hs.EndMachines(ctx, []string{instanceID}, now); errors.As(err, &held) {
		return r, held
	} else if err != nil {
		hs.Log.Warn("machine not ended yet; the due sweep goes on", logkey.Instance, instanceID, logkey.Error, err)
	}
	return r, nil
}

// Hold keeps a host from being claimed or ended until now + d (at most
// lifecycle.MaxHold); d of 0 takes the hold away.
func (hs *Hosts) Hold(ctx context.Context, instanceID string, d time.Duration, reason string, now time.Time) (lifecycle.Record, error) {
	if d < 0 || d > lifecycle.MaxHold {
		return lifecycle.Record{}, &InvalidError{"duration", fmt.Sprintf("%s is not between 0 and %s", d, lifecycle.MaxHold)}
	}
	j := new(hs.Ops.Recorder(""))
	defer j.Flush(ctx)
	return hs.Change(ctx, instanceID, func(r lifecycle.Record) (lifecycle.Record, error) {
		if r.State == lifecycle.StateTerminated {
			return r, &StateError{InstanceID: instanceID, State: string(r.State), Order: "hold"}
		}
		before := r
		r.Hold, r.FleetHeld, r.UpdatedAt = time.Time{}, false, now
		why := reasoned("hold taken away", reason)
		if d > 0 {
			r.Hold = now.Add(d)
			why = reasoned(fmt.Sprintf("held for %s", d), reason)
		}
		// Looked at before the hold ends, or at once if it was taken away.
		r.DueAt = r.HoldCheckAt(now)
		if d == 0 {
			r.DueAt = now
			if err := hs.markForFleet(ctx, &r, now); err != nil {
				return before, err
			}
		}
		stored, err := hs.Store.UpdateInstance(ctx, r)
		if err != nil {
			return before, fmt.Errorf("hold host %s: %w", instanceID, err)
		}
		j.RecordEffect(op.TransitionEvent(before, stored, lifecycle.Decision{Action: lifecycle.ActionHold, Code: lifecycle.ReasonOrdered, Reason: why}, now))
		return stored, nil
	})
}

// reasoned is what was ordered, with the reason if one was given.
func reasoned(what, reason string) string {
	if reason == "" {
		return what
	}
	return what + ": " + reason
}

// Change reads a record and applies do to it, again if the record changed in between.
func (hs *Hosts) Change(ctx context.Context, instanceID string, do func(lifecycle.Record) (lifecycle.Record, error)) (r lifecycle.Record, err error) {
	err = op.Rewrite("instance "+instanceID, func() (err error) {
		if r, err = hs.Find(ctx, instanceID); err != nil {
			return fmt.Errorf("instance %s: %w", instanceID, err)
		}
		r, err = do(r)
		return err
	})
	return r, err
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
	if facts.FleetHold != nil || !d.AsksForHold(facts.Record, now) {
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

// Ender ends, stops and starts machines, and replaces their root volumes.
type Ender interface {
	Terminate(ctx context.Context, instanceIDs []string) error
	Stop(ctx context.Context, instanceID string, hibernate bool) error
	Start(ctx context.Context, instanceID string) error
	ReplaceRoot(ctx context.Context, instanceID, token string) (lifecycle.RootTask, error)
}

// FleetHeldError says that the hold on the whole fleet forbids to end a host.
type FleetHeldError = fleethold.Error
