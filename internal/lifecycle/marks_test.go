package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// A host out of the pool is as old as its assignment, whatever its machine is.
func TestServingSince(t *testing.T) {
	launched := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	later := launched.Add(3 * time.Hour)
	p := lifecycle.DefaultPolicy()
	for name, test := range map[string]struct {
		record lifecycle.Record
		want   time.Time
	}{
		"starting":           {lifecycle.Record{State: lifecycle.StateCreated, Assignment: 1, LaunchedAt: launched}, launched},
		"of its first run":   {lifecycle.Record{State: lifecycle.StateRunning, Assignment: 1, LaunchedAt: launched, RuntimeEndsAt: later.Add(p.MaxRuntime)}, launched},
		"of a later run":     {lifecycle.Record{State: lifecycle.StateRunning, Assignment: 3, LaunchedAt: launched, RuntimeEndsAt: later.Add(p.MaxRuntime)}, later},
		"its own runtime":    {lifecycle.Record{State: lifecycle.StateRunning, Assignment: 3, LaunchedAt: launched, MaxRuntime: time.Hour, RuntimeEndsAt: later.Add(time.Hour)}, later},
		"claimed":            {lifecycle.Record{State: lifecycle.StateClaimed, Assignment: 3, LaunchedAt: launched, Threshold: later.Add(p.ClaimTimeout)}, later},
		"launch not known":   {lifecycle.Record{State: lifecycle.StateCreated, Assignment: 1, CreatedAt: launched}, launched},
		"nothing is known":   {lifecycle.Record{State: lifecycle.StateRunning, Assignment: 1}, time.Time{}},
		"end is not written": {lifecycle.Record{State: lifecycle.StateRunning, Assignment: 3, LaunchedAt: launched}, launched},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.record.ServingSince(p); !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Neither Retiring nor an idle reading is a mark of scale-down, alone or both: a
// host may retire for another reason while it waits for its confirmation.
func TestScalingDown(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		record lifecycle.Record
		want   bool
	}{
		"marked":                     {lifecycle.Record{State: lifecycle.StateRunning, Retiring: true, IdleDetectedAt: at, ScaleDownAt: at}, true},
		"retiring for another cause": {lifecycle.Record{State: lifecycle.StateRunning, Retiring: true}, false},
		"seen idle":                  {lifecycle.Record{State: lifecycle.StateRunning, IdleDetectedAt: at}, false},
		"seen idle, and retiring":    {lifecycle.Record{State: lifecycle.StateRunning, Retiring: true, IdleDetectedAt: at}, false},
		"ended":                      {lifecycle.Record{State: lifecycle.StateTerminated, Retiring: true, IdleDetectedAt: at, ScaleDownAt: at}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.record.ScalingDown(); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestAScaleDownIsTakenBack(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, begun := range map[string]bool{"its own retirement goes": true, "another's stays": false} {
		t.Run(name, func(t *testing.T) {
			r := lifecycle.Record{State: lifecycle.StateRunning, IdleDetectedAt: at}
			if begun {
				r.BeginScaleDown(at.Add(time.Minute))
				if !r.Retiring || !r.ScaleDownAt.Equal(at.Add(time.Minute)) || !r.IdleDetectedAt.Equal(at) {
					t.Errorf("begun: %+v", r)
				}
			} else {
				r.Retiring = true
			}
			r.UndoScaleDown()
			if r.Retiring == begun || r.ScalingDown() || !r.IdleDetectedAt.IsZero() {
				t.Errorf("taken back: retiring %t, scaling down %t, idle since %s", r.Retiring, r.ScalingDown(), r.IdleDetectedAt)
			}
		})
	}
}

// A host that was not read as idle before is idle from when scale-down began with it. The marks go when its assignment begins to serve, and with it.
func TestTheMarksOfAnAssignment(t *testing.T) {
	r := lifecycle.Record{HostKey: hostKey, State: lifecycle.StateRunning, RunID: "7", Assignment: 1, OrphanAt: now}
	if r.BeginScaleDown(now.Add(time.Minute)); !r.IdleDetectedAt.Equal(now.Add(time.Minute)) {
		t.Errorf("idle since %s", r.IdleDetectedAt)
	}
	claimed := r
	claimed.State = lifecycle.StateClaimed
	for _, tt := range []struct {
		record lifecycle.Record
		action lifecycle.Action
	}{{r, lifecycle.ActionRelease}, {r, lifecycle.ActionTerminate}, {claimed, lifecycle.ActionReady}} {
		n, err := lifecycle.Apply(tt.record, lifecycle.Decision{Action: tt.action}, now, lifecycle.DefaultPolicy())
		if err != nil || n.Orphan() || !n.IdleDetectedAt.IsZero() || !n.ScaleDownAt.IsZero() || !n.Retiring {
			t.Errorf("%s: orphan since %s, idle since %s, scaled down at %s, retiring %t: %v", tt.action, n.OrphanAt, n.IdleDetectedAt, n.ScaleDownAt, n.Retiring, err)
		}
	}
}

// An end by which the host was deregistered leaves no registration to be deleted.
func TestAnEndWithoutARegistration(t *testing.T) {
	for _, deregistered := range []bool{true, false} {
		r := lifecycle.Record{HostKey: hostKey, State: lifecycle.StateRunning, RunID: "7", Assignment: 1, RunnerName: "remuda-1-i-1", GitHubRunnerID: 5}
		d := lifecycle.Decision{Action: lifecycle.ActionTerminate, Deregistered: deregistered}
		n, err := lifecycle.Apply(r, d, now, lifecycle.DefaultPolicy())
		if err != nil || (n.RunnerName == "") != deregistered || (n.GitHubRunnerID == 0) != deregistered {
			t.Errorf("deregistered %t: runner %q, %d: %v", deregistered, n.RunnerName, n.GitHubRunnerID, err)
		}
	}
}

// Only a host that serves leaves a run behind, and only where its end says so.
func TestARunThatIsLeft(t *testing.T) {
	serving := lifecycle.Record{State: lifecycle.StateRunning, RunID: "7", Labels: []string{"gpu"}, Repository: "acme/web", Assignment: 1, RequestID: "q"}
	jobScoped, unused := serving, serving
	jobScoped.JobsOf, unused.RunID = "acme", ""
	for name, test := range map[string]struct {
		record lifecycle.Record
		leaves bool
		want   *lifecycle.LostRun
	}{
		"run-scoped":   {serving, true, &lifecycle.LostRun{RunID: "7", RequestID: "q", Labels: []string{"gpu"}}},
		"another end":  {serving, false, nil},
		"job-scoped":   {jobScoped, true, &lifecycle.LostRun{RunID: "7", RequestID: "q", Labels: []string{"gpu"}}},
		"without runs": {unused, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := lifecycle.Decision{Action: lifecycle.ActionTerminate, Reason: "idle", LosesRun: test.leaves}
			got, err := lifecycle.Apply(test.record, d, time.Now(), lifecycle.DefaultPolicy())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.LostBy); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.RunID != "" || got.Labels != nil {
				t.Errorf("it still has run %q and labels %v", got.RunID, got.Labels)
			}
		})
	}
}

// Why the cloud ended a machine is said with the host.
func TestTheReasonOfAMachinesEnd(t *testing.T) {
	r := lifecycle.Record{HostKey: "h", State: lifecycle.StateCreated, RunID: "7", RequestID: "q", Assignment: 1, Threshold: now.Add(time.Hour)}
	gone := &lifecycle.Machine{Hardware: shown, State: lifecycle.MachineGone, EndReason: "Client.InternalError: Client error on launch"}
	d := lifecycle.Decide(lifecycle.Facts{Record: r, Cloud: gone}, now, lifecycle.DefaultPolicy())
	if want := "EC2 says that the machine is gone: Client.InternalError: Client error on launch"; d.Reason != want || d.Code != lifecycle.ReasonMachineGone {
		t.Errorf("%s: %q, want %q", d.Code, d.Reason, want)
	}
}

// Decide says of an end whether a run loses a host by it.
func TestWhatEndsLeaveARun(t *testing.T) {
	taken := []lifecycle.Taken{{HostKey: "h"}}
	ready := lifecycle.Request{Outcome: lifecycle.OutcomeReady, Taken: taken}
	released, without, open := ready, ready, ready
	released.ReleasedAt, without.Taken, open.Outcome = now, nil, lifecycle.OutcomeOpen
	gone := &lifecycle.Machine{Hardware: shown, State: lifecycle.MachineGone}
	starting := lifecycle.Record{HostKey: "h", State: lifecycle.StateCreated, RunID: "7", RequestID: "q", Assignment: 1, Threshold: now.Add(time.Hour)}
	running, over, clean := starting, starting, starting
	running.State, over.State, over.Threshold = lifecycle.StateRunning, lifecycle.StateRunning, now
	clean.State, clean.RunID, clean.PooledAt = lifecycle.StateIdle, "", now
	says := func(p lifecycle.Report) *lifecycle.Report {
		p.HostKey, p.Assignment, p.HeartbeatAt = "h", 1, now
		return &p
	}
	old := says(lifecycle.Report{})
	old.HeartbeatAt = now.Add(-time.Hour)
	for name, test := range map[string]struct {
		facts  lifecycle.Facts
		leaves bool
	}{
		"gone":                    {lifecycle.Facts{Record: running, Request: &ready, Cloud: gone}, true},
		"impaired":                {lifecycle.Facts{Record: running, Request: &ready, Report: old, Cloud: &lifecycle.Machine{Impaired: true}}, true},
		"interrupted":             {lifecycle.Facts{Record: running, Request: &ready, Report: says(lifecycle.Report{InterruptionAt: now})}, true},
		"maximum runtime":         {lifecycle.Facts{Record: over, Request: &ready}, true},
		"silent while starting":   {lifecycle.Facts{Record: starting, Request: &ready, Report: old}, true},
		"pre-runner script":       {lifecycle.Facts{Record: starting, Request: &ready, Report: says(lifecycle.Report{Signal: lifecycle.SignalFailed})}, true},
		"registration":            {lifecycle.Facts{Record: starting, Request: &ready, Report: says(lifecycle.Report{Signal: lifecycle.SignalRegFailed})}, true},
		"its run was released":    {lifecycle.Facts{Record: running, Request: &released, Cloud: gone}, false},
		"settled without it":      {lifecycle.Facts{Record: starting, Request: &without}, false},
		"its request goes on":     {lifecycle.Facts{Record: running, Request: &open, Cloud: gone}, true},
		"its request is unknown":  {lifecycle.Facts{Record: running, Cloud: gone}, true},
		"it serves no run":        {lifecycle.Facts{Record: clean, Cloud: gone}, false},
		"it goes on":              {lifecycle.Facts{Record: running, Request: &ready}, false},
		"it is released, not yet": {lifecycle.Facts{Record: running, Request: &released}, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.facts.StoreUpSince, test.facts.StoreReadableSince, test.facts.ReportsReadAt = now.Add(-time.Hour), now.Add(-time.Hour), now
			d := lifecycle.Decide(test.facts, now, lifecycle.DefaultPolicy())
			if ends := d.Action == lifecycle.ActionTerminate; d.LosesRun != test.leaves || test.leaves && !ends {
				t.Errorf("%s, leaves %t, want %t", outcome(d), d.LosesRun, test.leaves)
			}
		})
	}
}

// A host that left a run is not forgotten before a sweep has looked at the run.
func TestWhoLeftARunIsNotForgotten(t *testing.T) {
	r := lifecycle.Record{State: lifecycle.StateTerminated, DueAt: now, LostBy: &lifecycle.LostRun{RunID: "7"}}
	facts := lifecycle.Facts{Record: r, Cloud: &lifecycle.Machine{Hardware: shown, State: lifecycle.MachineGone}}
	if d := lifecycle.Decide(facts, now, lifecycle.DefaultPolicy()); d.Action != lifecycle.ActionKeep || !d.CheckAt.After(now) {
		t.Errorf("%s, want keep", outcome(d))
	}
	facts.Record.LostBy = nil
	if d := lifecycle.Decide(facts, now, lifecycle.DefaultPolicy()); d.Action != lifecycle.ActionForget {
		t.Errorf("%s, want forget", outcome(d))
	}
}
