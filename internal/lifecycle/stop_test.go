package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
)

// stoppedPolicy stops one host of each class.
func stoppedPolicy() lifecycle.Policy {
	p := lifecycle.DefaultPolicy()
	p.StoppedMaximum = 1
	return p
}

// idleOver is a host whose idle time is over, and that may be stopped.
func idleOver() lifecycle.Facts {
	none := 0
	return lifecycle.Facts{
		Record: lifecycle.Record{
			HostKey: hostKey, InstanceID: hostKey, Pool: "default", State: lifecycle.StateIdle, Assignment: assignment, Version: 9, Uses: 3,
			TrustKey: "acme/shop", PooledAt: now.Add(-5 * time.Minute), UpdatedAt: now.Add(-5 * time.Minute), Threshold: now, LaunchedAt: start, CreatedAt: start,
			Hardware: lifecycle.Hardware{UsageClass: lifecycle.UsageOnDemand},
		},
		Report:       &lifecycle.Report{Assignment: assignment, Signal: lifecycle.SignalRemoveRegOK, HeartbeatAt: now.Add(-time.Second)},
		StoppedHosts: &none,
	}
}

// TestAHostIsStoppedOnlyIf it is clean, on-demand, used and heard, of the current template, and there is room for it.
func TestAHostIsStoppedOnlyIf(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*lifecycle.Facts, *lifecycle.Policy)
		want   lifecycle.Action
	}{
		"as it is":              {func(*lifecycle.Facts, *lifecycle.Policy) {}, lifecycle.ActionStop},
		"before its time":       {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.Threshold = now.Add(time.Second) }, lifecycle.ActionKeep},
		"none may be":           {func(_ *lifecycle.Facts, p *lifecycle.Policy) { p.StoppedMaximum = 0 }, lifecycle.ActionTerminate},
		"there is one":          {func(f *lifecycle.Facts, _ *lifecycle.Policy) { *f.StoppedHosts = 1 }, lifecycle.ActionTerminate},
		"not known how many":    {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.StoppedHosts = nil }, lifecycle.ActionTerminate},
		"spot":                  {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.UsageClass = lifecycle.UsageSpot }, lifecycle.ActionTerminate},
		"unused":                {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.TrustKey, f.Record.Uses = "", 0 }, lifecycle.ActionTerminate},
		"hot":                   {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.Standby = &lifecycle.Standby{RunnerID: 1} }, lifecycle.ActionTerminate},
		"not clean":             {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Report.Signal = lifecycle.SignalNone }, lifecycle.ActionTerminate},
		"of another assignment": {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Report.Assignment-- }, lifecycle.ActionTerminate},
		"not heard":             {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Report = nil }, lifecycle.ActionKeep},
		"retiring":              {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.Retiring = true }, lifecycle.ActionTerminate},
		"of an older template": {func(f *lifecycle.Facts, _ *lifecycle.Policy) {
			f.Record.TemplateVersion, f.Template = "1", "2"
		}, lifecycle.ActionTerminate},
		"launched for that": {func(f *lifecycle.Facts, p *lifecycle.Policy) {
			f.Record.TrustKey, f.Record.Uses, f.Record.ToStop, f.StoppedHosts, p.StoppedMaximum, p.StopsFresh = "", 0, true, nil, 0, true
			f.Record.Threshold = now.Add(time.Second)
		}, lifecycle.ActionStop},
		"launched for that before": {func(f *lifecycle.Facts, _ *lifecycle.Policy) {
			f.Record.TrustKey, f.Record.Uses, f.Record.ToStop = "", 0, true
		}, lifecycle.ActionTerminate},
		"of a held fleet": {func(f *lifecycle.Facts, _ *lifecycle.Policy) {
			f.FleetHold = &fleethold.Hold{Until: now.Add(time.Hour)}
		}, lifecycle.ActionHold},
		"held": {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.Hold = now.Add(time.Hour) }, lifecycle.ActionKeep},
		"busy": {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Report.Busy = true }, lifecycle.ActionKeep},
	} {
		f, p := idleOver(), stoppedPolicy()
		tt.change(&f, &p)
		if d := lifecycle.Decide(f, now, p); d.Action != tt.want {
			t.Errorf("%s: %s (%s), want %s", name, d.Action, d.Reason, tt.want)
		}
	}
}

