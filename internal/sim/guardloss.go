package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/store"
)

// The rows that the fleet has few of, and those of a service.
var (
	guardKinds = []*store.Kind{
		store.FleetHolds.Kind, store.Pauses.Kind, store.Breakers.Kind, store.Leases.Kind, store.ReplicaSets.Kind, store.QuotaLedgers.Kind,
	}
	serviceKinds = []*store.Kind{store.Services.Kind}
	workKinds    = []*store.Kind{store.Work.Kind, store.Workers.Kind}
)

// losingGuards: in some of the lives that lose tables these rows are lost too. Those of the second kind have pauses.
func (l *life) losingGuards() bool {
	return l.losing() && (l.Config.Seed%4 == 3 || l.pausing() && l.Config.Seed%20 == 8)
}

// loseGuards loses and restores the guards of the fleet, and the rows of the service. The store is not away: these rows are few, and an
// operator may delete one.
func (l *life) loseGuards() {
	if !l.losingGuards() {
		return
	}
	l.loseEvery(3*time.Minute, engine.FaultGuardsLost, guardKinds)
	if l.serving() {
		l.loseEvery(4*time.Minute, engine.FaultServicesLost, serviceKinds)
		l.loseEvery(6*time.Minute, engine.FaultWorkLost, workKinds)
	}
}

// loseEvery loses some rows of one of the kinds from time to time, or restores them all.
func (l *life) loseEvery(mean time.Duration, f engine.Fault, kinds []*store.Kind) {
	var again func()
	again = func() {
		if !l.Chaos {
			return
		}
		l.Coverage.Faults[f]++
		k := kinds[l.Rand.IntN(len(kinds))]
		if l.Rand.IntN(2) == 0 {
			l.LoseSome(k, 0.5)
		} else {
			l.Restore(1, k)
		}
		l.After(l.Exp(mean, 3*mean), again)
	}
	l.After(l.Between(4*time.Minute, 2*4*time.Minute), again)
}

// resumeAll has an operator end the pauses that were restored, once the faults are over.
func (l *life) resumeAll() {
	if l.losingGuards() && l.pausing() {
		for _, pool := range pausedPools {
			l.resume(pool)
		}
	}
}
