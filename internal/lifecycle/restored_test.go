package lifecycle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/restored"
	"github.com/remuda-ci/remuda/internal/lifecycle/silence"
)

// later is what a busy host reports whose record was restored from before its last assignments.
func later() *lifecycle.Report {
	return &lifecycle.Report{HostKey: hostKey, HeartbeatAt: now, Assignment: assignment + 2, Busy: true}
}

// alive are the plain hosts, which Decide may end.
func alive() []string {
	return slices.DeleteFunc(hostNames(), func(name string) bool { return beginnings()[name].facts.Record.State == lifecycle.StateTerminated })
}

// The record is hours older than what the host does. No deadline of it ends the host while a job runs, whatever its state was then,
// until the job has had the longest runtime that controld knows of.
func TestABusyHostOutlivesTheDeadlinesOfARestoredRecord(t *testing.T) {
	for _, name := range alive() {
		t.Run(name, func(t *testing.T) {
			facts, policy := scene{host: name, answer: "seen", deadline: "overrun", request: "released"}.facts()
			facts.Report, policy.MaxRuntime = later(), 2*time.Hour
			facts.Record.DueAt, facts.Record.MaxRuntime = facts.Record.Threshold, time.Hour
			facts.Record.InterruptionAt = time.Time{}
			at := now
			for ; at.Before(now.Add(2 * time.Hour)); at = at.Add(time.Minute) {
				facts.Report.HeartbeatAt, facts.ReportsReadAt = at, at
				d := lifecycle.Decide(facts, at, policy)
				if d.Action == lifecycle.ActionTerminate {
					t.Fatalf("ended after %s: %s", at.Sub(now), outcome(d))
				}
				if facts.Record = carriedOut(t, facts.Record, d, at, policy); !facts.Record.RestoredAt.Equal(now) || !facts.Record.Retiring {
					t.Fatalf("not marked: %+v", facts.Record)
				}
			}
			facts.Report.HeartbeatAt, facts.ReportsReadAt = at, at
			if d := lifecycle.Decide(facts, at, policy); d.Action != lifecycle.ActionTerminate {
				t.Errorf("%s after the longest runtime", outcome(d))
			}
		})
	}
}

// carriedOut is the record after a decision.
func carriedOut(t *testing.T, r lifecycle.Record, d lifecycle.Decision, at time.Time, p lifecycle.Policy) lifecycle.Record {
	t.Helper()
	if !lifecycle.Allowed(r, d.Action) {
		return r
	}
	n, err := lifecycle.Apply(r, d, at, p)
	if err != nil {
		t.Fatal(err)
	}
	if n.DueAt.After(n.Threshold) && n.DueAt.After(at) {
		t.Errorf("after %s it is due at %s, its threshold is %s", d.Action, n.DueAt, n.Threshold)
	}
	return n
}

// The mark says why, for people and programs, and no run gets the host.
func TestTheMarkOfARestoredRecord(t *testing.T) {
	facts, policy := scene{host: "pooled", answer: "seen", deadline: "ahead"}.facts()
	facts.Report = later()
	facts.Report.Busy = false
	d := lifecycle.Decide(facts, now, policy)
	if d.Action != lifecycle.ActionRetire || d.Code != lifecycle.ReasonRecordRestored {
		t.Fatalf("%s, want that it retires", outcome(d))
	}
	r, err := lifecycle.Apply(facts.Record, d, now, policy)
	if err != nil || !r.Retiring || r.RetiringReason != d.Reason || r.Claimable(now, 0) {
		t.Fatalf("%+v, %v", r, err)
	}
	facts.Record = r
	if d := lifecycle.Decide(facts, now, policy); d.Action != lifecycle.ActionTerminate || d.Reason != r.RetiringReason {
		t.Errorf("%s, want the end of a host that no job runs on", outcome(d))
	}
}

