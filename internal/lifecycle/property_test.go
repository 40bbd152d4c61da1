package lifecycle_test

import (
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// edges is the table of docs/design.md#the-lifecycle, by the words of Record.Condition.
var edges = map[string][]string{
	"created":          {"running", "terminated"},
	"running":          {"idle (releasing)", "terminated"},
	"idle (releasing)": {"idle (pooled)", "terminated"},
	"idle (pooled)":    {"claimed", "idle (releasing)", "terminated"},
	"claimed":          {"running", "idle (releasing)", "terminated"},
	"terminated":       {},
}

// TestMain asks rapid for more than its 100 checks; RAPID_CHECKS and -rapid.checks still decide.
func TestMain(m *testing.M) {
	if os.Getenv("RAPID_CHECKS") == "" {
		if err := flag.Set("rapid.checks", "500"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// TestAnyLife drives one host through any sequence of events: reports true and
// false, decisions carried out, lost, repeated or made of stale records, claims
// true and stale, orders, holds, and time. No record that is ever stored breaks
// the rules of its state, and no decision is one that the table forbids.
func TestAnyLife(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"time passes":     w.timePasses,
			"goes well":       w.goesWell,
			"goes on well":    w.goesWell,
			"fails":           w.fails,
			"agent reports":   w.agentReports,
			"agent lies":      w.agentLies,
			"report is lost":  func(*rapid.T) { w.facts.Report = nil },
			"EC2 says":        w.cloudSays,
			"request changes": w.requestChanges,
			"store":           w.storeComesAndGoes,
			"sweep":           w.sweep,
			"stale sweep":     w.staleSweep,
			"crash":           w.crash,
			"claim":           w.claim,
			"order":           w.order,
			"mark":            w.mark,
			"":                w.holds,
		})
	})
}

// TestEveryLifeEnds: whatever happened to a host, and whatever its agent went
// on to say, when nothing new happens it is ended and forgotten in bounded time
// by a sweep that looks only when a decision says so.
func TestEveryLifeEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 20).Draw(t, "events") {
			rapid.SampledFrom([]func(*rapid.T){
				w.timePasses, w.goesWell, w.goesWell, w.agentReports, w.agentLies, w.sweep, w.claim, w.requestChanges, w.mark, w.storeComesAndGoes,
			}).Draw(t, "event")(t)
		}
		heard := rapid.Bool().Draw(t, "heartbeats go on")
		const most = 20_000 // looks: 24 h of asking GitHub are 5,760, 6 h of a silent drain 4,320
		for range most {
			d := lifecycle.Decide(w.facts, w.now, w.policy)
			switch {
			case d.Action == lifecycle.ActionKeep && d.CheckAt.IsZero():
				if w.rec().State != lifecycle.StateTerminated {
					t.Fatalf("%s is never looked at again: %s", w.rec().Condition(), d.Reason)
				}
				return
			case lifecycle.Allowed(w.rec(), d.Action):
				w.carry(t, w.rec(), w.setLabels(t, w.facts, d))
			case d.Action == lifecycle.ActionKeep && w.rec().LostBy != nil:
				w.facts.Record.LostBy = nil // a sweep has looked at the run
			case d.Action == lifecycle.ActionEndMachine:
				w.facts.Cloud = &lifecycle.Machine{Hardware: shown, State: lifecycle.MachineGone}
			case d.Code == lifecycle.ReasonNotHeardYet: // the replica that sweeps reads the store
				w.facts.StoreUpSince, w.now = w.now, w.now.Add(w.policy.Silence)
			default:
				w.now = d.CheckAt
			}
			if heard && w.facts.Report != nil {
				w.facts.Report.HeartbeatAt = w.now
			}
		}
		t.Fatalf("%s, not forgotten after %d looks", w.rec().Condition(), most)
	})
}

