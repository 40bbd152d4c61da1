package hosts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/listing"
)

// DrainTarget names the hosts that an operator has leave: one host, or those of a pool, or all if both are empty.
type DrainTarget struct {
	InstanceID, Pool string
}

// Drained counts the hosts of a drain.
type Drained struct {
	// Now are those that leave by this drain, Before those that were leaving already.
	Now, Before int
}

// Drain has hosts leave: no other run gets them, and each ends when it has no run. by is who asked for it, and is shown
// to people. Each host is one conditional write, so a drain that was cut short is repeated. An unknown host is
// lifecycle.ErrNotFound and a terminated one a *StateError.
func (hs *Hosts) Drain(ctx context.Context, of DrainTarget, reason, by string, now time.Time) (Drained, error) {
	j := new(hs.Ops.Recorder(""))
	defer j.Flush(ctx)
	why := lifecycle.Because(lifecycle.ReasonDrained, "%s", reasoned("drained by "+by, reason))
	if of.InstanceID != "" {
		return hs.drainOne(ctx, j, of.InstanceID, why, now)
	}
	var all Drained
	records := listing.All(lifecycle.PageOf{}, func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
		return hs.Store.ListInstances(ctx, lifecycle.Filter{States: lifecycle.LiveStates, Pool: of.Pool}, page)
	})
	for r, err := range records {
		if err != nil {
			return all, fmt.Errorf("drain hosts: list them: %w", err)
		}
		one, err := hs.drainOne(ctx, j, r.InstanceID, why, now)
		var ended *StateError
		if err != nil && !errors.As(err, &ended) && !errors.Is(err, lifecycle.ErrNotFound) { // it left by itself
			return all, err
		}
		all.Now, all.Before = all.Now+one.Now, all.Before+one.Before
	}
	return all, nil
}

// drainOne has one host leave. One that leaves for another reason keeps that.
func (hs *Hosts) drainOne(ctx context.Context, j *op.Recorder, instanceID string, why lifecycle.Reason, now time.Time) (n Drained, err error) {
	_, err = hs.Change(ctx, instanceID, func(r lifecycle.Record) (lifecycle.Record, error) {
		n = Drained{}
		switch {
		case r.State == lifecycle.StateTerminated:
			return r, &StateError{InstanceID: instanceID, State: string(r.State), Order: "drain"}
		case r.RetiringReason != "", r.Retiring && !r.ScalingDown():
			n.Before++
			return r, nil
		}
		n.Now++
		return r, hs.Retire(ctx, j, Retirement{Record: r, Why: why}, now)
	})
	if err != nil {
		return Drained{}, err
	}
	return n, nil
}
