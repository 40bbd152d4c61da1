package memory

import (
	"context"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// FleetHold reads the hold on the whole fleet; one that was never set is empty
// and of version 0.
func (s *Store) FleetHold(ctx context.Context) (lifecycle.FleetHold, error) {
	end, err := s.begin(ctx, "read the fleet's hold")
	if err != nil {
		return lifecycle.FleetHold{}, err
	}
	defer end()
	return s.hold, nil
}

// UpdateFleetHold replaces the hold whose stored version is h.Version (0: there is
// none) and returns it as stored: else ErrLost.
func (s *Store) UpdateFleetHold(ctx context.Context, h lifecycle.FleetHold) (lifecycle.FleetHold, error) {
	const what = "write the fleet's hold"
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return lifecycle.FleetHold{}, err
	}
	defer end()
	if s.hold.Version != h.Version {
		return lifecycle.FleetHold{}, lost(what)
	}
	h.Version++
	s.hold = row.FleetHold(h)
	return s.hold, nil
}

// Breaker reads the breaker of a pool; one that was never written is empty and of
// version 0.
func (s *Store) Breaker(ctx context.Context, pool string) (lifecycle.Breaker, error) {
	end, err := s.begin(ctx, "read breaker of pool "+pool)
	if err != nil {
		return lifecycle.Breaker{}, err
	}
	defer end()
	if b, ok := s.breakers[pool]; ok {
		return row.Breaker(b), nil
	}
	return lifecycle.Breaker{Pool: pool}, nil
}

// UpdateBreaker replaces the breaker whose stored version is b.Version (0: there
// is none) and returns it as stored: else ErrLost.
func (s *Store) UpdateBreaker(ctx context.Context, b lifecycle.Breaker) (lifecycle.Breaker, error) {
	what := "update breaker of pool " + b.Pool
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return lifecycle.Breaker{}, err
	}
	defer end()
	if s.breakers[b.Pool].Version != b.Version {
		return lifecycle.Breaker{}, lost(what)
	}
	b.Version++
	s.breakers[b.Pool] = row.Breaker(b)
	return row.Breaker(b), nil
}

// QuotaLedger reads the account of a limit; one that was never written is empty and of
// version 0.
func (s *Store) QuotaLedger(ctx context.Context, name string) (lifecycle.QuotaLedger, error) {
	end, err := s.begin(ctx, "read account "+name)
	if err != nil {
		return lifecycle.QuotaLedger{}, err
	}
	defer end()
	if a, ok := s.accounts[name]; ok {
		return row.Account(a), nil
	}
	return lifecycle.QuotaLedger{Name: name}, nil
}

// UpdateQuotaLedger replaces the account whose stored version is a.Version (0: there
// is none) and returns it as stored: else ErrLost.
func (s *Store) UpdateQuotaLedger(ctx context.Context, a lifecycle.QuotaLedger) (lifecycle.QuotaLedger, error) {
	what := "update account " + a.Name
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return lifecycle.QuotaLedger{}, err
	}
	defer end()
	if s.accounts[a.Name].Version != a.Version {
		return lifecycle.QuotaLedger{}, lost(what)
	}
	a.Version++
	s.accounts[a.Name] = row.Account(a)
	return row.Account(a), nil
}
