// Package quota bounds how many hosts a fleet has: limits on the hosts of each repository and owner, the
// maximum of each pool, the pause of a pool, and the breaker that pauses spot launches. What counts against a limit is kept in one
// row for each limit, with an entry for each request or launch.
package quota

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/warmrequest"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/budget"
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
	// Budget finds the budget that keeps a repository's runs from more hosts (nil: none does). nil: there are no budgets.
	Budget func(ctx context.Context, repository string, now time.Time) (*budget.Use, error)
	Pools  map[string]ports.Pool
	Timing ports.Timing
	Log    hclog.Logger
	Ops    *op.Driver

	pauses pauses
}

// LimitsOf are the limits on the hosts of a repository's runs. Without limits in the
// configuration there are none, and no ledger is read.
func (ld *Ledger) LimitsOf(repository string) []policy.Limit { return ld.Limits.Of(repository) }

// On reports whether there are limits on the hosts of runs.
func (ld *Ledger) On() bool { return ld.Limits.On() }

// BudgetAgainst finds the budget that keeps a repository's runs from more hosts; nil: none does.
func (ld *Ledger) BudgetAgainst(ctx context.Context, repository string, now time.Time) (*budget.Use, error) {
	if ld.Budget == nil {
		return nil, nil
	}
	return ld.Budget(ctx, repository, now)
}

// Read reads the ledger of a limit.
func (ld *Ledger) Read(ctx context.Context, l policy.Limit) (policy.Quota, error) {
	a, err := ld.Guards.QuotaLedger(ctx, l.LedgerName())
	if err != nil {
		return policy.Quota{}, fmt.Errorf("read the hosts that count against %s: %w", l.Key, err)
	}
	return policy.Quota{Limit: l, Ledger: a}, nil
}

// Write writes a ledger that was read and changed: ErrConflict if another replica wrote it since.
func (ld *Ledger) Write(ctx context.Context, l policy.Limit, a ledger.Quota) (ledger.Quota, error) {
	stored, err := ld.Guards.UpdateQuotaLedger(ctx, a)
	if err != nil {
		return a, fmt.Errorf("write the hosts that count against %s: %w", l.Key, err)
	}
	return stored, nil
}

