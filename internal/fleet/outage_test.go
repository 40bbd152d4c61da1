package fleet_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
)

// outage is a store that can be away for a while. Only what the sweeps begin
// with is covered: nothing else is reached without it.
type outage struct {
	fleet.Store
	away atomic.Bool
	// full: it can be read and not written.
	full atomic.Bool
}

func (o *outage) set(away bool) { o.away.Store(away) }

func (o *outage) err() error {
	if o.away.Load() {
		return lifecycle.ErrUnavailable
	}
	return nil
}

// fullGuards are guards that can be read, and not written while the store is full.
type fullGuards struct {
	fleet.GuardStore
	full *atomic.Bool
	// after is called after each write; it may be nil.
	after func()
}

func (g fullGuards) UpdateFleetHold(ctx context.Context, h fleethold.Hold) (fleethold.Hold, error) {
	if g.full.Load() {
		return h, lifecycle.ErrUnavailable
	}
	stored, err := g.GuardStore.UpdateFleetHold(ctx, h)
	if g.after != nil {
		g.after()
	}
	return stored, err
}

func (o *outage) AllReports(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Report], error) {
	if err := o.err(); err != nil {
		return lifecycle.Page[lifecycle.Report]{}, err
	}
	return o.Store.AllReports(ctx, page)
}

func (o *outage) DueInstances(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
	if err := o.err(); err != nil {
		return lifecycle.Page[lifecycle.Record]{}, err
	}
	return o.Store.DueInstances(ctx, now, page)
}

func (o *outage) Lease(ctx context.Context, name string) (replicas.Lease, error) {
	if err := o.err(); err != nil {
		return replicas.Lease{}, err
	}
	return o.Store.Lease(ctx, name)
}

func (o *outage) TakeLease(ctx context.Context, l replicas.Lease) (replicas.Lease, error) {
	if o.full.Load() {
		return replicas.Lease{}, lifecycle.ErrUnavailable
	}
	return o.Store.TakeLease(ctx, l)
}

func (o *outage) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	if o.full.Load() {
		return lifecycle.Record{}, lifecycle.ErrUnavailable
	}
	return o.Store.UpdateInstance(ctx, r)
}
