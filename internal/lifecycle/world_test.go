package lifecycle_test

import (
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// world is one host, the store that keeps its record, and all that can happen.
type world struct {
	now    time.Time
	facts  lifecycle.Facts // the truth, as far as it is known
	policy lifecycle.Policy
	warm   bool               // it was launched ahead of need
	stale  []lifecycle.Record // every version ever stored
	// left counts the assignments in which the host left its registration ahead of need, and leaves: it is doing so.
	left   int64
	leaves bool
}

func newWorld(t *rapid.T) *world {
	w := &world{now: start, policy: lifecycle.DefaultPolicy()}
	w.policy.MaxRuntime = rapid.SampledFrom([]time.Duration{2 * time.Minute, 10 * time.Minute, 6 * time.Hour}).Draw(t, "max runtime")
	w.policy.Reuse = rapid.SampledFrom([]lifecycle.Reuse{
		lifecycle.ReuseSameRepository, lifecycle.ReuseSameRepository, lifecycle.ReuseSameOwner, lifecycle.ReuseNone,
	}).Draw(t, "reuse")
	w.policy.Standby = rapid.SampledFrom(lifecycle.StandbyModes).Draw(t, "standby")
	w.policy.MaxUses = rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(t, "max uses")
	w.facts.StoreUpSince, w.facts.StoreReadableSince = start, start
	q := w.newRequest(t, "101")
	m := lifecycle.Machine{InstanceID: hostKey, HostKey: hostKey}
	if rapid.IntRange(0, 3).Draw(t, "warm") == 0 {
		w.store(lifecycle.LaunchedWarm(m, lifecycle.Request{RequestID: "warm"}, w.now, w.policy))
		w.facts.Request, w.warm = nil, true
		return w
	}
	w.facts.Request = q
	w.store(lifecycle.Launched(m, *q, w.tokenFor(*q), w.now, w.policy))
	return w
}

func (w *world) newRequest(t *rapid.T, run string) *lifecycle.Request {
	return &lifecycle.Request{
		Repository: "acme/web", RunID: run, RequestID: "q" + run,
		Spec: lifecycle.Spec{
			MaxRuntime: rapid.SampledFrom([]time.Duration{0, 3 * time.Minute}).Draw(t, "runtime"),
			JobsOf:     rapid.SampledFrom([]string{"", "", "acme", "acme/web"}).Draw(t, "jobs of"),
		},
		Taken:      []lifecycle.Taken{{HostKey: hostKey}},
		Unattended: rapid.Bool().Draw(t, "unattended"),
	}
}

// tokenFor is what fleet gives a host of the request to register with.
func (w *world) tokenFor(q lifecycle.Request) *lifecycle.Registration {
	reg := lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: token, ExpiresAt: w.now.Add(time.Hour)}
	if q.Spec.JobsOf != "" {
		reg.Kind = lifecycle.RegistrationJIT
	}
	return &reg
}

func (w *world) rec() lifecycle.Record { return w.facts.Record }

// store keeps the record with the next version, as every store does.
func (w *world) store(r lifecycle.Record) {
	r.Version++
	w.facts.Record = r
	w.stale = append(w.stale, r)
	if r.RequestID == "" {
		w.facts.Request = nil
	}
}

func (w *world) timePasses(t *rapid.T) {
	steps := []time.Duration{time.Nanosecond, time.Second, 15 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, time.Hour}
	if due := w.rec().DueAt.Sub(w.now); due > 0 {
		steps = append(steps, due)
	}
	w.now = w.now.Add(rapid.SampledFrom(steps).Draw(t, "passes"))
	if w.facts.Report != nil && rapid.Bool().Draw(t, "heard") {
		w.facts.Report.HeartbeatAt = w.now
	}
}

// agentReports: an honest answer to the assignment.
func (w *world) agentReports(t *rapid.T) {
	answers := []lifecycle.Signal{lifecycle.SignalRegOK, lifecycle.SignalRegFailed, lifecycle.SignalNone}
	if w.rec().Releasing() {
		answers = []lifecycle.Signal{lifecycle.SignalRemoveRegOK, lifecycle.SignalRemoveRegFailed, lifecycle.SignalNone}
	}
	if w.rec().Standby != nil && w.rec().Pooled() {
		answers = append(answers, lifecycle.SignalRemoveRegOK)
	}
	w.facts.Report = &lifecycle.Report{
		HostKey: hostKey, HeartbeatAt: w.now, Assignment: w.rec().Assignment,
		Signal: rapid.SampledFrom(answers).Draw(t, "signal"), Cause: rapid.SampledFrom(lifecycle.Causes).Draw(t, "cause"),
		Busy: rapid.IntRange(0, 3).Draw(t, "busy") == 0 && !w.rec().Pooled(),
		Jobs: rapid.IntRange(0, 1).Draw(t, "jobs"),
	}
}

