package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// some is a count that is known.
func some(n int) *int { return &n }

var servicePolicy = policy.ServicePolicy{Maximum: 4, BacklogPerRunner: 10, IdleChecks: 5}

func TestScale(t *testing.T) {
	t.Parallel()
	type facts = policy.ServiceFacts
	type decision = policy.ServiceDecision
	keep := func(desired, checks int, code lifecycle.ReasonCode, why string) decision {
		return decision{Action: policy.ServiceKeep, Desired: desired, IdleChecks: checks, Code: code, Reason: why}
	}
	out := func(desired int, code lifecycle.ReasonCode, why string) decision {
		return decision{Action: policy.ServiceScaleOut, Desired: desired, Code: code, Reason: why}
	}
	for _, tt := range []struct {
		name  string
		facts facts
		want  decision
	}{
		{"a job waits without a runner", facts{Queued: some(1), Busy: some(0)}, out(1, lifecycle.ReasonJobsWaiting, "1 job waits and there are no runners")},
		{"as many as one runner may have wait without a runner", facts{Queued: some(10), Busy: some(0)}, out(1, lifecycle.ReasonJobsWaiting, "10 jobs wait and there are no runners")},
		{"more wait without a runner", facts{Queued: some(11), Busy: some(0)}, out(2, lifecycle.ReasonJobsWaiting, "11 jobs wait and there are no runners")},
		{"a job waits between two checks", facts{Queued: some(1), Busy: some(0), Between: true}, out(1, lifecycle.ReasonJobsWaiting, "1 job waits and there are no runners")},
		{"a job waits without a runner, busy unknown", facts{Queued: some(50)}, out(1, lifecycle.ReasonJobsWaiting, "50 jobs wait and there are no runners; it is not known what is worked on")},
		{"jobs wait for one, busy unknown", facts{Desired: 1, Queued: some(50), IdleChecks: 3}, keep(1, 0, lifecycle.ReasonBacklogUnknown, "50 jobs wait, and it is not known what is worked on")},
		{"jobs wait for one, within the bound", facts{Desired: 1, Running: 1, Queued: some(10), Busy: some(1)}, keep(1, 0, lifecycle.ReasonJobsWaiting, "10 jobs wait for 1 runner, within 10 for each")},
		{"jobs wait for one, beyond the bound", facts{Desired: 1, Running: 1, Queued: some(31), Busy: some(1)}, out(4, lifecycle.ReasonJobsWaiting, "31 jobs wait for 1 runner, more than 10 for each")},
		{"more wait than were counted", facts{Desired: 1, Running: 1, Queued: some(41), More: true, Busy: some(1)}, out(4, lifecycle.ReasonJobsWaiting, "41 or more jobs wait for 1 runner, more than 10 for each")},
		{"one that starts counts", facts{Desired: 2, Pending: 2, Queued: some(20), Busy: some(0)}, keep(2, 0, lifecycle.ReasonJobsWaiting, "20 jobs wait for 2 runners, within 10 for each")},
		{"more wait than the maximum may have", facts{Desired: 1, Queued: some(1000), Busy: some(1)}, out(4, lifecycle.ReasonJobsWaiting, "1000 jobs wait for 1 runner, more than 10 for each")},
		{"the maximum is there", facts{Desired: 4, Queued: some(1000), Busy: some(4)}, keep(4, 0, lifecycle.ReasonServiceFull, "1000 jobs wait, and there are 4 runners, the most there may be")},
		{"more than the maximum is there", facts{Desired: 7, Queued: some(1), Busy: some(7)}, keep(7, 0, lifecycle.ReasonJobsWaiting, "1 job waits for 7 runners, within 10 for each")},
		{"fewer wait than there are runners", facts{Desired: 3, Queued: some(1), Busy: some(0), IdleChecks: 4}, keep(3, 0, lifecycle.ReasonJobsWaiting, "1 job waits for 3 runners, within 10 for each")},
		{"no runners and no jobs", facts{Queued: some(0), Busy: some(0), IdleChecks: 5}, keep(0, 0, lifecycle.ReasonServiceEmpty, "nothing waits, and there are no runners")},
		{"the first idle check", facts{Desired: 1, Queued: some(0), Busy: some(0)}, keep(1, 1, lifecycle.ReasonServiceIdle, "nothing waits and nothing is worked on, at 1 of 5 checks in a row")},
		{"the fourth", facts{Desired: 1, Queued: some(0), Busy: some(0), IdleChecks: 3}, keep(1, 4, lifecycle.ReasonServiceIdle, "nothing waits and nothing is worked on, at 4 of 5 checks in a row")},
		{"the fifth", facts{Desired: 3, Queued: some(0), Busy: some(0), IdleChecks: 4},
			decision{policy.ServiceScaleIn, 0, 5, lifecycle.ReasonServiceIdle, "nothing waits and nothing is worked on, at 5 checks in a row"}},
		{"once more after a crash", facts{Desired: 3, Queued: some(0), Busy: some(0), IdleChecks: 5},
			decision{policy.ServiceScaleIn, 0, 5, lifecycle.ReasonServiceIdle, "nothing waits and nothing is worked on, at 5 checks in a row"}},
		{"between two checks", facts{Desired: 1, Queued: some(0), Busy: some(0), IdleChecks: 4, Between: true},
			keep(1, 4, lifecycle.ReasonServiceIdle, "nothing waits and nothing is worked on, at 4 of 5 checks; this look is not one of them")},
		{"one that does not come up counts as idle", facts{Desired: 1, Pending: 1, Queued: some(0), Busy: some(0), IdleChecks: 1},
			keep(1, 2, lifecycle.ReasonServiceIdle, "nothing waits and nothing is worked on, at 2 of 5 checks in a row")},
		{"a busy runner", facts{Desired: 2, Queued: some(0), Busy: some(1), IdleChecks: 4}, keep(2, 0, lifecycle.ReasonJobsRunning, "1 job is worked on")},
		{"a busy runner, the queue unknown", facts{Desired: 2, Busy: some(2), IdleChecks: 4}, keep(2, 0, lifecycle.ReasonJobsRunning, "2 jobs are worked on")},
		{"busy unknown", facts{Desired: 2, Queued: some(0), IdleChecks: 4}, keep(2, 4, lifecycle.ReasonBacklogUnknown, "nothing waits, and it is not known what is worked on")},
		{"the queue unknown", facts{Desired: 2, Busy: some(0), IdleChecks: 4}, keep(2, 4, lifecycle.ReasonBacklogUnknown, "it is not known what waits")},
		{"nothing known", facts{Desired: 2, IdleChecks: 4}, keep(2, 4, lifecycle.ReasonBacklogUnknown, "it is not known what waits")},
		{"a queue below zero is unknown", facts{Desired: 2, Queued: some(-1), Busy: some(0), IdleChecks: 4}, keep(2, 4, lifecycle.ReasonBacklogUnknown, "it is not known what waits")},
		{"busy below zero is unknown", facts{Desired: 2, Queued: some(0), Busy: some(-1), IdleChecks: 4}, keep(2, 4, lifecycle.ReasonBacklogUnknown, "nothing waits, and it is not known what is worked on")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, servicePolicy.Scale(tt.facts)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func drawCount(t *rapid.T, name string) *int {
	n := rapid.IntRange(-1, 60).Draw(t, name)
	if n > 30 {
		n = 0 // often
	}
	if n < 0 {
		return nil
	}
	return &n
}

func drawService(t *rapid.T) (policy.ServicePolicy, policy.ServiceFacts) {
	return policy.ServicePolicy{
			Maximum: rapid.IntRange(1, 5).Draw(t, "maximum"), BacklogPerRunner: rapid.IntRange(1, 10).Draw(t, "backlog"),
			IdleChecks: rapid.IntRange(1, 6).Draw(t, "checks"),
		}, policy.ServiceFacts{
			Desired: rapid.IntRange(0, 8).Draw(t, "desired"), Queued: drawCount(t, "queued"), Busy: drawCount(t, "busy"),
			IdleChecks: rapid.IntRange(0, 7).Draw(t, "idle"), Between: rapid.Bool().Draw(t, "between"),
		}
}

func TestScaleKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, f := drawService(t)
		d := p.Scale(f)
		queued, busy := f.Queued != nil && *f.Queued > 0, f.Busy != nil && *f.Busy > 0
		unknown := f.Queued == nil || f.Busy == nil
		switch {
		case d.Reason == "" || d.Code == "":
			t.Fatal("a decision without a reason")
		case (d.Action == policy.ServiceKeep) != (d.Desired == f.Desired), (d.Action == policy.ServiceScaleOut) != (d.Desired > f.Desired):
			t.Fatalf("%s from %d to %d", d.Action, f.Desired, d.Desired)
		case d.Desired > f.Desired && d.Desired > p.Maximum:
			t.Fatalf("scaled out to %d, above the maximum", d.Desired)
		case d.Desired < f.Desired && (d.Desired != 0 || queued || busy || unknown || f.Between || d.IdleChecks < p.IdleChecks):
			t.Fatalf("scaled in to %d: %s", d.Desired, d.Reason)
		case f.Desired == 0 && queued && d.Desired == 0:
			t.Fatal("a job waits without a runner")
		case unknown && d.Desired != f.Desired && (f.Desired != 0 || d.Desired != 1 && f.Busy == nil || !queued):
			t.Fatalf("unknown facts changed %d to %d", f.Desired, d.Desired)
		case (queued || busy) && d.IdleChecks != 0:
			t.Fatal("work did not reset the idle checks")
		case !unknown && !queued && !busy && f.Desired > 0 && !f.Between && d.IdleChecks != min(f.IdleChecks+1, p.IdleChecks):
			t.Fatalf("idle checks went from %d to %d", f.IdleChecks, d.IdleChecks)
		case p.Scale(policy.ServiceFacts{Desired: d.Desired, Queued: f.Queued, Busy: f.Busy, IdleChecks: d.IdleChecks, Between: true}).Desired < d.Desired:
			t.Fatal("a second look takes back what the first did")
		}
	})
}

