package lifecycle_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// TestApplyFollowsTheTable tries every action on every host. The table is that
// of docs/design.md#the-lifecycle, written out once more.
func TestApplyFollowsTheTable(t *testing.T) {
	releasing := []string{"idle (releasing)"}
	warming, hot := []string{"pooled, warming", "pooled, warming for 2m"}, []string{"pooled, hot", "pooled, hot for a day"}
	standby := map[lifecycle.Action][]string{ // what of a condition has it, where not everything has
		lifecycle.ActionStandBy:      warming,
		lifecycle.ActionLeaveStandby: slices.Concat(warming, hot),
		lifecycle.ActionReregister:   {"claimed, hot", "claimed, hot, labels set", "claimed, hot, runner gone", "claimed, warming"},
	}
	table := map[lifecycle.Action][]string{
		lifecycle.ActionReady:        {"created", "claimed"},
		lifecycle.ActionRelease:      {"running"},
		lifecycle.ActionReturn:       {"claimed"},
		lifecycle.ActionPool:         releasing,
		lifecycle.ActionTerminate:    {"created", "running", "idle (releasing)", "idle (pooled)", "claimed"},
		lifecycle.ActionDrain:        releasing,
		lifecycle.ActionReleaseClock: releasing,
		lifecycle.ActionExtend:       {"idle (releasing)", "idle (pooled)"},
		lifecycle.ActionProvideToken: releasing,
		lifecycle.ActionForget:       {"terminated"},
		lifecycle.ActionLaunch:       nil, // Launched makes the record
		lifecycle.ActionClaim:        nil, // Claimed needs a Claim
		// The mark of the fleet's hold; an operator's own one sets attributes alone.
		lifecycle.ActionHold: {"created", "running", "idle (releasing)", "idle (pooled)", "claimed", "terminated"},
		"":                   nil, "no such action": nil,
		lifecycle.ActionStandBy: {"idle (pooled)"}, lifecycle.ActionLeaveStandby: {"idle (pooled)"}, lifecycle.ActionReregister: {"claimed"},
	}
	untouched := []lifecycle.Action{lifecycle.ActionKeep, lifecycle.ActionEndMachine, lifecycle.ActionDeleteRunner}
	for _, host := range hostNames() {
		facts, policy := scene{host: host, answer: "none", deadline: "ahead"}.facts()
		r := facts.Record
		for action, from := range table {
			got, err := lifecycle.Apply(r, lifecycle.Decision{Action: action, Reason: "a test"}, now, policy)
			if slices.Contains(from, r.Condition()) && (standby[action] == nil || slices.Contains(standby[action], host)) {
				if err != nil || !got.UpdatedAt.Equal(now) {
					t.Errorf("%s %s: %v, updated at %s", action, host, err, got.UpdatedAt)
				}
				continue
			}
			want := lifecycle.TransitionError{HostKey: hostKey, From: r.Condition(), Action: action}
			var refused *lifecycle.TransitionError
			if !errors.As(err, &refused) || *refused != want {
				t.Errorf("%s %s: %v, want %v", action, host, err, &want)
			}
			if diff := cmp.Diff(r, got); diff != "" {
				t.Errorf("%s %s: refused and changed:\n%s", action, host, diff)
			}
		}
		for _, action := range untouched {
			got, err := lifecycle.Apply(r, lifecycle.Decision{Action: action, Reason: "a test"}, now, policy)
			if diff := cmp.Diff(r, got); err != nil || diff != "" {
				t.Errorf("%s %s: %v\n%s", action, host, err, diff)
			}
		}
	}
}

