package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// lookEvery is how often the entries of an account that is full are held against
// the requests and hosts that they are of. A look costs a few reads for each of
// them, and a listing for a launch that was cut short.
const lookEvery = 10 * time.Second

// lookAtMost bounds the entries of one look. Those that stay go behind the others,
// so that the next look has other ones.
const lookAtMost = 50

// mayLook reports whether it is time to look through an account again. One that was
// looked at in the future was so by a replica whose clock is ahead.
func (f *Fleet) mayLook(a lifecycle.QuotaLedger, now time.Time) bool {
	return len(a.Reservations) > 0 && now.Sub(a.AuditedAt).Abs() >= lookEvery
}

// lookThrough takes out of an account what nobody needs any more: a host that died
// without its run's release, and what a crash left of a request. It is one write, of
// the account as it was read: who loses to another leaves it at that. An entry that
// cannot be judged stays as it is.
func (f *Fleet) lookThrough(ctx context.Context, room policy.Quota, now time.Time) error {
	a := room.Ledger
	n := min(len(a.Reservations), lookAtMost)
	entries := slices.Clone(a.Reservations[n:])
	for i, e := range a.Reservations[:n] {
		needed, err := f.neededOf(ctx, room.Limit, e, now)
		if err != nil {
			f.log.Warn("not known whether hosts that count against a limit are needed; a later look will tell",
				"limit", room.Limit.Key, "request", e.RequestID, "error", err)
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
	_, err := f.setAccount(ctx, room.Limit, a)
	if errors.Is(err, lifecycle.ErrConflict) {
		return nil
	}
	return err
}

// neededOf is what an entry in the account of a limit has to be.
func (f *Fleet) neededOf(ctx context.Context, l policy.Limit, e lifecycle.Reservation, now time.Time) (lifecycle.Reservation, error) {
	if l.Kind == lifecycle.QuotaPool {
		return f.neededLaunch(ctx, e, now)
	}
	return f.needed(ctx, e)
}

// needed is what an entry of a request has to be. A request that is open may take
// hosts up to it, and one that is settled and due gives back by itself; of any other
// the hosts that serve it count, which become no more.
func (f *Fleet) needed(ctx context.Context, e lifecycle.Reservation) (lifecycle.Reservation, error) {
	q, err := f.store.Request(ctx, e.Repository, e.RunID, e.RequestID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		// Its row is written before its entry, and expires long after its hosts.
		q = lifecycle.Request{Repository: e.Repository, RunID: e.RunID, RequestID: e.RequestID}
	case err != nil:
		return e, fmt.Errorf("read request %s: %w", e.RequestID, err)
	case !q.Settled() || !q.DueAt.IsZero():
		return e, nil
	}
	serving, _, err := f.hostsOf(ctx, q, nil)
	if err != nil {
		return e, err
	}
	e.Hosts = min(e.Hosts, len(serving))
	return e, nil
}