// A mark is set once: an agent that names ever later assignments cannot keep its host for longer.
func TestTheMarkOfARestoredRecordIsSetOnce(t *testing.T) {
	facts, policy := scene{host: "running", answer: "seen", deadline: "overrun"}.facts()
	facts.Record.RestoredAt, facts.Record.Retiring = now.Add(-5*time.Hour), true
	facts.Report = later()
	if d := lifecycle.Decide(facts, now, policy); d.Action != lifecycle.ActionTerminate {
		t.Errorf("%s, five hours after the mark, and the runtime is four", outcome(d))
	}
	facts.Record.Retiring = false // scale-down took its own mark back, and this one with it
	r := carriedOut(t, facts.Record, lifecycle.Decide(facts, now, policy), now, policy)
	if !r.Retiring || !r.RestoredAt.Equal(facts.Record.RestoredAt) {
		t.Errorf("marked again at %s, retiring %v", r.RestoredAt, r.Retiring)
	}
}

// What ends a busy host for certain ends one with a restored record too.
func TestARestoredRecordOfALostMachine(t *testing.T) {
	for name, change := range map[string]func(*lifecycle.Facts){
		"gone": func(f *lifecycle.Facts) { f.Cloud = machines["gone"] },
		"silent and impaired": func(f *lifecycle.Facts) {
			f.Cloud, f.Report.HeartbeatAt = machines["impaired"], now.Add(-time.Hour)
		},
	} {
		facts, policy := scene{host: "running", answer: "seen", deadline: "overrun"}.facts()
		facts.Report, facts.Record.RestoredAt, facts.Record.Retiring = later(), now, true
		change(&facts)
		if d := lifecycle.Decide(facts, now, policy); d.Action != lifecycle.ActionTerminate {
			t.Errorf("%s: %s", name, outcome(d))
		}
	}
}

// The number of an assignment is used again after a restore. A signal for the run that had it before says nothing about the new one.
func TestASignalForAnotherRunOfTheAssignment(t *testing.T) {
	for run, want := range map[string]lifecycle.Action{"another": lifecycle.ActionKeep, "101": lifecycle.ActionReady, "": lifecycle.ActionReady} {
		facts, policy := scene{host: "claimed", answer: "UD_REG_OK", deadline: "ahead", beat: "fresh", request: "wanted"}.facts()
		facts.Report.RunID = run
		if d := lifecycle.Decide(facts, now, policy); d.Action != want {
			t.Errorf("a report for run %q: %s, want %s", run, outcome(d), want)
		}
	}
}

// A run that is released just now gives up a host that boots at once, though controld has just started.
func TestAReleaseEndsAHostThatBoots(t *testing.T) {
	facts, policy := scene{host: "created", answer: "none", deadline: "ahead", beat: "unheard"}.facts()
	for age, want := range map[time.Duration]lifecycle.Action{
		0: lifecycle.ActionTerminate, restored.Old - 1: lifecycle.ActionTerminate, restored.Old: lifecycle.ActionKeep,
	} {
		facts.Request = &lifecycle.Request{RunID: "101", RequestID: "q1", Taken: []lifecycle.Taken{{HostKey: hostKey}}, ReleasedAt: now.Add(-age)}
		if d := lifecycle.Decide(facts, now, policy); d.Action != want {
			t.Errorf("released %s ago: %s, want %s", age, outcome(d), want)
		}
	}
}

