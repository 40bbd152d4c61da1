package rules

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// settleAfter is how long after the end of the faults a host may still be with a request
// that has no use for it. By then everything that was suspended or away is back.
const settleAfter = 5 * time.Minute

// checkKept checks that no host stays with a request that was released or settled without
// it, unless a job runs on it.
func (w *Watcher) checkKept() {
	if w.CalmSince.IsZero() || w.Now.Sub(w.CalmSince) < settleAfter {
		return
	}
	for _, m := range w.Living() {
		r, err := w.Truth.Instance(engine.Background, m.HostKey)
		if err != nil || w.of(m.HostKey).wasReplaced() || r.RunID == "" || r.Held(w.Now.Add(-settleAfter)) || (m.Host != nil && (m.Host.Worker != nil || m.Host.Hostile)) {
			continue
		}
		q, err := w.Truth.Request(engine.Background, r.Repository, r.RunID, r.RequestID)
		if err == nil && !w.replaced[q.RequestID] && !q.Wants(r) && w.Now.Sub(r.UpdatedAt) > settleAfter && w.Now.Sub(w.settledAt[q.RequestID]) > settleAfter {
			w.Broken(RuleKept, "%s is %s for request %s, which has no use for it: outcome %q, released at %s",
				r.HostKey, r.Condition(), q.RequestID, q.Outcome, engine.SinceEpoch(q.ReleasedAt))
		}
	}
}

// reuseLag is how long a pooled host may be out of sight of the index.
const reuseLag = world.MaxLag + 5*time.Second

// checkReuse checks that no request intends a launch while a host that fits it waits in the
// pool, or is assigned to it already. A replica that was suspended after it asked the index
// cannot know.
func (w *Watcher) checkReuse(q lifecycle.Request) {
	asked := w.Current.LastLook(world.SeesPool).At
	if asked.IsZero() {
		asked = w.Now
	}
	seen := asked.Add(-reuseLag)
	known := w.Current.LastLook(world.SeesHostsOfRun).At.Add(-reuseLag)
	for _, m := range w.Living() {
		r, err := w.Truth.Instance(engine.Background, m.HostKey)
		switch {
		case err != nil:
		case q.Spec.JobsOf != "" && (w.Reading(r.HostKey) || w.GitHub.Registering(lifecycle.RunnerName(r.Assignment+1, r.InstanceID))):
			// another is about to claim it
		case w.fits(q, r) && r.PooledAt.Before(seen) && r.UpdatedAt.Before(seen) && !r.Held(seen): // its time may have been extended just now
			rule := RuleReuse
			if w.Pools[q.Spec.Pool].ByCaches() {
				rule = RuleStarved
			}
			w.Broken(rule, "request %s launches %d while %s waits in the pool since %s",
				q.RequestID, q.Launch.Count, r.HostKey, engine.SinceEpoch(r.PooledAt))
		case r.RequestID == q.RequestID && r.RunID == q.RunID && !q.Has(r.HostKey) && r.UpdatedAt.Before(known):
			w.Broken(RuleReuse, "request %s launches %d while %s is %s for it since %s",
				q.RequestID, q.Launch.Count, r.HostKey, r.Condition(), engine.SinceEpoch(r.UpdatedAt))
		}
	}
}

// fits reports whether the request could claim the host now and for some time to come.
func (w *Watcher) fits(q lifecycle.Request, r lifecycle.Record) bool {
	policy := w.Pools[q.Spec.Pool].Policy
	return r.Pooled() && !r.Retiring && r.Threshold.After(w.Now.Add(policy.ClaimMargin+reuseLag)) &&
		r.Pool == q.Spec.Pool && (r.Unused() || r.TrustKey == policy.Reuse.TrustKey(q.Repository)) &&
		r.ResourceClass == q.Spec.ResourceClass && r.UsageClass == q.Spec.UsageClass
}