// rewrite replaces a reservation in the ledger of a limit by what change makes of the ledger, unless change reports
// false. It reports whether the ledger was written.
func (ld *Ledger) rewrite(ctx context.Context, l policy.Limit, change func(ledger.Quota) (ledger.Reservation, bool)) (changed bool, err error) {
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
	return ld.rewrite(ctx, l, func(a ledger.Quota) (ledger.Reservation, bool) {
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

// RunnerLost makes the request of a host due whose runner was lost and that was released for it, as HostLeft does for a host that
// ended. What it cannot do a later audit does, once a request finds the ledger full.
func (ld *Ledger) RunnerLost(ctx context.Context, action lifecycle.Action, r, after lifecycle.Record) {
	lost := after.ReasonCode == lifecycle.ReasonRunnerLost || after.ReasonCode == lifecycle.ReasonVersionRefused
	if action != lifecycle.ActionRelease || !lost || !ld.Limits.On() {
		return
	}
	q, err := ld.Store.Request(ctx, r.Repository, r.RunID, r.RequestID)
	if err == nil && q.Settled() && !q.Released() {
		_, err = ld.HostLeft(ctx, q, after.UpdatedAt)
	}
	if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
		ld.Log.Warn("room of a lost runner not given back; the next audit will", logkey.Instance, r.InstanceID, logkey.Request, r.RequestID, logkey.Error, err)
	}
}

// lookEvery is how often the reservations of a full ledger are compared with their requests and hosts. A
// comparison costs a few reads for each of them, and a listing for a launch that was cut short.
const lookEvery = 10 * time.Second

// lookAtMost bounds the reservations of one audit. Those that stay go behind the others, so
// that the next audit has other ones.
const lookAtMost = 50

// MayAudit reports whether it is time to audit a ledger again. An audit in the future was made
// by a replica whose clock is ahead.
func (ld *Ledger) MayAudit(a ledger.Quota, now time.Time) bool {
	return len(a.Reservations) > 0 && now.Sub(a.AuditedAt).Abs() >= lookEvery
}

// Audit removes from a ledger what is not needed: a host that died without its run's release, and what a
// crash left of a request. It is a single conditional write. If another replica wrote first, that write wins
// and this one is dropped. A reservation that cannot be judged stays as it is.
func (ld *Ledger) Audit(ctx context.Context, room policy.Quota, now time.Time) error {
	a := room.Ledger
	n := min(len(a.Reservations), lookAtMost)
	entries := slices.Clone(a.Reservations[n:])
	for i, e := range a.Reservations[:n] {
		needed, err := ld.neededOf(ctx, room.Limit, e, now)
		if err != nil {
			ld.Log.Warn("not known whether hosts that count against a limit are needed; a later look will tell",
				logkey.Limit, room.Limit.Key, logkey.Request, e.RequestID, logkey.Error, err)
		}
		if needed.Hosts > 0 {
			entries = append(entries, needed)
		}
		if errors.Is(err, lifecycle.ErrUnavailable) { // nor would the others be
			entries = slices.Concat(a.Reservations[i+1:n], entries)
			break
		}
	}
	a.Reservations, a.AuditedAt = entries, now
	_, err := ld.Write(ctx, room.Limit, a)
	if errors.Is(err, lifecycle.ErrConflict) {
		return nil
	}
	return err
}

// neededOf is what a reservation in the ledger of a limit has to be.
func (ld *Ledger) neededOf(ctx context.Context, l policy.Limit, e ledger.Reservation, now time.Time) (ledger.Reservation, error) {
	if l.Kind == ledger.OfPool {
		return ld.neededLaunch(ctx, e, now)
	}
	return ld.needed(ctx, e)
}

// needed is what the reservation of a request has to be. An open request may take hosts up to
// it, and one that is settled and due gives back by itself. For any other request the hosts
// that serve it count, and their number only falls.
func (ld *Ledger) needed(ctx context.Context, e ledger.Reservation) (ledger.Reservation, error) {
	q, err := ld.Store.Request(ctx, e.Repository, e.RunID, e.RequestID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		// Its row is written before its entry, and expires long after its hosts.
		q = lifecycle.Request{Repository: e.Repository, RunID: e.RunID, RequestID: e.RequestID}
	case err != nil:
		return e, fmt.Errorf("read request %s: %w", e.RequestID, err)
	case !q.Settled() || !q.DueAt.IsZero():
		return e, nil
	}
	serving, _, err := ld.Hosts.OfRequest(ctx, q, nil)
	if err != nil {
		return e, err
	}
	e.Hosts = min(e.Hosts, len(serving))
	return e, nil
}

// sweepAccounts is how many ledgers a cloud sweep audits: the others have their turn in the
// next sweeps, and a request that finds a ledger full audits it itself.
const sweepAccounts = 20

// ToAudit chooses the limits whose ledgers a sweep audits, among those of the repositories of
// machines and of hosts, of the repositories that the fleet serves, and those of the pools. A reservation may outlive
// the last host of its repository: after a crash, or when the record of a host was lost.
func (ld *Ledger) ToAudit(machines []lifecycle.Machine, ofHosts, served []string) []policy.Limit {
	var all []policy.Limit
	seen := map[string]bool{}
	add := func(limits ...policy.Limit) {
		for _, l := range limits {
			if !seen[l.LedgerName()] {
				seen[l.LedgerName()] = true
				all = append(all, l)
			}
		}
	}
	for _, m := range machines {
		if m.Repository != warmrequest.Repository {
			add(ld.LimitsOf(m.Repository)...)
		}
	}
	for _, repository := range slices.Concat(ofHosts, served) {
		add(ld.LimitsOf(repository)...)
	}
	for _, pool := range slices.Sorted(maps.Keys(ld.Pools)) {
		if l, ok := ld.MaximumOf(pool); ok {
			add(l)
		}
	}
	if len(all) > sweepAccounts {
		ld.Ops.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:sweepAccounts]
	}
	return all
}
