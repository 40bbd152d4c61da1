// Package quota bounds how many hosts a fleet has: limits on the hosts of each repository and owner, the
// maximum of each pool, and the breaker that pauses spot launches. What counts against a limit is kept in one
// row for each limit, with an entry for each request or launch.
package quota

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Ledger reserves room within limits and gives it back. Its exported fields are its parts: they are set
// before the first call and not changed after it. It is safe for concurrent use.
type Ledger struct {
	Store ports.Store
	// Guards keeps the rows; nil: there are no limits, maxima and breakers.
	Guards  ports.GuardStore
	Compute ports.Machines
	Hosts   *hosts.Hosts
	Limits  policy.Limits
	Pools   map[string]ports.Pool
	Log     hclog.Logger
	Ops     *op.Driver
}

// LimitsOf are the limits on the hosts of a repository's runs. Without limits in the
// configuration there are none, and no ledger is read.
func (ld *Ledger) LimitsOf(repository string) []policy.Limit { return ld.Limits.Of(repository) }

// On reports whether there are limits on the hosts of runs.
func (ld *Ledger) On() bool { return ld.Limits.On() }

// Read reads the ledger of a limit.
func (ld *Ledger) Read(ctx context.Context, l policy.Limit) (policy.Quota, error) {
	a, err := ld.Guards.QuotaLedger(ctx, l.LedgerName())
	if err != nil {
		return policy.Quota{}, fmt.Errorf("read the hosts that count against %s: %w", l.Key, err)
	}
	return policy.Quota{Limit: l, Ledger: a}, nil
}

// Write writes a ledger that was read and changed: ErrConflict if another replica wrote it since.
func (ld *Ledger) Write(ctx context.Context, l policy.Limit, a lifecycle.QuotaLedger) (lifecycle.QuotaLedger, error) {
	stored, err := ld.Guards.UpdateQuotaLedger(ctx, a)
	if err != nil {
		return a, fmt.Errorf("write the hosts that count against %s: %w", l.Key, err)
	}
	return stored, nil
}

// rewrite replaces a reservation in the ledger of a limit by what change makes of the ledger, unless change reports
// false. It reports whether the ledger was written.
func (ld *Ledger) rewrite(ctx context.Context, l policy.Limit, change func(lifecycle.QuotaLedger) (lifecycle.Reservation, bool)) (changed bool, err error) {
	err = op.Rewrite("ledger "+l.LedgerName(), func() error {
		room, err := ld.Read(ctx, l)
		if err != nil {
			return err
		}
		e, ok := change(room.Ledger)
		if ok {
			_, err = ld.Write(ctx, l, room.Ledger.With(e))
		}
		changed = ok && err == nil
		return err
	})
	return changed, err
}

// GiveBack reduces the reservation of a settled request to the hosts that still serve it, in one ledger. Repeating
// it changes nothing.
func (ld *Ledger) GiveBack(ctx context.Context, l policy.Limit, q lifecycle.Request, serving int) (changed bool, err error) {
	return ld.rewrite(ctx, l, func(a lifecycle.QuotaLedger) (lifecycle.Reservation, bool) {
		e := a.ReservationOf(q, 0)
		lower := e.Hosts != 0 && e.Hosts != serving
		e.Hosts = serving
		return e, lower
	})
}

// HostLeft makes the request of a host due that ended before the release of its run: the due
// sweep then gives back the host's share. Otherwise the reservation would stay until a request
// finds the ledger full. It returns the request as it now stands.
func (ld *Ledger) HostLeft(ctx context.Context, q lifecycle.Request, now time.Time) (lifecycle.Request, error) {
	if !ld.Limits.On() || !q.DueAt.IsZero() { // one that is due is looked at by itself
		return q, nil
	}
	q.DueAt = now
	stored, err := ld.Store.UpdateRequest(ctx, q)
	if err != nil {
		return q, fmt.Errorf("have request %s give room back: %w", q.RequestID, err)
	}
	return stored, nil
}
