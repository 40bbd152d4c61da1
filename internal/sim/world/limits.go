package world

import (
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// AllLimits are the limits of this life.
func (w *World) AllLimits() []policy.Limit {
	var all []policy.Limit
	seen := map[string]bool{}
	for _, repository := range Repositories {
		for _, l := range w.Limits.Of(repository) {
			if !seen[l.LedgerName()] {
				seen[l.LedgerName()] = true
				all = append(all, l)
			}
		}
	}
	for _, name := range []string{"default", "once", "owner"} {
		if most := w.Pools[name].Maximum; most != nil {
			all = append(all, policy.PoolLimit(name, *most))
		}
	}
	return all
}

// Account is the ledger of a limit.
func (w *World) Account(l policy.Limit) ledger.Quota {
	return engine.Must1(w.Truth.QuotaLedger(engine.Background, l.LedgerName()))
}
