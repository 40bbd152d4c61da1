package rules

import (
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// checkReset checks which hosts get a new root volume: those of pools that want it, once a run has used the one that they have.
func (w *Watcher) checkReset(r lifecycle.Record) {
	if w.Pools[r.Pool].Policy.Reset != statement.LevelRootVolume || r.Uses == 0 || r.RunID != "" {
		w.Broken(RuleNewRoot, "%s is to get a new root volume: uses %d, run %q", r.HostKey, r.Uses, r.RunID)
	}
}

// checkReplacing checks that no job loses its root volume, and no host that does not wait for a new one.
func (w *Watcher) checkReplacing(id string) {
	w.Coverage.Actions[lifecycle.ActionReplaceRoot]++
	m := w.Machines[id]
	if m == nil {
		return
	}
	if m.Host != nil && m.Host.Worker != nil && m.Host.Alive && !m.Host.Hostile {
		w.Broken(RuleNewRoot, "the root volume of %s is replaced under a job", m.HostKey)
	}
	r, err := w.Truth.Instance(engine.Background, m.HostKey)
	if err != nil || w.of(m.HostKey).wasReplaced() {
		return // its record was lost, or is an older state
	}
	if !r.Resetting() && w.Now.Sub(w.of(m.HostKey).assignedAt) >= restLag {
		w.Broken(RuleNewRoot, "the root volume of %s is replaced, which is %s", m.HostKey, r.Condition())
	}
}

// checkRenewed checks that a host whose root volume is said to be new has a new one, and keeps its trust key where it must.
func (w *Watcher) checkRenewed(before, after lifecycle.Record) {
	m := w.Machines[after.InstanceID]
	if m == nil || m.RootAt.Before(before.RootVolume.At.Add(-clockSlack)) {
		w.Broken(RuleNewRoot, "%s still has the root volume of its last run", after.HostKey)
	}
	if w.Pools[after.Pool].Policy.KeepsTrust != (after.TrustKey != "") && before.TrustKey != "" {
		w.Broken(RuleTrust, "%s has trust key %q with its new root volume, and had %q", after.HostKey, after.TrustKey, before.TrustKey)
	}
	if after.AgentKey != "" {
		w.Broken(RuleNewRoot, "%s has a new root volume, and the key of an agent on its old one", after.HostKey)
	}
}

// checkRoot checks that a host that is pooled has a root volume that no run has used, where its pool wants that.
func (w *Watcher) checkRoot(r lifecycle.Record) {
	m, l := w.Machines[r.InstanceID], w.of(r.HostKey)
	if w.Pools[r.Pool].Policy.Reset != statement.LevelRootVolume || m == nil || l.wasReplaced() {
		return
	}
	if l.readyAt.After(m.RootAt) {
		w.Broken(RuleNewRoot, "%s is pooled with a root volume of %s, and a run had it ready at %s", r.HostKey, engine.SinceEpoch(m.RootAt), engine.SinceEpoch(l.readyAt))
	}
}
