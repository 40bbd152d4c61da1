package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// limitsOf are the limits on the hosts of a repository's runs; none where none is
// configured, and then no account is read.
func (f *Fleet) limitsOf(repository string) []policy.Limit { return f.limits.Of(repository) }

// room reads what counts against a limit.
func (f *Fleet) room(ctx context.Context, l policy.Limit) (policy.Quota, error) {
	a, err := f.guards.QuotaLedger(ctx, l.LedgerName())
	if err != nil {
		return policy.Quota{}, fmt.Errorf("read the hosts that count against %s: %w", l.Key, err)
	}
	return policy.Quota{Limit: l, Ledger: a}, nil
}

// setAccount writes an account as it was read and changed: ErrLost if somebody
// else wrote it since.
func (f *Fleet) setAccount(ctx context.Context, l policy.Limit, a lifecycle.QuotaLedger) (lifecycle.QuotaLedger, error) {
	stored, err := f.guards.UpdateQuotaLedger(ctx, a)
	if err != nil {
		return a, fmt.Errorf("write the hosts that count against %s: %w", l.Key, err)
	}
	return stored, nil
}

// giveBack leaves a settled request room for the hosts that serve it still, in one
// account. Repeating it changes nothing.
func (f *Fleet) giveBack(ctx context.Context, l policy.Limit, q lifecycle.Request, hosts int) (changed bool, err error) {
	for range orderTries {
		room, err := f.room(ctx, l)
		if err != nil {
			return false, err
		}
		e := room.Ledger.ReservationOf(q, 0)
		if e.Hosts == 0 || e.Hosts == hosts {
			return false, nil
		}
		e.Hosts = hosts
		if _, err = f.setAccount(ctx, l, room.Ledger.With(e)); !errors.Is(err, lifecycle.ErrConflict) {
			return err == nil, err
		}
	}
	return false, accountBusy(l)
}

// accountBusy is the error where others write an account all the time.
func accountBusy(l policy.Limit) error {
	return &lifecycle.UnavailableError{What: "account " + l.LedgerName(), RetryAfter: time.Second, Err: errors.New("it keeps changing")}
}

// servesNoMore has the request of a host that ended before the release of its run
// looked at again, which gives the host's room back: else the entry would stay until
// somebody finds the account full. It returns the request as it now stands.
func (f *Fleet) servesNoMore(ctx context.Context, q lifecycle.Request, now time.Time) (lifecycle.Request, error) {
	if !f.limits.On() || !q.DueAt.IsZero() { // one that is due is looked at by itself
		return q, nil
	}
	q.DueAt = now
	stored, err := f.store.UpdateRequest(ctx, q)
	if err != nil {
		return q, fmt.Errorf("have request %s give room back: %w", q.RequestID, err)
	}
	return stored, nil
}