// agentLies: anything that passes Report.Check.
func (w *world) agentLies(t *rapid.T) {
	r := lifecycle.Report{
		HostKey: hostKey, HeartbeatAt: w.now.Add(rapid.SampledFrom([]time.Duration{-time.Hour, -time.Minute, 0, 30 * time.Second}).Draw(t, "heartbeat")),
		Assignment: max(0, w.rec().Assignment+rapid.Int64Range(-2, 1).Draw(t, "assignment")),
		Signal:     rapid.SampledFrom(lifecycle.Signals).Draw(t, "signal"), Cause: rapid.SampledFrom(lifecycle.Causes).Draw(t, "cause"),
		Detail: rapid.StringN(0, 300, lifecycle.MaxDetail).Draw(t, "detail"),
		Busy:   rapid.Bool().Draw(t, "busy"), Jobs: rapid.IntRange(0, 2).Draw(t, "jobs"),
	}
	if rapid.IntRange(0, 5).Draw(t, "interrupted") == 0 {
		r.InterruptionAt = w.now.Add(2 * time.Minute)
	}
	if err := r.Check(w.now); err != nil {
		t.Fatalf("generated a malformed report: %v", err)
	}
	w.facts.Report = &r
}

func (w *world) cloudSays(t *rapid.T) {
	states := []lifecycle.MachineState{"", lifecycle.MachinePending, lifecycle.MachineRunning, lifecycle.MachineRunning, lifecycle.MachineEnding}
	if w.rec().State == lifecycle.StateTerminated {
		states = append(states, lifecycle.MachineGone)
	}
	w.facts.Cloud = &lifecycle.Machine{State: rapid.SampledFrom(states).Draw(t, "state"), Impaired: rapid.Bool().Draw(t, "impaired")}
	if w.facts.Cloud.State == "" {
		w.facts.Cloud = nil
	}
	w.facts.Runner = &lifecycle.Runner{ID: runnerID, Gone: rapid.Bool().Draw(t, "runner gone")}
	w.facts.LabelsSet = rapid.Bool().Draw(t, "labels set")
}

func (w *world) requestChanges(t *rapid.T) {
	if w.facts.Request == nil {
		return
	}
	q := *w.facts.Request
	switch rapid.IntRange(0, 3).Draw(t, "request") {
	case 0:
		q.ReleasedAt = w.now
	case 1:
		q.Outcome, q.Taken = lifecycle.OutcomeShort, nil
	case 2:
		q.Outcome = lifecycle.OutcomeReady
	case 3:
		w.facts.Request = nil
		return
	}
	w.facts.Request = &q
}

func (w *world) storeComesAndGoes(t *rapid.T) {
	w.facts.StoreReadableSince = rapid.SampledFrom([]time.Time{{}, w.now, start}).Draw(t, "watching since")
	w.facts.StoreUpSince = rapid.SampledFrom([]time.Time{{}, w.now, start}).Draw(t, "store is up since")
	w.facts.MassSilence = rapid.Bool().Draw(t, "mass silence")
	w.facts.ReportsReadAt = rapid.SampledFrom([]time.Time{w.now, w.now, w.now.Add(-20 * time.Second)}).Draw(t, "reports read at")
	w.facts.GitHubUnavailable = rapid.Bool().Draw(t, "GitHub away")
}

// sweep carries decisions out until nothing is left to write. Standing still,
// the facts never lead to the same transition twice, nor to many.
func (w *world) sweep(t *rapid.T) {
	var done []lifecycle.Action
	for {
		d := lifecycle.Decide(w.facts, w.now, w.policy)
		w.wellFormed(t, d)
		if d.Action == lifecycle.ActionTerminate {
			w.mayEnd(t)
		}
		if !lifecycle.Allowed(w.rec(), d.Action) {
			w.carry(t, w.rec(), d) // refused by no rule, changes nothing
			return
		}
		if slices.Contains(done, d.Action) || len(done) > 4 {
			t.Fatalf("%s again, with facts that stand still: %v", d.Action, done)
		}
		done = append(done, d.Action)
		w.carry(t, w.rec(), w.setLabels(t, w.facts, d))
	}
}

// setLabels is fleet's call to GitHub between a decision that needs labels and the write: they are set, or the runner is gone.
func (w *world) setLabels(t *rapid.T, f lifecycle.Facts, d lifecycle.Decision) lifecycle.Decision {
	if !d.SetLabels {
		return d
	}
	f.LabelsSet = rapid.Bool().Draw(t, "GitHub has the runner")
	f.Runner = &lifecycle.Runner{ID: runnerID, Gone: !f.LabelsSet}
	d = lifecycle.Decide(f, w.now, w.policy)
	if d.Action != lifecycle.ActionReady && d.Action != lifecycle.ActionReregister {
		t.Fatalf("%s, once GitHub was asked to set the labels", outcome(d))
	}
	return d
}

func (w *world) wellFormed(t *rapid.T, d lifecycle.Decision) {
	switch {
	case strings.TrimSpace(d.Reason) == "" || strings.ContainsAny(d.Reason, "\n\r\x1b") || strings.Contains(d.Reason, token):
		t.Fatalf("not a reason for people: %q", d.Reason)
	case d.Action == lifecycle.ActionKeep && !d.CheckAt.After(w.now) && !w.rec().DueAt.IsZero():
		t.Fatalf("keep until %s, and it is %s: %s", d.CheckAt, w.now, d.Reason)
	}
}

// carry applies a decision to r and stores it, if r is what is stored.
func (w *world) carry(t *rapid.T, r lifecycle.Record, d lifecycle.Decision) {
	next := w.apply(t, r, d)
	if r.Version == w.rec().Version && lifecycle.Allowed(r, d.Action) {
		switch d.Action {
		case lifecycle.ActionLeaveStandby:
			w.left, w.leaves = w.left+1, true
		case lifecycle.ActionReregister:
			w.left++
		case lifecycle.ActionPool, lifecycle.ActionTerminate:
			w.leaves = false
		}
		w.store(next)
	}
}
