package rules

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// restLag is for how long a replica may believe what it read of the other hosts: they may have been taken since, while it was suspended.
const restLag = 3 * time.Minute

// restWritten holds a change of a host's rest against the rules.
func (w *Watcher) restWritten(before, after lifecycle.Record) {
	switch {
	case after.RestingAt.IsZero() && before.Resting() && after.State == lifecycle.StateClaimed:
		w.Mark(engine.MarkClaimedResting)
	case after.RestingAt.IsZero() && before.Resting() && after.Pooled():
		w.Coverage.Actions[lifecycle.ActionWake]++
	case after.RestingAt.IsZero() || before.Resting():
	case !after.Pooled() || after.Standby != nil || w.Now.Sub(after.PooledAt) < w.Pools[after.Pool].Policy.RestAfter-clockSlack:
		w.Broken(RuleRest, "%s rests: it is %s, pooled since %s", after.HostKey, after.Condition(), engine.SinceEpoch(after.PooledAt))
	default:
		w.Coverage.Actions[lifecycle.ActionRest]++
		w.checkSpare(after)
	}
}

// checkSpare checks that as many newer hosts were awake lately as are to be, which the same runs could take. One whose machine has
// just ended by itself counts while its record says that it waits: controld learns of such an end only later.
func (w *Watcher) checkSpare(r lifecycle.Record) {
	newer := 0
	ofClass := lifecycle.Filter{ResourceClass: r.ResourceClass}
	for _, o := range engine.Must1(w.Truth.ListInstances(engine.Background, ofClass, lifecycle.PageOf{Limit: 1000})).Items {
		m := w.Machines[o.InstanceID]
		gone := m == nil || m.State == lifecycle.MachineGone
		if gone && (m == nil || w.Now.Sub(m.GoneAt) >= restLag) || o.HostKey == r.HostKey || o.Pool != r.Pool || o.UsageClass != r.UsageClass {
			continue
		}
		waits := o.Pooled() && !o.Resting() && o.TrustKey == r.TrustKey && !o.PooledAt.Before(r.PooledAt)
		if waits || !gone && w.Now.Sub(w.of(o.HostKey).assignedAt) < restLag {
			newer++
		}
	}
	if newer < w.Pools[r.Pool].Policy.Awake {
		w.Broken(RuleRest, "%s rests, and %d newer hosts of its kind are awake, or were until lately", r.HostKey, newer)
	}
}
