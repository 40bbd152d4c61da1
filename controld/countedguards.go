package main

import (
	"context"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// countedGuards is a store of guards whose calls are counted.
type countedGuards struct {
	fleet.GuardStore
	counter
}

func (s countedGuards) FleetHold(ctx context.Context) (_ lifecycle.FleetHold, err error) {
	defer s.count("fleet_hold", &err)
	return s.GuardStore.FleetHold(ctx)
}

func (s countedGuards) UpdateFleetHold(ctx context.Context, h lifecycle.FleetHold) (_ lifecycle.FleetHold, err error) {
	defer s.count("update_fleet_hold", &err)
	return s.GuardStore.UpdateFleetHold(ctx, h)
}

func (s countedGuards) Breaker(ctx context.Context, pool string) (_ lifecycle.Breaker, err error) {
	defer s.count("breaker", &err)
	return s.GuardStore.Breaker(ctx, pool)
}

func (s countedGuards) UpdateBreaker(ctx context.Context, b lifecycle.Breaker) (_ lifecycle.Breaker, err error) {
	defer s.count("update_breaker", &err)
	return s.GuardStore.UpdateBreaker(ctx, b)
}

func (s countedGuards) QuotaLedger(ctx context.Context, name string) (_ lifecycle.QuotaLedger, err error) {
	defer s.count("account", &err)
	return s.GuardStore.QuotaLedger(ctx, name)
}

func (s countedGuards) UpdateQuotaLedger(ctx context.Context, a lifecycle.QuotaLedger) (_ lifecycle.QuotaLedger, err error) {
	defer s.count("update_account", &err)
	return s.GuardStore.UpdateQuotaLedger(ctx, a)
}
