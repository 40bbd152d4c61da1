package sim

import (
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// drainLives: in every eighth life operators drain hosts, a pool and the whole fleet; and in every other one with stopped hosts.
const drainLives = 8

func (l *life) drains() {
	if l.Config.Seed%drainLives != 7 && !(l.stopping() && l.Config.Seed%40 == 30) {
		return
	}
	const mean = 3 * time.Minute
	var again func()
	again = func() {
		if !l.Storms {
			return
		}
		l.drain()
		l.After(l.Exp(mean, 5*mean), again)
	}
	l.After(l.Exp(mean, 5*mean), again)
}

// drain has one host leave, now and then those of a pool or all.
func (l *life) drain() {
	var of fleet.DrainTarget
	switch l.Rand.IntN(8) {
	case 0: // all
	case 1:
		of.Pool = "default"
	default:
		h := l.AnyHost(world.EveryHost)
		if h == nil {
			return
		}
		of.InstanceID = h.ID
	}
	r := l.anyReplica()
	if r == nil {
		return
	}
	l.Coverage.Faults[engine.FaultDrain]++
	r.order("drain", func(now time.Time) error {
		_, err := r.fleet.Drain(engine.Background, of, "the operator said so", "operator", now)
		var ended *fleet.StateError
		if errors.As(err, &ended) {
			return nil
		}
		return err
	})
}
