package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
	"github.com/remuda-ci/remuda/internal/store"
)

// lossLives: in every seventh life tables are lost, or an older state of them is restored, and machines of another
// owner carry a copy of our tag.
const lossLives = 7

// restoredRuntime is the maximum runtime in such lives. It is so short that most backups are older: the deadlines of a record
// that is restored from one are over, whatever its host does.
const restoredRuntime = 4 * time.Minute

// endUnrecordedAfter is how long after the end of the faults an operator ends the machines that no record is
// restored for, as docs/operations.md says.
const endUnrecordedAfter = 30 * time.Minute

func (l *life) losing() bool { return l.Config.Seed%lossLives == 5 }

// overtaking: in two of three such lives hosts are reused so much that the records in backups are overtaken, and these are restored.
func (l *life) overtaking() bool { return l.losing() && l.Config.Seed%3 != 2 }

// reuseMore makes one run follow another on the same hosts, so that older records are of earlier assignments.
func (l *life) reuseMore() {
	l.workload.repositories, l.workload.pools, l.workload.classes, l.workload.spot = world.Repositories[:1], []string{"default"}, []string{"small"}, 0
	l.workload.jobLength = time.Minute
	for name, p := range l.Pools {
		p.Policy.MaxRuntime, p.Policy.IdleTime = restoredRuntime, 5*time.Minute
		l.Pools[name] = p
	}
}

func (l *life) loseTables() {
	if !l.losing() {
		return
	}
	const mean = 5 * time.Minute
	l.Backup()
	l.After(l.Exp(mean, 10*mean), l.Copy)
	var again func()
	again = func() {
		if !l.Storms {
			return
		}
		l.loseOnce()
		l.After(l.Exp(mean, 5*mean), again)
	}
	l.After(l.Between(4*time.Minute, 2*mean), again)
	if l.overtaking() {
		l.After(l.Between(4*time.Minute, 2*mean), l.restoreUnderJobs)
	} else {
		l.After(3*time.Minute, l.loseUnderLongJob)
	}
	l.loseJobs()
	l.loseGuards()
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

// loseUnderLongJob loses the record of a host whose job lasts until after the next cloud sweep, once in a life.
func (l *life) loseUnderLongJob() {
	const long = 4 * time.Minute
	if l.Storms && !l.LoseUnderJob(long) {
		l.After(10*time.Second, l.loseUnderLongJob)
	}
}

// restoreUnderJobs restores the record of a host while a job runs on the host in a later assignment.
func (l *life) restoreUnderJobs() {
	if !l.Storms {
		return
	}
	wait := 10 * time.Second
	if !l.StoreAway() && len(l.Overtaken()) > 0 {
		wait = l.Between(2*time.Minute, 3*time.Minute)
		l.awayWhileRestored(l.Between(10*time.Second, 30*time.Second), func() { l.RestoreUnderJobs(l.Overtaken()) })
	}
	l.After(wait, l.restoreUnderJobs)
}

func (l *life) restore(k *store.Kind, part float64) {
	l.awayWhileRestored(l.Between(90*time.Second, 4*time.Minute), func() { l.Restore(part, k) })
}

// awayWhileRestored is a restore at whose end the store is back. In every other one the reports are lost too.
func (l *life) awayWhileRestored(away time.Duration, restore func()) {
	l.Coverage.Faults[engine.FaultRestored]++
	l.StoreAwayUntil = l.Now.Add(away)
	l.Tell("world", "store away until", engine.SinceEpoch(l.StoreAwayUntil))
	reports := l.Rand.IntN(2) == 0
	l.At(l.StoreAwayUntil, func() {
		restore()
		if reports {
			l.Coverage.Faults[engine.FaultReportsLost]++
			l.LoseReports()
		}
	})
}