// A service goes to zero after exactly so many idle checks in a row, and never
// while a job is there.
func TestScaleOverManyChecks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, _ := drawService(t)
		desired, counted, idle := 0, 0, 0
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			queued, busy := drawCount(t, "queued"), drawCount(t, "busy")
			d := p.Scale(policy.ServiceFacts{Desired: desired, Queued: queued, Busy: busy, IdleChecks: counted})
			switch {
			case queued != nil && *queued > 0, busy != nil && *busy > 0, desired == 0:
				idle = 0
			case queued != nil && busy != nil:
				idle++
			}
			if inNow := d.Desired < desired; inNow != (desired > 0 && idle == p.IdleChecks) {
				t.Fatalf("scaled in: %t, after %d of %d idle checks", inNow, idle, p.IdleChecks)
			}
			if desired, counted = d.Desired, d.IdleChecks; desired == 0 {
				idle = 0
			}
		}
	})
}

// Where one job for each runner is all that may wait, there are as many runners as jobs.
func TestOneJobForEachRunner(t *testing.T) {
	t.Parallel()
	p := policy.ServicePolicy{Maximum: 4, BacklogPerRunner: 1, IdleChecks: 5}
	for queued, want := range map[int]int{1: 1, 3: 3, 4: 4, 9: 4} {
		if got := p.Scale(policy.ServiceFacts{Queued: some(queued), Busy: some(0)}); got.Desired != want {
			t.Errorf("%d jobs wait: %d runners, want %d", queued, got.Desired, want)
		}
	}
	full := p.Scale(policy.ServiceFacts{Desired: 4, Running: 4, Queued: some(4), Busy: some(4)})
	if full.Code != lifecycle.ReasonJobsWaiting || full.Reason != "4 jobs wait for 4 runners, within 1 for each" {
		t.Errorf("as many wait as may: %s: %s", full.Code, full.Reason)
	}
}
