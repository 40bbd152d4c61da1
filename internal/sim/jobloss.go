package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/store"
)

// jobKinds are the rows of job pools, which are in one table.
var jobKinds = []*store.Kind{store.Jobs.Kind, store.SlotTables.Kind, store.Webhooks.Kind}

// loseJobs loses and restores rows of the job pool.
func (l *life) loseJobs() {
	if !l.pooling() {
		return
	}
	const mean = 4 * time.Minute
	var again func()
	again = func() {
		if !l.Storms {
			return
		}
		l.loseJobsOnce()
		l.After(l.Exp(mean, 3*mean), again)
	}
	l.After(l.Between(4*time.Minute, 2*mean), again)
}

func (l *life) loseJobsOnce() {
	one := jobKinds[l.Rand.IntN(len(jobKinds))]
	switch l.Rand.IntN(5) {
	case 0:
		l.Coverage.Faults[engine.FaultJobsLost]++
		for _, k := range jobKinds {
			l.Lose(k)
		}
	case 1, 2:
		l.Coverage.Faults[engine.FaultJobsLost]++
		l.LoseSome(one, 0.5)
	case 3:
		l.Coverage.Faults[engine.FaultJobsRestored]++
		l.awayWhileRestored(l.Between(90*time.Second, 4*time.Minute), func() { l.Restore(1, jobKinds...) })
	default:
		l.Coverage.Faults[engine.FaultJobsRestored]++
		l.Restore(0.5, one)
	}
}
