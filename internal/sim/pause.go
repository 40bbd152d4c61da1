package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// pauseLives: in every tenth life operators pause pools.
const pauseLives = 10

// pausedPools are those that operators pause.
var pausedPools = []string{"default", "once", "owner"}

func (l *life) pausing() bool { return l.Config.Seed%pauseLives == 8 }

// pauses has operators pause a pool, and resume it.
func (l *life) pauses() {
	if !l.pausing() {
		return
	}
	const mean = 6 * time.Minute
	var again func()
	again = func() {
		if !l.Storms {
			return
		}
		pool := pausedPools[l.Rand.IntN(len(pausedPools))]
		l.Coverage.Faults[engine.FaultPause]++
		l.pause(pool, true)
		l.After(l.Exp(2*time.Minute, 5*time.Minute), func() { l.resume(pool) })
		l.After(l.Exp(mean, 5*mean), again)
	}
	l.After(l.Exp(mean, 5*mean), again)
}

func (l *life) pause(pool string, on bool) {
	r := l.anyReplica()
	if r == nil {
		return
	}
	r.order("pause", func(now time.Time) error {
		_, err := r.fleet.SetPause(engine.Background, pool, on, "the operator said so", "operator", now)
		return err
	})
}

// resume has an operator end the pause of a pool, again until it is over.
func (l *life) resume(pool string) {
	if !engine.Must1(l.Truth.Pause(engine.Background, pool)).On() {
		return
	}
	l.pause(pool, false)
	l.After(20*time.Second, func() { l.resume(pool) })
}
