package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// beginRules starts the rules that look at the whole world, every 30 s.
func (w *world) beginRules() {
	const every = 30 * time.Second
	var again func()
	again = func() {
		w.checkKept()
		w.checkRoom()
		w.checkWork()
		w.after(every, again)
	}
	w.after(every, again)
}

// settleAfter is how long after the end of the faults a host may still be with a request
// that has no use for it. By then everything that was suspended or away is back.
const settleAfter = 5 * time.Minute

// checkKept checks that no host stays with a request that was released or settled without
// it, unless a job runs on it.
func (w *world) checkKept() {
	if w.rules.chaosEndedAt.IsZero() || w.now.Sub(w.rules.chaosEndedAt) < settleAfter {
		return
	}
	for _, m := range w.living() {
		r, err := w.truth.Instance(background, m.HostKey)
		if err != nil || r.RunID == "" || r.Held(w.now.Add(-settleAfter)) || (m.host != nil && (m.host.worker != nil || m.host.hostile)) {
			continue
		}
		q, err := w.truth.Request(background, r.Repository, r.RunID, r.RequestID)
		if err == nil && !q.Wants(r.HostKey) && w.now.Sub(r.UpdatedAt) > settleAfter && w.now.Sub(w.rules.settledAt[q.RequestID]) > settleAfter {
			w.broken(RuleKept, "%s is %s for request %s, which has no use for it: outcome %q, released at %s",
				r.HostKey, r.Condition(), q.RequestID, q.Outcome, sinceEpoch(q.ReleasedAt))
		}
	}
}

// reuseLag is how long a pooled host may be out of sight of the index.
const reuseLag = maxLag + 5*time.Second

// checkReuse checks that no request intends a launch while a host that fits it waits in the
// pool, or is assigned to it already. A replica that was suspended after it asked the index
// cannot know.
func (w *world) checkReuse(q lifecycle.Request) {
	asked := w.current.asked
	if asked.IsZero() {
		asked = w.now
	}
	seen := asked.Add(-reuseLag)
	known := w.current.listed.Add(-reuseLag)
	for _, m := range w.living() {
		r, err := w.truth.Instance(background, m.HostKey)
		switch {
		case err != nil:
		case w.fits(q, r) && r.PooledAt.Before(seen):
			w.broken(RuleReuse, "request %s launches %d while %s waits in the pool since %s",
				q.RequestID, q.Launch.Count, r.HostKey, sinceEpoch(r.PooledAt))
		case r.RequestID == q.RequestID && r.RunID == q.RunID && !q.Has(r.HostKey) && r.UpdatedAt.Before(known):
			w.broken(RuleReuse, "request %s launches %d while %s is %s for it since %s",
				q.RequestID, q.Launch.Count, r.HostKey, r.Condition(), sinceEpoch(r.UpdatedAt))
		}
	}
}

// fits reports whether the request could claim the host now and for some time to come.
func (w *world) fits(q lifecycle.Request, r lifecycle.Record) bool {
	policy := w.pools[q.Spec.Pool].Policy
	return r.Pooled() && !r.Retiring && !r.Held(w.now) && r.Threshold.After(w.now.Add(policy.ClaimMargin+reuseLag)) &&
		r.Pool == q.Spec.Pool && (r.Unused() || r.TrustKey == policy.Reuse.TrustKey(q.Repository)) &&
		r.ResourceClass == q.Spec.ResourceClass && r.UsageClass == q.Spec.UsageClass
}
