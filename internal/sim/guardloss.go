package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/store"
)

// rowLoss is a kind of row that is lost and restored, and the fault that counts how often some row of it was.
type rowLoss struct {
	kind  *store.Kind
	fault engine.Fault
}

// The rows that the fleet has few of, and those of a service.
var (
	holdRows  = []rowLoss{{store.FleetHolds.Kind, engine.FaultHoldLost}}
	pauseRows = []rowLoss{{store.Pauses.Kind, engine.FaultPauseLost}}
	guardRows = []rowLoss{
		{store.QuotaLedgers.Kind, engine.FaultLedgerLost}, {store.Breakers.Kind, engine.FaultBreakerLost}, {store.Leases.Kind, engine.FaultLeaseLost},
	}
	serviceRows = []rowLoss{{store.Services.Kind, engine.FaultServiceLost}}
	workRows    = []rowLoss{{store.Work.Kind, engine.FaultWorkLost}, {store.Workers.Kind, engine.FaultWorkerLost}}
)

// losingGuards: of the lives that lose tables, those in which operators hold the fleet lose these rows too, half of those with pauses,
// and a quarter of the others, which have limits.
func (l *life) losingGuards() bool {
	return l.losing() && (l.holding() || l.pausing() && l.Config.Seed%20 == 8 || l.Config.Seed%4 == 3)
}

// loseGuards loses and restores the guards of the fleet, and the rows of the service. The store is not away: these rows are few, and an
// operator may delete one.
func (l *life) loseGuards() {
	if !l.losingGuards() {
		return
	}
	l.loseEvery(3*time.Minute, guardRows)
	if l.holding() {
		l.loseEvery(time.Minute, holdRows) // several times while one is in force
	}
	if l.pausing() {
		l.loseEvery(time.Minute, pauseRows)
	}
	if l.serving() {
		l.loseEvery(4*time.Minute, serviceRows)
		l.loseEvery(6*time.Minute, workRows)
	}
}

// loseEvery loses rows of one of the kinds from time to time, or restores them.
func (l *life) loseEvery(mean time.Duration, rows []rowLoss) {
	const first = 4 * time.Minute
	var again func()
	again = func() {
		if !l.Storms {
			return
		}
		l.loseOneOf(rows)
		l.After(l.Exp(mean, 3*mean), again)
	}
	l.After(l.Between(first, 2*first), again)
}

// loseOneOf loses some rows of one of the kinds, or restores them all. Where that changes no row it takes the next kind.
func (l *life) loseOneOf(rows []rowLoss) {
	for _, i := range l.Rand.Perm(len(rows)) {
		k := rows[i].kind
		if l.Rand.IntN(2) == 0 && l.LoseSome(k, 0.5) > 0 || l.Restore(1, k) > 0 {
			l.Coverage.Faults[rows[i].fault]++
			return
		}
	}
}

// resumeAll has an operator end the pauses that were restored, once the faults are over.
func (l *life) resumeAll() {
	if l.losingGuards() && l.pausing() {
		for _, pool := range pausedPools {
			l.resume(pool)
		}
	}
}
