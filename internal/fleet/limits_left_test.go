package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/policy"
)

// A reservation whose last host is gone is given back by the cloud sweep, though no machine and no host is of its
// repository any more: a crash after the loss of the runner leaves it so, and the loss of a table.
func TestAReservationWithoutHosts(t *testing.T) {
	inBubbleOf(t, func(o *fleet.Options) {
		limited(policy.Limits{HostsPerRepository: 3})(o)
		o.Repositories = []string{repository}
	}, func(ctx context.Context, t *testing.T, w *world) {
		name := ledger.Name(ledger.OfRepository, repository)
		left := ledger.Quota{Name: name, Reservations: []ledger.Reservation{{Repository: repository, RunID: "9", RequestID: "lost", Hosts: 2, At: time.Now()}}}
		if _, err := w.store.UpdateQuotaLedger(ctx, left); err != nil {
			t.Fatal(err)
		}
		go w.fleet.Sweep(ctx)
		time.Sleep(12 * time.Minute)
		a, err := w.store.QuotaLedger(ctx, name)
		if err != nil || len(a.Reservations) != 0 {
			t.Errorf("reservations: %+v, %v; want none", a.Reservations, err)
		}
	})
}

// A cloud sweep looks through an account that has a reservation of five minutes, and through none of younger ones: their requests are about to use them.
func TestOnlyOldReservationsAreLookedAt(t *testing.T) {
	inBubbleOf(t, func(o *fleet.Options) {
		limited(policy.Limits{HostsPerRepository: 3})(o)
		o.Repositories = []string{repository}
	}, func(ctx context.Context, t *testing.T, w *world) {
		left := ledger.Quota{Name: ofRepository, Reservations: []ledger.Reservation{{Repository: repository, RunID: "9", RequestID: "lost", Hosts: 2, At: time.Now()}}}
		if _, err := w.store.UpdateQuotaLedger(ctx, left); err != nil {
			t.Fatal(err)
		}
		for _, at := range []struct {
			after  time.Duration
			looked bool
		}{{5*time.Minute - 1, false}, {1, true}} {
			time.Sleep(at.after)
			w.sweepOnce(ctx, w.fleet.NewCloudSweep())
			a, err := w.store.QuotaLedger(ctx, ofRepository)
			if err != nil || a.AuditedAt.IsZero() == at.looked || (len(a.Reservations) == 0) != at.looked {
				t.Errorf("looked through %s, and it has %+v: %v; want that it is: %t", a.AuditedAt, a.Reservations, err, at.looked)
			}
		}
	})
}
