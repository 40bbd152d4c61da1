package ports

import (
	"context"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// GuardStore keeps what bounds the fleet as a whole. Reads are consistent, and
// what was never written is empty and of version 0. Its errors are those of Store.
type GuardStore interface {
	// FleetHold reads the hold on the whole fleet.
	FleetHold(ctx context.Context) (lifecycle.FleetHold, error)
	// UpdateFleetHold replaces the hold whose stored version is h.Version (0: there
	// is none) and returns it as stored, with the next version. Else: ErrLost.
	UpdateFleetHold(ctx context.Context, h lifecycle.FleetHold) (lifecycle.FleetHold, error)
	// Breaker reads the breaker of a pool.
	Breaker(ctx context.Context, pool string) (lifecycle.Breaker, error)
	// UpdateBreaker is UpdateFleetHold for a breaker.
	UpdateBreaker(ctx context.Context, b lifecycle.Breaker) (lifecycle.Breaker, error)
	// QuotaLedger reads the account of a limit.
	QuotaLedger(ctx context.Context, name string) (lifecycle.QuotaLedger, error)
	// UpdateQuotaLedger is UpdateFleetHold for an account.
	UpdateQuotaLedger(ctx context.Context, a lifecycle.QuotaLedger) (lifecycle.QuotaLedger, error)
}