func TestTransitionErrorSaysWhat(t *testing.T) {
	err := &lifecycle.TransitionError{HostKey: "i-1", From: "idle (pooled)", Action: lifecycle.ActionReady}
	if got, want := err.Error(), "host i-1: no transition ready from idle (pooled)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Each transition clears what its state has no use for.
func TestApplyClears(t *testing.T) {
	full := func(host string) lifecycle.Record {
		facts, _ := scene{host: host, answer: "none", deadline: "ahead"}.facts()
		r := facts.Record
		r.Labels, r.GitHubRunnerID, r.ClaimFailures, r.Hold, r.KeepCaches = []string{"gpu"}, 12, 1, now, []string{"go"}
		return r
	}
	p := lifecycle.DefaultPolicy()
	tests := []struct {
		name, host string
		decision   lifecycle.Decision
		want       func(before *lifecycle.Record)
	}{
		{"ready", "claimed", lifecycle.Decision{Action: lifecycle.ActionReady}, func(r *lifecycle.Record) {
			r.State, r.Registration, r.ClaimFailures = lifecycle.StateRunning, nil, 0
			r.Threshold, r.RuntimeEndsAt, r.DueAt = now.Add(4*time.Hour), now.Add(4*time.Hour), now.Add(4*time.Hour)
		}},
		{"release", "running", lifecycle.Decision{Action: lifecycle.ActionRelease}, func(r *lifecycle.Record) {
			r.State, r.RunID, r.LastRun, r.Labels, r.Assignment, r.KeepCaches = lifecycle.StateIdle, "", "101", nil, assignment+1, nil
			r.ReleasedAt, r.Threshold, r.DueAt = now, now.Add(2*time.Minute), now.Add(5*time.Second)
		}},
		{"return by its own fault", "claimed", lifecycle.Decision{Action: lifecycle.ActionReturn, HostFault: true}, func(r *lifecycle.Record) {
			r.State, r.RunID, r.LastRun, r.Labels, r.Assignment, r.KeepCaches = lifecycle.StateIdle, "", "101", nil, assignment+1, nil
			r.ReleasedAt, r.Threshold, r.DueAt = now, now.Add(2*time.Minute), now.Add(5*time.Second)
			r.Registration, r.ClaimFailures = nil, 2
		}},
		{"pool", "releasing", lifecycle.Decision{Action: lifecycle.ActionPool, Caches: "00000000000000aa:1:2"}, func(r *lifecycle.Record) {
			r.Caches = "00000000000000aa:1:2"
			r.Meter = meter.Meter(meter.Cycle{From: meter.At(now), PooledAt: meter.At(now)}.String()) // an older controld made the record
			r.PooledAt, r.ReleasedAt, r.RuntimeEndsAt, r.RequestID = now, time.Time{}, time.Time{}, ""
			r.Registration, r.RunnerName, r.GitHubRunnerID, r.KeepCaches = nil, "", 0, nil
			r.Threshold, r.DueAt = now.Add(5*time.Minute), now.Add(5*time.Minute)
		}},
		{"terminate", "draining", lifecycle.Decision{Action: lifecycle.ActionTerminate}, func(r *lifecycle.Record) {
			r.State, r.Assignment, r.Labels, r.Registration, r.RequestID, r.KeepCaches = lifecycle.StateTerminated, assignment+1, nil, nil, "", nil
			r.ReleasedAt, r.RuntimeEndsAt, r.Threshold, r.Hold, r.DueAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}, now
		}},
		{"stand by", "pooled, warming", lifecycle.Decision{Action: lifecycle.ActionStandBy, RunnerID: 7}, func(r *lifecycle.Record) {
			r.Standby, r.Registration = &lifecycle.Standby{Assignment: assignment, Label: "standby", RunnerID: 7}, nil
			r.DueAt = now.Add(4 * time.Minute)
		}},
		{"leave standby", "pooled, hot", lifecycle.Decision{Action: lifecycle.ActionLeaveStandby, StandbyFailed: true}, func(r *lifecycle.Record) {
			r.PooledAt, r.Standby, r.StandbyFailed, r.Labels, r.Assignment, r.KeepCaches = time.Time{}, nil, true, nil, assignment+1, nil
			r.ReleasedAt, r.Threshold, r.DueAt = now, now.Add(2*time.Minute), now.Add(5*time.Second)
		}},
		{"reregister", "claimed, hot", lifecycle.Decision{Action: lifecycle.ActionReregister}, func(r *lifecycle.Record) {
			r.Standby, r.Assignment, r.RunnerName = &lifecycle.Standby{Assignment: assignment - 1, Discarded: true}, assignment+1, "remuda-8-i-1"
			r.Threshold, r.DueAt = now.Add(2*time.Minute), now.Add(2*time.Minute)
		}},
		{"ready by its registration ahead of need", "claimed, hot", lifecycle.Decision{Action: lifecycle.ActionReady}, func(r *lifecycle.Record) {
			r.State, r.Registration, r.ClaimFailures = lifecycle.StateRunning, nil, 0
			r.Standby = &lifecycle.Standby{Assignment: assignment - 1, RunnerID: runnerID}
			r.Threshold, r.RuntimeEndsAt, r.DueAt = now.Add(4*time.Hour), now.Add(4*time.Hour), now.Add(4*time.Hour)
		}},
		{"ready by a registration that was not known yet", "claimed, warming", lifecycle.Decision{Action: lifecycle.ActionReady, RunnerID: 9}, func(r *lifecycle.Record) {
			r.State, r.Registration, r.ClaimFailures = lifecycle.StateRunning, nil, 0
			r.Standby = &lifecycle.Standby{Assignment: assignment - 1, RunnerID: 9}
			r.Threshold, r.RuntimeEndsAt, r.DueAt = now.Add(4*time.Hour), now.Add(4*time.Hour), now.Add(4*time.Hour)
		}},
		{"ready after it registered for its run", "claimed, discarding", lifecycle.Decision{Action: lifecycle.ActionReady}, func(r *lifecycle.Record) {
			r.State, r.Registration, r.ClaimFailures, r.Standby = lifecycle.StateRunning, nil, 0, nil
			r.Threshold, r.RuntimeEndsAt, r.DueAt = now.Add(4*time.Hour), now.Add(4*time.Hour), now.Add(4*time.Hour)
		}},
		{"forget", "terminated", lifecycle.Decision{Action: lifecycle.ActionForget}, func(r *lifecycle.Record) {
			r.DueAt, r.ExpiresAt, r.RunnerName, r.GitHubRunnerID = time.Time{}, now.Add(24*time.Hour), "", 0
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := full(tt.host)
			tt.want(&want)
			want.UpdatedAt = now
			if tt.name != "forget" && tt.name != "stand by" {
				tt.decision.Reason, want.Reason = "a test", "a test"
				tt.decision.Code, want.ReasonCode = lifecycle.ReasonOrdered, lifecycle.ReasonOrdered
			}
			got, err := lifecycle.Apply(full(tt.host), tt.decision, now, p)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A dueAt is never later than the threshold, however near that is.
func TestDueAtStaysBeforeTheThreshold(t *testing.T) {
	p := lifecycle.DefaultPolicy()
	p.ReleaseTimeout = time.Second
	facts, _ := scene{host: "releasing", answer: "none", deadline: "ahead"}.facts()
	r := facts.Record
	r.Threshold, r.ReleasedAt = now.Add(time.Second), now.Add(time.Second-p.ExternalTimeout)
	for _, a := range []lifecycle.Action{lifecycle.ActionExtend, lifecycle.ActionProvideToken, lifecycle.ActionReleaseClock} {
		got, err := lifecycle.Apply(r, lifecycle.Decision{Action: a}, now, p)
		if err != nil {
			t.Fatal(err)
		}
		if want := now.Add(time.Second); !got.DueAt.Equal(want) || !got.Threshold.Equal(want) {
			t.Errorf("%s: due at %s, threshold %s, want both at %s", a, got.DueAt, got.Threshold, want)
		}
	}
}

func TestLaunched(t *testing.T) {
	wait := arrival.Wait{QueuedAt: start.Add(-time.Minute), Held: "no spot", HeldBy: "shortage"}
	q := lifecycle.Request{
		Repository: "Acme/Web", RunID: "101", RequestID: "q1", CreatedAt: start, Wait: wait, Missed: []arrival.Miss{arrival.MissTrust},
		Spec: lifecycle.Spec{RunAttempt: 2, Pool: "big", MaxRuntime: time.Hour, Labels: []string{"gpu"}},
	}
	m := lifecycle.Machine{
		InstanceID: "i-1", HostKey: "AROA:i-1",
		Hardware: lifecycle.Hardware{
			InstanceType: "c6i.large", CPU: 2, MemoryMiB: 4096, Arch: "x86_64",
			Zone: "a", UsageClass: lifecycle.UsageSpot, ResourceClass: "large",
		},
		TemplateVersion: "4", LaunchedAt: start,
	}
	reg := &lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: token}
	want := lifecycle.Record{
		HostKey: "AROA:i-1", InstanceID: "i-1", Pool: "big", State: lifecycle.StateCreated, RunID: "101", RunAttempt: 2,
		Repository: "Acme/Web", RequestID: "q1", Assignment: 1, Threshold: now.Add(10 * time.Minute), MaxRuntime: time.Hour,
		DueAt: now.Add(10 * time.Minute),
		Hardware: lifecycle.Hardware{
			ResourceClass: "large", UsageClass: lifecycle.UsageSpot, InstanceType: "c6i.large", CPU: 2,
			MemoryMiB: 4096, Arch: "x86_64", Zone: "a",
		},
		Labels: []string{"gpu"}, TrustKey: "acme/web", Uses: 1, Arrival: &arrival.Arrival{Wait: wait, AskedAt: start, At: now, Missed: []arrival.Miss{arrival.MissTrust}},
		TemplateVersion: "4", Registration: reg, RunnerName: "remuda-1-i-1", LaunchedAt: start, CreatedAt: now, UpdatedAt: now,
		Reason: "launched for run 101", ReasonCode: lifecycle.CodeOf(lifecycle.ActionLaunch),
		Meter: meter.Begin(start),
	}
	if diff := cmp.Diff(want, lifecycle.Launched(m, q, reg, now, lifecycle.DefaultPolicy())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRunBefore: a host names the run that had it before, while another has it. Of a job-scoped host it is the run of its job, once a webhook has
// named that.
// TestJobsRun: the run of a job-scoped host is that of the job which GitHub chose, and is not known before a webhook has named it.
func TestJobsRun(t *testing.T) {
	run := lifecycle.Record{Repository: "acme/shop", RunID: "41", Meter: meter.Begin(now)}
	job := lifecycle.Record{Repository: "acme/shop", RunID: "request-1", JobsOf: "acme", Meter: meter.Begin(now)}
	unnamed, named := job, job
	unnamed.ChargeTo(meter.User{Repository: "acme/shop"})
	named.ChargeTo(meter.User{Repository: "acme/site", RunID: "42"})
	for name, tt := range map[string]struct {
		record          lifecycle.Record
		repository, run string
	}{
		"run-scoped":            {run, "acme/shop", "41"},
		"job-scoped":            {job, "", ""},
		"job-scoped, and named": {named, "acme/site", "42"},
		"job-scoped, unnamed":   {unnamed, "", ""},
		"job-scoped, unmetered": {lifecycle.Record{Repository: "acme/shop", RunID: "request-1", JobsOf: "acme"}, "", ""},
	} {
		if repository, id := tt.record.JobsRun(); repository != tt.repository || id != tt.run {
			t.Errorf("%s: run %q of %q, want %q of %q", name, id, repository, tt.run, tt.repository)
		}
	}
}

func TestRunBefore(t *testing.T) {
	p := lifecycle.DefaultPolicy()
	is := func(what, want string, r lifecycle.Record) {
		t.Helper()
		if repository, run := r.RunBefore(); repository+" "+run != want {
			t.Errorf("%s: run %q of %q, want %q", what, run, repository, want)
		}
	}
	apply := func(r lifecycle.Record, action lifecycle.Action) lifecycle.Record {
		t.Helper()
		got, err := lifecycle.Apply(r, lifecycle.Decision{Action: action}, now, p)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	launched := func(q lifecycle.Request) lifecycle.Record {
		m := lifecycle.Machine{HostKey: hostKey, InstanceID: hostKey, LaunchedAt: start}
		return apply(lifecycle.Launched(m, q, nil, now, p), lifecycle.ActionReady)
	}
	for _, p.Reuse = range []lifecycle.Reuse{lifecycle.ReuseSameRepository, lifecycle.ReuseSameOwner} {
		r := launched(lifecycle.Request{Repository: "acme/web", RunID: "101", RequestID: "q1"})
		is("a new host", " ", r)
		r = apply(apply(r, lifecycle.ActionRelease), lifecycle.ActionPool)
		r, err := r.Claimed(lifecycle.Claim{TrustKey: r.TrustKey, RunID: "102", Repository: "acme/web", Now: now})
		if err != nil {
			t.Fatal(err)
		}
		is("while the next run has it", "acme/web 101", r)
		is("after that", "acme/web 102", apply(r, lifecycle.ActionReturn))
	}

	slot := lifecycle.Request{Repository: "acme/web", RunID: "turn:small:1", RequestID: "turn:small:1", Spec: lifecycle.Spec{JobsOf: "acme"}}
	r := apply(launched(slot), lifecycle.ActionRelease)
	is("of a job that no webhook has named", " ", r)
	r.ChargeTo(meter.User{Repository: "Acme/api", RunID: "7", Attempt: 2})
	is("once a webhook has named it", "acme/api 7", r)
	r = launched(slot)
	r.Meter.ChargeTo(meter.User{Repository: "acme/api", RunID: "8"})
	r = apply(r, lifecycle.ActionRelease)
	is("where a webhook has named it before the release", "acme/api 8", r)
	r.ChargeTo(meter.User{Repository: "other/api", RunID: "9"})
	is("of a repository that may not have the host", " ", r)
}
