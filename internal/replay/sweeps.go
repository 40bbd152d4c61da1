package replay

import (
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// sweepAt begins the sweeps that come at their intervals.
func (w *world) sweepAt(begin time.Time) {
	for _, p := range w.policy.Pools {
		if p.Warm != nil || p.Stopped != nil {
			w.every(begin, w.timing.Warm, w.warmNeeded(), func() fleet.Op { return w.fleet.NewWarmSweep() })
			break
		}
	}
	if w.policy.ScaleDown != nil {
		always := func() bool { return true }
		w.every(begin, fleet.ScaleDown{Every: w.policy.ScaleDownEvery}.Interval(), always, func() fleet.Op { return w.fleet.NewScaleDownSweep() })
	}
}

// every runs a sweep at each turn of an interval at which it is needed.
func (w *world) every(begin time.Time, interval time.Duration, needed func() bool, sweep func() fleet.Op) {
	next := begin
	var turn func()
	again := func(err error) {
		w.check(err)
		next = next.Add(interval)
		w.at(next, turn)
	}
	turn = func() {
		if !needed() {
			again(nil)
			return
		}
		w.drive(&driven{op: sweep(), over: again})
	}
	w.at(begin, turn)
}

// warmRest is the longest time without a sweep over warm pools: they look at their own rows too.
const warmRest = 2 * time.Minute

// warmNeeded reports whether a sweep over warm pools may do something: since the last one a host or a request has changed, or the time has come
// at which more or fewer are wanted, or at which a host is to be replaced.
func (w *world) warmNeeded() func() bool {
	var last time.Time
	var writes int
	wanted := map[*fleet.WarmPool]int{}
	return func() bool {
		now := w.clock.now
		needed := w.rows.writes != writes || now.Sub(last) >= w.patience.warm
		for _, p := range w.policy.Pools {
			for _, ahead := range []*fleet.WarmPool{p.Warm, p.Stopped} {
				if ahead == nil {
					continue
				}
				n, _ := ahead.Policy.Wanted(now)
				needed = needed || n != wanted[ahead] || w.freshEnds(p.Name, now.Add(ahead.Policy.Lead))
				wanted[ahead] = n
			}
		}
		if needed {
			last, writes = now, w.rows.writes
		}
		return needed
	}
}

// freshEnds reports whether a fresh host of a pool ends by a time.
func (w *world) freshEnds(pool string, by time.Time) bool {
	for _, h := range w.hosts {
		if r := h.record; r.Pool == pool && r.State == lifecycle.StateIdle && r.Unused() && !r.Threshold.After(by) {
			return true
		}
	}
	return false
}

// began is before any time of a history: a sweep that is under way.
var began = time.Unix(1, 0)

// sweepDueBy has what is due at a time swept at the next turn of that sweep. Without anything due no sweep is needed.
func (w *world) sweepDueBy(due time.Time) {
	at := due
	if first := w.dueLast.Add(w.timing.Due); at.Before(first) {
		at = first
	}
	if at.Before(w.clock.now) {
		at = w.clock.now
	}
	if turn := at.Truncate(w.timing.Due); turn.Before(at) {
		at = turn.Add(w.timing.Due)
	}
	if !w.dueAt.IsZero() && !at.Before(w.dueAt) {
		return
	}
	w.dueAt = at
	w.at(at, func() {
		if w.dueAt.Equal(at) {
			w.sweepDue()
		}
	})
}

// sweepDue sweeps what is due. No other such sweep begins while it is under way.
func (w *world) sweepDue() {
	w.dueLast, w.dueAt = w.clock.now, began
	w.drive(&driven{op: w.fleet.NewDueSweep(), over: func(err error) {
		w.check(err)
		w.dueAt = time.Time{}
		if next, ok := w.rows.nextDue(); ok {
			w.sweepDueBy(next)
		}
	}})
}
