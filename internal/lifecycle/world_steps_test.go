package lifecycle_test

import (
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// goesWell: the agent does what the record asks and the sweep sees it. Without
// this, chance alone would seldom lead a life beyond its first run.
func (w *world) goesWell(t *rapid.T) {
	answer := lifecycle.SignalRegOK
	if w.rec().Releasing() {
		answer = lifecycle.SignalRemoveRegOK
	}
	if w.rec().Warming() {
		w.facts.Report = &lifecycle.Report{HostKey: hostKey, HeartbeatAt: w.now, Assignment: w.rec().Assignment, Signal: answer}
		w.sweep(t)
		return
	}
	w.facts.Report = &lifecycle.Report{HostKey: hostKey, HeartbeatAt: w.now, Assignment: w.rec().Assignment, Signal: answer}
	if w.rec().State == lifecycle.StateRunning && w.facts.Request != nil {
		q := *w.facts.Request
		q.ReleasedAt = w.now
		w.facts.Request = &q
	}
	w.sweep(t)
	if w.rec().Pooled() {
		w.claim(t)
	}
}

// fails: the agent cannot do it, and it is the host's own fault.
func (w *world) fails(t *rapid.T) {
	if w.rec().State != lifecycle.StateClaimed {
		return
	}
	w.facts.Report = &lifecycle.Report{
		HostKey: hostKey, HeartbeatAt: w.now, Assignment: w.rec().Assignment,
		Signal: lifecycle.SignalRegFailed, Cause: lifecycle.CauseHost,
	}
	w.sweep(t)
}

// mayEnd: a host that is held or runs a job is ended only for what the rules
// name, whatever its life was so far.
func (w *world) mayEnd(t *rapid.T) {
	r, m := w.rec(), w.facts.Cloud
	if m != nil && m.State == lifecycle.MachineGone {
		return
	}
	if r.Hold.After(w.now) {
		t.Fatalf("ended while held: %+v", r)
	}
	confirmed := m != nil && (m.Impaired || m.State == lifecycle.MachineEnding)
	if w.facts.Report == nil || !w.facts.Report.Busy || confirmed {
		return
	}
	runtime := w.policy.MaxRuntime
	if r.MaxRuntime > 0 {
		runtime = r.MaxRuntime
	}
	end := r.RuntimeEndsAt
	switch {
	case r.Pooled():
		end = r.PooledAt.Add(runtime)
	case end.IsZero():
		end = r.Threshold.Add(runtime)
	}
	if w.now.Before(end) {
		t.Fatalf("ended at %s a job that may run until %s: %+v", w.now, end, r)
	}
}

// staleSweep decides on a record that was read before. Its write is lost.
func (w *world) staleSweep(t *rapid.T) {
	f := w.facts
	f.Record = rapid.SampledFrom(w.stale).Draw(t, "read before")
	d := lifecycle.Decide(f, w.now, w.policy)
	w.carry(t, f.Record, w.setLabels(t, f, d))
}

// crash: decided, and never carried out. Deciding again comes to the same.
func (w *world) crash(t *rapid.T) {
	a, b := lifecycle.Decide(w.facts, w.now, w.policy), lifecycle.Decide(w.facts, w.now, w.policy)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Fatalf("decided differently on the same facts:\n%s", diff)
	}
}

// claim by a message that may be stale.
func (w *world) claim(t *rapid.T) {
	m := rapid.SampledFrom(w.stale).Draw(t, "message of").Message()
	if rapid.Bool().Draw(t, "newest message") {
		m = w.rec().Message()
	}
	q := w.newRequest(t, rapid.SampledFrom([]string{"102", "103"}).Draw(t, "run"))
	c := lifecycle.Claim{
		HostKey: m.HostKey, Assignment: m.Assignment, TrustKey: m.TrustKey, BindTo: w.policy.Reuse.TrustKey("acme/web"), Now: w.now, Margin: w.policy.ClaimMargin,
		RunID: q.RunID, Repository: q.Repository, RequestID: q.RequestID, MaxRuntime: q.Spec.MaxRuntime,
		Registration: w.tokenFor(*q), JobsOf: q.Spec.JobsOf, Threshold: w.now.Add(w.policy.ClaimTimeout),
	}
	if !c.Holds(w.rec()) {
		return
	}
	r := w.rec()
	if !r.Pooled() || r.Retiring || r.Hold.After(w.now) || m.Assignment != r.Assignment || r.Threshold.Sub(w.now) <= 30*time.Second {
		t.Fatalf("claimed against the condition: %+v", r)
	}
	next, err := r.Claimed(c)
	if err != nil {
		t.Fatalf("a claim that holds was refused: %v", err)
	}
	if named := r.Standby != nil && next.RunnerName == r.RunnerName; !named && slices.ContainsFunc(w.stale, func(o lifecycle.Record) bool { return o.RunnerName == next.RunnerName }) {
		t.Fatalf("claimed under a name that was used: %+v", next)
	}
	carried(t, r, next)
	w.store(next)
	w.facts.Request, w.facts.LabelsSet, w.facts.Runner = q, false, nil
	if c.Holds(w.rec()) {
		t.Fatal("the same claim holds twice")
	}
}

// order: an operator ends the host, whatever it does.
func (w *world) order(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "rarely") > 0 || w.rec().State == lifecycle.StateTerminated {
		return
	}
	w.carry(t, w.rec(), lifecycle.Decision{Action: lifecycle.ActionTerminate, Reason: "ordered"})
}

// mark: an operator holds the host, or scale-down marks it.
func (w *world) mark(t *rapid.T) {
	r := w.rec()
	if r.State == lifecycle.StateTerminated {
		return
	}
	switch rapid.IntRange(0, 3).Draw(t, "mark") {
	case 0:
		r.Hold = w.now.Add(rapid.SampledFrom([]time.Duration{time.Minute, lifecycle.MaxHold}).Draw(t, "hold"))
	case 1:
		r.Hold = time.Time{}
	case 2:
		r.Retiring = !r.Retiring
	}
	w.store(r)
}