// stoppedHost is a host that was stopped.
func stoppedHost(t *testing.T, confirmed bool) lifecycle.Record {
	t.Helper()
	f, p := idleOver(), stoppedPolicy()
	r, err := lifecycle.Apply(f.Record, lifecycle.Decide(f, now, p), now, p)
	if err != nil {
		t.Fatal(err)
	}
	if confirmed {
		d := lifecycle.Decide(lifecycle.Facts{Record: r, Cloud: shownAs(lifecycle.MachineStopped)}, now, p)
		if r, err = lifecycle.Apply(r, d, now, p); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func shownAs(s lifecycle.MachineState) *lifecycle.Machine {
	return &lifecycle.Machine{InstanceID: hostKey, State: s, Impaired: s == lifecycle.MachineStopped, Hardware: lifecycle.Hardware{InstanceType: "c6i.large"}}
}

// TestAStoppedHost: its machine is stopped and not started before the cloud shows it so; no silence ends it, and its time does.
func TestAStoppedHost(t *testing.T) {
	p := stoppedPolicy()
	silent := &lifecycle.Report{Assignment: assignment, Signal: lifecycle.SignalRemoveRegOK, HeartbeatAt: now.Add(-time.Hour)}
	for name, tt := range map[string]struct {
		confirmed bool
		cloud     *lifecycle.Machine
		after     time.Duration
		change    func(*lifecycle.Record)
		want      lifecycle.Action
	}{
		"its machine runs":              {false, shownAs(lifecycle.MachineRunning), 0, nil, lifecycle.ActionStopMachine},
		"the cloud does not answer":     {false, nil, 0, nil, lifecycle.ActionKeep},
		"its machine stops":             {false, shownAs(lifecycle.MachineStopping), time.Minute, nil, lifecycle.ActionKeep},
		"its machine is stopped":        {false, shownAs(lifecycle.MachineStopped), time.Minute, nil, lifecycle.ActionConfirmStop},
		"its machine does not stop":     {false, shownAs(lifecycle.MachineStopping), 10 * time.Minute, nil, lifecycle.ActionTerminate},
		"it waits":                      {true, shownAs(lifecycle.MachineStopped), 23 * time.Hour, nil, lifecycle.ActionKeep},
		"it waits, unseen":              {true, nil, 23 * time.Hour, nil, lifecycle.ActionKeep},
		"its time is over":              {true, nil, 24 * time.Hour, nil, lifecycle.ActionTerminate},
		"its machine was started":       {true, shownAs(lifecycle.MachineRunning), time.Hour, nil, lifecycle.ActionStopMachine},
		"its machine has ended":         {true, shownAs(lifecycle.MachineGone), time.Hour, nil, lifecycle.ActionTerminate},
		"it retires":                    {true, nil, time.Hour, func(r *lifecycle.Record) { r.Retiring = true }, lifecycle.ActionTerminate},
		"held, its machine runs":        {false, shownAs(lifecycle.MachineRunning), 0, func(r *lifecycle.Record) { r.Hold = now.Add(time.Hour) }, lifecycle.ActionKeep},
		"held beyond its time":          {true, nil, 24 * time.Hour, func(r *lifecycle.Record) { r.Hold = now.Add(48 * time.Hour) }, lifecycle.ActionKeep},
		"its machine is not shown":      {false, &lifecycle.Machine{State: lifecycle.MachineGone}, time.Minute, nil, lifecycle.ActionKeep},
		"a job runs, by its agent":      {false, shownAs(lifecycle.MachineRunning), 0, nil, lifecycle.ActionKeep},
		"a job ran, by its agent":       {false, shownAs(lifecycle.MachineStopped), 0, nil, lifecycle.ActionConfirmStop},
		"its record is an older state":  {true, shownAs(lifecycle.MachineRunning), 0, nil, lifecycle.ActionRetire},
		"interrupted before it stopped": {false, nil, 0, func(r *lifecycle.Record) { r.InterruptionAt = now }, lifecycle.ActionTerminate},
	} {
		r := stoppedHost(t, tt.confirmed)
		if tt.change != nil {
			tt.change(&r)
		}
		f := lifecycle.Facts{Record: r, Cloud: tt.cloud, Report: silent}
		switch name {
		case "a job runs, by its agent", "a job ran, by its agent":
			f.Report = &lifecycle.Report{Assignment: assignment, Busy: true, HeartbeatAt: now}
		case "its record is an older state":
			f.Report = &lifecycle.Report{Assignment: assignment + 1, Busy: true, HeartbeatAt: now}
		}
		f.StoreReadableSince, f.ReportsReadAt, f.StoreUpSince = start, now.Add(tt.after), start
		if d := lifecycle.Decide(f, now.Add(tt.after), p); d.Action != tt.want {
			t.Errorf("%s: %s (%s), want %s", name, d.Action, d.Reason, tt.want)
		}
	}
}

// start1 is a claim of a stopped host.
func start1() lifecycle.Claim {
	return lifecycle.Claim{
		HostKey: hostKey, Assignment: assignment, TrustKey: "acme/shop", Now: now, Margin: 30 * time.Second, RunID: "78", Repository: "acme/shop", RequestID: "q",
		Threshold: now.Add(10 * time.Minute),
	}
}

// TestAFreshHostThatIsToStop: no run can claim it once it is prepared, and the first one that has it started binds it.
func TestAFreshHostThatIsToStop(t *testing.T) {
	p := stoppedPolicy()
	p.StopsFresh = true
	q := lifecycle.Request{RequestID: "stopped:default", Kind: lifecycle.RequestStopped, Spec: lifecycle.Spec{Pool: "default"}}
	m := lifecycle.Machine{HostKey: hostKey, InstanceID: hostKey, Hardware: lifecycle.Hardware{UsageClass: lifecycle.UsageOnDemand}}
	r := lifecycle.LaunchedWarm(m, q, now, p)
	f := lifecycle.Facts{Record: r, Report: &lifecycle.Report{Assignment: 1, Signal: lifecycle.SignalRemoveRegOK, HeartbeatAt: now}}
	for _, want := range []lifecycle.Action{lifecycle.ActionPool, lifecycle.ActionStop} {
		d := lifecycle.Decide(f, now, p)
		if d.Action != want {
			t.Fatalf("%s (%s), want %s", d.Action, d.Reason, want)
		}
		next, err := lifecycle.Apply(f.Record, d, now, p)
		if err != nil {
			t.Fatal(err)
		}
		if f.Record = next; next.Claimable(now, p.ClaimMargin) || next.Startable(now, p.ClaimMargin) {
			t.Errorf("a run could have it: %s", next.Condition())
		}
	}
	f.Report, f.Cloud = nil, shownAs(lifecycle.MachineStopped)
	r, err := lifecycle.Apply(f.Record, lifecycle.Decide(f, now, p), now, p)
	if err != nil {
		t.Fatal(err)
	}
	c := start1()
	c.Assignment, c.TrustKey, c.BindTo = 1, "", "acme/shop"
	if r, err = r.Started(c); err != nil || r.TrustKey != "acme/shop" || r.Uses != 1 || !r.Starting() {
		t.Errorf("it is %s, bound to %q: %v", r.Condition(), r.TrustKey, err)
	}
}

// TestWhichStoppedHostIsStarted: no message can claim one.
func TestWhichStoppedHostIsStarted(t *testing.T) {
	r := stoppedHost(t, true)
	if start1().Holds(r) {
		t.Error("a claim holds for a stopped host")
	}
	if _, err := stoppedHost(t, false).Started(start1()); err == nil {
		t.Error("a host is started before its machine has stopped")
	}
	other := start1()
	other.TrustKey = "acme/other"
	if _, err := r.Started(other); err == nil {
		t.Error("a host is started for a run of another trust key")
	}
	n, err := r.Started(start1())
	if err != nil {
		t.Fatal(err)
	}
	if !n.Starting() || n.Assignment != r.Assignment+1 || n.Uses != r.Uses+1 || n.RunID != "78" || !n.PooledAt.IsZero() || n.RunnerName == "" {
		t.Errorf("started: %+v", n)
	}
	var wrong *lifecycle.TransitionError
	if _, err := n.Started(start1()); !errors.As(err, &wrong) {
		t.Errorf("it is started twice: %v", err)
	}
}

// TestAStartingHost: its silence since before the start says nothing, and what the cloud has no capacity for is stopped again.
func TestAStartingHost(t *testing.T) {
	p := stoppedPolicy()
	wanted := &lifecycle.Request{RequestID: "q", RunID: "78", Repository: "acme/shop"}
	released := &lifecycle.Request{RequestID: "q", RunID: "78", Repository: "acme/shop", ReleasedAt: now, Outcome: lifecycle.OutcomeReleased}
	silent := &lifecycle.Report{Assignment: assignment, HeartbeatAt: now.Add(-time.Hour)}
	spoke := &lifecycle.Report{Assignment: assignment + 1, Signal: lifecycle.SignalRegOK, HeartbeatAt: now.Add(30 * time.Second)}
	for name, tt := range map[string]struct {
		f     lifecycle.Facts
		after time.Duration
		want  lifecycle.Action
	}{
		"its machine is stopped":    {lifecycle.Facts{Request: wanted, Cloud: shownAs(lifecycle.MachineStopped)}, 20 * time.Second, lifecycle.ActionStartMachine},
		"its machine starts":        {lifecycle.Facts{Request: wanted, Cloud: shownAs(lifecycle.MachineRunning)}, 20 * time.Second, lifecycle.ActionKeep},
		"silent since it stopped":   {lifecycle.Facts{Request: wanted, Report: silent, Cloud: shownAs(lifecycle.MachineRunning)}, 2 * time.Minute, lifecycle.ActionKeep},
		"no capacity":               {lifecycle.Facts{Request: wanted, StartShort: "InsufficientInstanceCapacity"}, time.Second, lifecycle.ActionStop},
		"released":                  {lifecycle.Facts{Request: released}, time.Second, lifecycle.ActionStop},
		"it does not come up":       {lifecycle.Facts{Request: wanted, Report: silent}, 10 * time.Minute, lifecycle.ActionTerminate},
		"it has never spoken since": {lifecycle.Facts{Request: wanted}, 10 * time.Minute, lifecycle.ActionTerminate},
		"it has registered":         {lifecycle.Facts{Request: wanted, Report: spoke}, 40 * time.Second, lifecycle.ActionReady},
		"it spoke, and fell silent": {lifecycle.Facts{Request: wanted, Report: &lifecycle.Report{HeartbeatAt: now.Add(30 * time.Second)}}, 2 * time.Minute, lifecycle.ActionTerminate},
	} {
		r, err := stoppedHost(t, true).Started(start1())
		if err != nil {
			t.Fatal(err)
		}
		f := tt.f
		f.Record = r
		f.StoreReadableSince, f.ReportsReadAt, f.StoreUpSince = start, now.Add(tt.after), start
		d := lifecycle.Decide(f, now.Add(tt.after), p)
		if d.Action != tt.want {
			t.Errorf("%s: %s (%s), want %s", name, d.Action, d.Reason, tt.want)
		}
		if d.Action == lifecycle.ActionReady {
			if n, err := lifecycle.Apply(r, d, now, p); err != nil || n.Stop != nil {
				t.Errorf("%s: %+v, %v", name, n, err)
			}
		}
	}
}

// TestStoppedAgain: the run is charged nothing and leaves nothing, and the host is not started at once.
func TestStoppedAgain(t *testing.T) {
	p, before := stoppedPolicy(), stoppedHost(t, true)
	r, err := before.Started(start1())
	if err != nil {
		t.Fatal(err)
	}
	d := lifecycle.Decide(lifecycle.Facts{Record: r, StartShort: "none left"}, now, p)
	n, err := lifecycle.Apply(r, d, now, p)
	if err != nil {
		t.Fatal(err)
	}
	if !n.Stopped() || n.Assignment != r.Assignment+1 || n.Uses != before.Uses || n.RunID != "" || n.RequestID != "" || n.RunnerName != "" || n.Registration != nil {
		t.Errorf("stopped again: %+v", n)
	}
	if n.Startable(now.Add(5*time.Minute-time.Second), 0) || !n.Startable(now.Add(5*time.Minute), 0) {
		t.Errorf("it may be started from %s on", n.Stop.RetryAt)
	}
	released := &lifecycle.Request{RequestID: "q", RunID: "78", Repository: "acme/shop", ReleasedAt: now, Outcome: lifecycle.OutcomeReleased}
	d = lifecycle.Decide(lifecycle.Facts{Record: r, Request: released}, now, p)
	if n, err = lifecycle.Apply(r, d, now, p); err != nil || !n.Stopped() || !n.Stop.StoppedAt.IsZero() {
		t.Errorf("its machine may run by now, and it is %+v, %v", n.Stop, err)
	}
}

// TestWhenAHostThatStopsIsLookedAt: at once, as nothing else has its machine stopped.
func TestWhenAHostThatStopsIsLookedAt(t *testing.T) {
	f, p := idleOver(), stoppedPolicy()
	stopped, err := lifecycle.Apply(f.Record, lifecycle.Decide(f, now, p), now, p)
	if err != nil || stopped.Stop == nil || !stopped.DueAt.Equal(now) {
		t.Errorf("a host that is stopped is due at %s, %v", stopped.DueAt, err)
	}
	fresh := lifecycle.Record{
		HostKey: hostKey, InstanceID: hostKey, State: lifecycle.StateIdle, Assignment: 1, ToStop: true, ReleasedAt: start, LaunchedAt: start, CreatedAt: start,
		Threshold: now.Add(time.Hour),
	}
	pooled, err := lifecycle.Apply(fresh, lifecycle.Decision{Action: lifecycle.ActionPool}, now, p)
	if err != nil || !pooled.StopsNext() || !pooled.DueAt.Equal(now) {
		t.Errorf("a fresh one that is to stop is due at %s, %v", pooled.DueAt, err)
	}
}

// TestActionsThatARecordDoesNotAllow: a host that registers ahead of need neither rests nor stops, and one that rests does not rest again.
func TestActionsThatARecordDoesNotAllow(t *testing.T) {
	plain, hot, resting := idleOver().Record, idleOver().Record, idleOver().Record
	hot.Standby, resting.RestingAt = &lifecycle.Standby{RunnerID: 1}, now.Add(-time.Minute)
	for name, tt := range map[string]struct {
		record     lifecycle.Record
		rest, stop bool
	}{"as it is": {plain, true, true}, "hot": {hot, false, false}, "resting": {resting, false, true}} {
		for action, want := range map[lifecycle.Action]bool{lifecycle.ActionRest: tt.rest, lifecycle.ActionStop: tt.stop} {
			if _, err := lifecycle.Apply(tt.record, lifecycle.Decision{Action: action, CheckAt: now.Add(time.Hour)}, now, stoppedPolicy()); (err == nil) != want {
				t.Errorf("%s: %s: %v, want it allowed %t", name, action, err, want)
			}
		}
	}
}

// TestWhenAStopIsLookedAt: the order to stop or start a machine is repeated after a while, and a start is looked at until the host has spoken.
func TestWhenAStopIsLookedAt(t *testing.T) {
	p, f := stoppedPolicy(), idleOver()
	f.Record, f.Cloud = stoppedHost(t, false), shownAs(lifecycle.MachineRunning)
	if d := lifecycle.Decide(f, now, p); d.Action != lifecycle.ActionStopMachine || !d.CheckAt.Equal(now.Add(p.EndPoll)) {
		t.Errorf("stopped by %s, and looked at again at %s", outcome(d), d.CheckAt)
	}
	r, err := stoppedHost(t, true).Started(start1())
	if err != nil {
		t.Fatal(err)
	}
	for state, want := range map[lifecycle.MachineState]time.Duration{lifecycle.MachineStopped: p.EndPoll, lifecycle.MachineRunning: 20 * time.Second} {
		f := lifecycle.Facts{Record: r, Cloud: shownAs(state), Request: &lifecycle.Request{RequestID: "q", RunID: "78", Repository: "acme/shop"}}
		if d := lifecycle.Decide(f, now, p); d.Action == lifecycle.ActionTerminate || !d.CheckAt.Equal(now.Add(want)) {
			t.Errorf("%s: %s, and looked at again after %s, want %s", state, outcome(d), d.CheckAt.Sub(now), want)
		}
	}
}
