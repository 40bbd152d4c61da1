package sim

import (
	"context"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// guards is the store of the fleet's hold and of limits, in lives that have one of
// them; nil in others, which then read no more than they did without.
func (w *world) guards() fleet.GuardStore {
	if !w.limited() && !w.holding() && !w.serving() {
		return nil
	}
	return storePort{w}
}

func (s storePort) FleetHold(context.Context) (lifecycle.FleetHold, error) {
	return read(s, "read the fleet's hold", "", func(m *memory.Store) (lifecycle.FleetHold, error) {
		s.w.current.holdRead = readMark{s.w.now, s.w.current.stalled}
		return m.FleetHold(background)
	})
}

func (s storePort) UpdateFleetHold(_ context.Context, h lifecycle.FleetHold) (lifecycle.FleetHold, error) {
	var before lifecycle.FleetHold
	return write(s, "write the fleet's hold", func(m *memory.Store) (lifecycle.FleetHold, error) {
		before, _ = m.FleetHold(background)
		return m.UpdateFleetHold(background, h)
	}, func(after lifecycle.FleetHold) { s.w.fleetHoldWritten(before, after) })
}

func (s storePort) Breaker(_ context.Context, pool string) (lifecycle.Breaker, error) {
	return read(s, "read breaker", "", func(m *memory.Store) (lifecycle.Breaker, error) { return m.Breaker(background, pool) })
}

func (s storePort) UpdateBreaker(_ context.Context, b lifecycle.Breaker) (lifecycle.Breaker, error) {
	return write(s, "write breaker "+b.Pool, func(m *memory.Store) (lifecycle.Breaker, error) {
		return m.UpdateBreaker(background, b)
	}, func(lifecycle.Breaker) {})
}

func (s storePort) QuotaLedger(_ context.Context, name string) (lifecycle.QuotaLedger, error) {
	return read(s, "read account", "", func(m *memory.Store) (lifecycle.QuotaLedger, error) { return m.QuotaLedger(background, name) })
}

func (s storePort) UpdateQuotaLedger(_ context.Context, a lifecycle.QuotaLedger) (lifecycle.QuotaLedger, error) {
	return write(s, "write account "+a.Name, func(m *memory.Store) (lifecycle.QuotaLedger, error) {
		return m.UpdateQuotaLedger(background, a)
	}, func(after lifecycle.QuotaLedger) { s.w.accountWritten(after) })
}