// Records and reports were restored, hours old, and controld starts. No host is ended before its agent could report.
func TestAHostIsHeardBeforeItEnds(t *testing.T) {
	stale := &lifecycle.Report{HostKey: hostKey, HeartbeatAt: now.Add(-7 * time.Hour), Assignment: assignment}
	for name, report := range map[string]*lifecycle.Report{"no report": nil, "an older report": stale} {
		for _, host := range alive() {
			t.Run(name+"/"+host, func(t *testing.T) {
				facts, policy := scene{host: host, answer: "seen", deadline: "overrun"}.facts()
				facts.Report, facts.Record.InterruptionAt = report, time.Time{}
				for _, w := range []silence.Watch{
					{}, {StoreUpSince: now}, {StoreUpSince: now.Add(-59 * time.Second), StoreReadableSince: now.Add(-59 * time.Second), ReportsReadAt: now},
				} {
					facts.Watch = w
					if d := lifecycle.Decide(facts, now, policy); d.Action == lifecycle.ActionTerminate || d.Action == lifecycle.ActionKeep && !d.CheckAt.After(now) {
						t.Fatalf("%+v: %s", w, outcome(d))
					}
				}
			})
		}
		facts, policy := scene{host: "running", answer: "seen", deadline: "overrun"}.facts()
		facts.Report, facts.Watch = report, silence.Watch{StoreUpSince: now.Add(-time.Minute)}
		if d := lifecycle.Decide(facts, now, policy); d.Action != lifecycle.ActionTerminate {
			t.Errorf("%s: %s, though its agent could have reported", name, outcome(d))
		}
		// A mark of a sweep has just written the record, and knew nothing newer.
		facts.Watch, facts.Record.UpdatedAt, facts.Record.Threshold = silence.Watch{}, now, now.Add(-restored.Old+1)
		if d := lifecycle.Decide(facts, now, policy); d.Action != lifecycle.ActionKeep {
			t.Errorf("%s: %s, and its record is as old as its run", name, outcome(d))
		}
		facts, policy = scene{host: "created", answer: "seen", deadline: "overrun"}.facts()
		facts.Report, facts.Watch, facts.Record.Threshold = nil, silence.Watch{}, now
		facts.Record.CreatedAt, facts.Record.UpdatedAt = now.Add(-restored.Old+1), now.Add(-restored.Old+1)
		if d := lifecycle.Decide(facts, now, policy); d.Action != lifecycle.ActionTerminate {
			t.Errorf("%s: %s, and its record was written just now", name, outcome(d))
		}
	}
}

// A mark that a sweep or an operator makes, as that the host gets no further run, does not make a restored record newer.
func TestAMarkMakesNoRecordNewer(t *testing.T) {
	marks := map[string]func(*lifecycle.Record){
		"none": func(*lifecycle.Record) {},
		"retired": func(r *lifecycle.Record) {
			r.Retiring, r.RetiringReason, r.UpdatedAt = true, "its launch template has changed", now
		},
	}
	for mark, with := range marks {
		for _, host := range alive() {
			facts, policy := scene{host: host, answer: "none", deadline: "ahead", request: "released"}.facts()
			before := now.Add(-30 * time.Minute)
			facts.Report, facts.Watch = nil, silence.Watch{StoreUpSince: now}
			facts.Record.InterruptionAt, facts.Record.CreatedAt, facts.Record.UpdatedAt = time.Time{}, before.Add(-time.Minute), before
			if facts.Record.State == lifecycle.StateRunning {
				facts.Record.Threshold = before.Add(facts.Record.MaxRuntime)
			}
			if !facts.Record.PooledAt.IsZero() {
				facts.Record.PooledAt = before
			}
			if facts.Request != nil {
				facts.Request.ReleasedAt = before
			}
			with(&facts.Record)
			if d := lifecycle.Decide(facts, now, policy); d.Action == lifecycle.ActionTerminate {
				t.Errorf("%s, %s: %s", host, mark, outcome(d))
			}
			if facts.Record.PooledAt.IsZero() {
				continue
			}
			stopped, reset := facts, facts
			stopped.Record.Stop = &lifecycle.Stop{At: before, StoppedAt: before.Add(time.Minute)}
			reset.Record.PooledAt, reset.Record.RootVolume = time.Time{}, &lifecycle.RootVolume{At: before}
			for state, facts := range map[string]lifecycle.Facts{"stopped": stopped, "resetting": reset} {
				if d := lifecycle.Decide(facts, now, policy); d.Action == lifecycle.ActionTerminate {
					t.Errorf("%s, then %s, %s: %s", host, state, mark, outcome(d))
				}
			}
		}
	}
}

