package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// operators schedules the orders of operators: terminate, hold, refresh.
func (l *life) operators() {
	l.Recur(engine.FaultTerminate, func() bool {
		h, r := l.AnyHost(world.EveryHost), l.anyReplica()
		if h == nil || r == nil {
			return false
		}
		h.Machine.Ordered = true
		r.order("terminate", func(now time.Time) error {
			_, err := r.fleet.Terminate(engine.Background, h.ID, "the operator said so", now)
			return err
		})
		return true
	})
	l.hold(engine.FaultHold, func() time.Duration { return l.Between(time.Minute, 15*time.Minute) })
	l.hold(engine.FaultUnhold, func() time.Duration { return 0 })
	l.fleetHolds()
	l.Recur(engine.FaultRefresh, func() bool {
		r := l.anyReplica()
		if r != nil {
			r.drive("refresh", r.fleet.NewRefresh(l.Rand.IntN(3) == 0), func(error) {})
		}
		return r != nil
	})
}

func (l *life) hold(f engine.Fault, length func() time.Duration) {
	l.Recur(f, func() bool {
		h := l.AnyHost(func(h *world.Host) bool {
			rec, err := l.Truth.Instance(engine.Background, h.ID)
			return err == nil && (f == engine.FaultHold || rec.Held(l.Now))
		})
		r := l.anyReplica()
		if h == nil || r == nil {
			return false
		}
		d := length()
		r.order("hold", func(now time.Time) error {
			_, err := r.fleet.Hold(engine.Background, h.ID, d, "the operator looks", now)
			return err
		})
		return true
	})
}