// holds is what is true of every stored record.
func (w *world) holds(t *rapid.T) {
	r := w.rec()
	idle, over := r.State == lifecycle.StateIdle, r.State == lifecycle.StateTerminated
	for rule, ok := range map[string]bool{
		"its state is one of ours":                                    r.State.Valid(),
		"it has a run in created, running and claimed, and only then": (r.RunID != "") == (!idle && !over),
		"it has a request with a run and until it is clean":           (r.RunID != "" || r.Releasing() && !w.leaves) == (r.RequestID != ""),
		"every other assignment has a run, until the end":             over || (r.RunID != "") == ((r.Assignment-w.left)%2 == 1) != w.warm,
		"who has served is bound, and to its first run's key":         r.Unused() == (r.Uses == 0) && (r.Unused() || r.TrustKey == w.policy.Reuse.TrustKey("acme/web")),
		"no threshold when terminated, and only then":                 r.Threshold.IsZero() == over,
		"dueAt goes only when terminated":                             !r.DueAt.IsZero() || over,
		"dueAt lies at or before the threshold":                       over || !r.DueAt.After(r.Threshold),
		"expiresAt is set when nothing is due, and only then":         r.DueAt.IsZero() != r.ExpiresAt.IsZero(),
		"pooledAt only when idle":                                     r.PooledAt.IsZero() || idle,
		"releasedAt while releasing, and only then":                   !r.ReleasedAt.IsZero() == r.Releasing(),
		"no secret that is used up":                                   r.Registration == nil || (r.State != lifecycle.StateRunning && (!r.Pooled() || r.Warming()) && !over),
		"a registration is good for the state":                        r.Registration == nil || r.Releasing() == (r.Registration.Kind == lifecycle.RegistrationRemove),
		"a runner may exist in every state but pooled and clean":      (r.RunnerName != "") != (r.Pooled() && r.Standby == nil) || over || r.Unused(),
		"a pool that says so, and only it, has hosts that listen":     r.Standby == nil || w.policy.Standby == lifecycle.StandbyListening,
		"a registration ahead of need is not of a host that leaves":   r.Standby == nil || (!r.Releasing() && !over && r.JobsOf == "" && !r.Unused()),
		"a pooled host registers under its assignment":                r.Standby == nil || !r.Pooled() || r.Standby.Assignment == r.Assignment,
		"a host that serves by it keeps its name, else it has another": r.Standby == nil ||
			(r.RunnerName == lifecycle.RunnerName(r.Standby.Assignment, r.InstanceID)) == !r.Standby.Discarded,
		"a ready host has no label that cannot be guessed":         r.State != lifecycle.StateRunning || r.Standby == nil || (r.Standby.RunnerID != 0 && r.Standby.Label == ""),
		"a host whose registration failed has none":                !r.StandbyFailed || !r.Pooled() || r.Standby == nil,
		"a job-scoped host is in no pool, and has no remove token": r.JobsOf == "" || (!r.Pooled() && (r.Registration == nil || r.Registration.Kind == lifecycle.RegistrationJIT)),
		"a running job-scoped host is due within 30 s":             r.JobsOf == "" || r.State != lifecycle.StateRunning || !r.DueAt.After(r.UpdatedAt.Add(w.policy.JobPoll)),
		"at most one failure of its own is forgiven":               r.ClaimFailures <= 1,
		"a reason": r.Reason != "",
	} {
		if !ok {
			t.Fatalf("broken: %s\n%+v", rule, r)
		}
	}
}

// carried checks one write of the record against the table and the counters.
func carried(t *rapid.T, before, after lifecycle.Record) {
	from, to := before.Condition(), after.Condition()
	allowed := from == to
	for _, e := range edges[from] {
		allowed = allowed || e == to
	}
	if !allowed {
		t.Fatalf("forbidden transition from %s to %s", from, to)
	}
	grew := int64(0)
	leaves := from == "idle (pooled)" && to == "idle (releasing)"
	reregisters := from == "claimed" && to == "claimed" && before.Standby != nil && !before.Standby.Discarded && after.Standby != nil && after.Standby.Discarded
	if before.RunID != after.RunID || leaves || reregisters || (from != to && to == "terminated") {
		grew = 1
	}
	if after.Assignment != before.Assignment+grew {
		t.Fatalf("%s to %s: assignment from %d to %d", from, to, before.Assignment, after.Assignment)
	}
	if end := before.RuntimeEndsAt; !end.IsZero() && !after.RuntimeEndsAt.IsZero() && !end.Equal(after.RuntimeEndsAt) {
		t.Fatalf("%s to %s: the end of the runtime moved from %s to %s", from, to, end, after.RuntimeEndsAt)
	}
	if after.Version != before.Version {
		t.Fatalf("version changed from %d to %d: that is the store's to do", before.Version, after.Version)
	}
	if (from == to) != (before.Reason == after.Reason) && from == to && !reregisters {
		t.Fatalf("the reason of %s changed without a transition: %s", to, after.Reason)
	}
}

// apply carries a decision out on a record as fleet does, without storing it.
func (w *world) apply(t *rapid.T, r lifecycle.Record, d lifecycle.Decision) lifecycle.Record {
	before := r
	if d.StandsBy {
		d.Standby = rapid.SampledFrom([]*lifecycle.Standby{ // GitHub may give no token
			nil, {Assignment: r.Assignment, Label: "standby"}, {Assignment: r.Assignment, Label: "standby"},
		}).Draw(t, "standby")
	}
	if d.Action == lifecycle.ActionStandBy {
		d.RunnerID = runnerID
	}
	next, err := lifecycle.Apply(r, d, w.now, w.policy)
	if typed := new(lifecycle.TransitionError); errors.As(err, &typed) || err != nil {
		t.Fatalf("Decide's own answer %q was refused: %v", d.Action, err)
	}
	if diff := cmp.Diff(before, r); diff != "" {
		t.Fatalf("Apply changed its argument:\n%s", diff)
	}
	carried(t, r, next)
	again, err := lifecycle.Apply(r, d, w.now, w.policy)
	if diff := cmp.Diff(next, again); diff != "" || err != nil {
		t.Fatalf("Apply repeated differs: %v\n%s", err, diff)
	}
	switch d.Action {
	case lifecycle.ActionPool:
		if next.Warming() {
			next.Registration = &lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: token, ExpiresAt: w.now.Add(time.Hour)}
		}
	case lifecycle.ActionReregister:
		next.Registration = &lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: token, ExpiresAt: w.now.Add(time.Hour)}
	case lifecycle.ActionRelease, lifecycle.ActionReturn, lifecycle.ActionProvideToken, lifecycle.ActionLeaveStandby:
		if r.JobsOf != "" {
			if d.Action == lifecycle.ActionProvideToken {
				t.Fatalf("a remove token for a job-scoped host: %+v", r)
			}
			break
		}
		next.Registration = &lifecycle.Registration{Kind: lifecycle.RegistrationRemove, Secret: token, ExpiresAt: w.now.Add(time.Hour)}
	}
	return next
}