// A host that boots is as old as its record, whatever has written it since and though its request is not known.
func TestAHostThatBootsIsAsOldAsItsRecord(t *testing.T) {
	for name, tt := range map[string]struct {
		created time.Duration
		want    lifecycle.Action
	}{"made just now": {restored.Old - time.Second, lifecycle.ActionTerminate}, "marked just now": {restored.Old + time.Second, lifecycle.ActionKeep}} {
		facts, policy := scene{host: "created", answer: "none", deadline: "overrun"}.facts()
		facts.Report, facts.Request, facts.Watch = nil, nil, silence.Watch{}
		facts.Record.Threshold, facts.Record.CreatedAt, facts.Record.UpdatedAt = now, now.Add(-tt.created), now
		if d := lifecycle.Decide(facts, now, policy); d.Action != tt.want {
			t.Errorf("%s: %s", name, outcome(d))
		}
	}
}

// The store lost the report of a host that cannot write another. A deadline that it misses for want of a report does not end it while a
// job may run on it: its run gets another host.
func TestAHostWhoseReportWasLost(t *testing.T) {
	for host, want := range map[string]lifecycle.Action{
		"created": lifecycle.ActionTerminate, "releasing, fresh": lifecycle.ActionTerminate, // these have never reported
		"claimed": lifecycle.ActionReturn, "releasing": lifecycle.ActionKeep,
		"draining": lifecycle.ActionTerminate, // its job has had its whole runtime
	} {
		t.Run(host, func(t *testing.T) {
			facts, policy := scene{host: host, answer: "none", deadline: "reached"}.facts()
			d := lifecycle.Decide(facts, now, policy)
			if d.Action != want {
				t.Fatalf("%s, want %s", outcome(d), want)
			}
			if d.Action != lifecycle.ActionTerminate && d.Code != lifecycle.ReasonManySilent {
				t.Errorf("%s has the code %s", outcome(d), d.Code)
			}
			over := facts.Record.Threshold.Add(facts.Record.MaxRuntime)
			if d := lifecycle.Decide(facts, over, policy); d.Action != lifecycle.ActionTerminate {
				t.Errorf("%s after the longest runtime", outcome(d))
			}
		})
	}
}

// The run of a restored record was released long ago. What writes the release does not know more than the record: the host, whose deadline
// has just passed, is not ended before its agent could report.
func TestAReleaseMakesNoRecordNewer(t *testing.T) {
	facts, policy := scene{host: "running", answer: "none", deadline: "reached", request: "released"}.facts()
	facts.Record.UpdatedAt = facts.Record.RuntimeEndsAt.Add(-facts.Record.MaxRuntime)
	facts.Watch = silence.Watch{StoreUpSince: now}
	d := lifecycle.Decide(facts, now, policy)
	if d.Action != lifecycle.ActionRelease {
		t.Fatalf("%s, want that it leaves its run", outcome(d))
	}
	released, err := lifecycle.Apply(facts.Record, d, now, policy)
	if err != nil {
		t.Fatal(err)
	}
	facts.Record = released
	for after, want := range map[time.Duration]lifecycle.Action{5 * time.Second: lifecycle.ActionKeep, policy.Silence: lifecycle.ActionTerminate} {
		if d := lifecycle.Decide(facts, now.Add(after), policy); d.Action != want {
			t.Errorf("after %s: %s, want %s", after, outcome(d), want)
		}
	}
}

// An agent that has lost its memory reports for the restored record's assignment, and for which later one the host has served.
func TestAReportOfALaterAssignmentServed(t *testing.T) {
	for served, want := range map[int64]bool{0: false, assignment: false, assignment + 1: true} {
		facts, policy := scene{host: "claimed", answer: "seen", deadline: "ahead"}.facts()
		facts.Report = &lifecycle.Report{HostKey: hostKey, HeartbeatAt: now, Assignment: assignment, Served: served}
		d := lifecycle.Decide(facts, now, policy)
		if got := d.Action == lifecycle.ActionRetire && d.Code == lifecycle.ReasonRecordRestored; got != want {
			t.Errorf("served %d: %s, want the record taken for a restored one: %v", served, outcome(d), want)
		}
	}
}
