package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/store"
)

// lossLives: in every seventh life tables are lost, or an older state of them is restored, and machines of another
// owner carry a copy of our tag.
const lossLives = 7

// endUnrecordedAfter is how long after the end of the faults an operator ends the machines that no record is
// restored for, as docs/operations.md says.
const endUnrecordedAfter = 30 * time.Minute

func (l *life) losing() bool { return l.Config.Seed%lossLives == 5 }

func (l *life) loseTables() {
	if !l.losing() {
		return
	}
	const mean = 5 * time.Minute
	l.Backup()
	l.After(l.Exp(mean, 10*mean), l.Copy)
	var again func()
	again = func() {
		if !l.Chaos {
			return
		}
		l.loseOnce()
		l.After(l.Exp(mean, 5*mean), again)
	}
	l.After(l.Between(4*time.Minute, 2*mean), again)
	l.After(l.Config.Chaos+endUnrecordedAfter, l.EndUnrecorded)
}

// loseOnce is one loss. The store is away for a while around a restore, as while a table is deleted and made again.
func (l *life) loseOnce() {
	hosts, requests := store.Instances.Kind, store.Requests.Kind
	switch l.Rand.IntN(6) {
	case 0, 1:
		l.Coverage.Faults[engine.FaultTableLost]++
		l.Lose(hosts)
		if l.Rand.IntN(3) > 0 {
			l.After(l.Between(10*time.Second, 12*time.Minute), func() { l.restore(hosts, 1) })
		}
	case 2:
		l.Coverage.Faults[engine.FaultRowsLost]++
		l.LoseSome(hosts, 0.3)
	case 3:
		l.Coverage.Faults[engine.FaultRequestsLost]++
		l.LoseSome(requests, 0.5)
	case 4:
		l.restore(requests, 0.5)
	default:
		l.restore(hosts, 0.5)
	}
}

func (l *life) restore(k *store.Kind, part float64) {
	l.Coverage.Faults[engine.FaultRestored]++
	l.StoreAwayUntil = l.Now.Add(l.Between(90*time.Second, 4*time.Minute))
	l.Tell("world", "store away until", engine.SinceEpoch(l.StoreAwayUntil))
	l.At(l.StoreAwayUntil, func() { l.Restore(k, part) })
}
