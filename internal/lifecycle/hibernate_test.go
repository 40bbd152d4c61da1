package lifecycle_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// hibernating is a host that is to be stopped, runs and can be hibernated.
func hibernating(t *testing.T) (lifecycle.Facts, lifecycle.Policy) {
	t.Helper()
	p := stoppedPolicy()
	p.Hibernates = true
	m := shownAs(lifecycle.MachineRunning)
	m.Hibernates = true
	r := stoppedHost(t, false)
	r.LaunchedAt = now.Add(-time.Hour)
	return lifecycle.Facts{
		Record: r, Cloud: m, Report: &lifecycle.Report{Assignment: assignment, Signal: lifecycle.SignalRemoveRegOK, HeartbeatAt: now.Add(-time.Second), BootID: "boot-1"},
	}, p
}

// TestAHostIsHibernatedOnlyIf it can be and nothing of a run or a registration can be in its memory. Every other one is stopped plainly.
func TestAHostIsHibernatedOnlyIf(t *testing.T) {
	for name, tt := range map[string]struct {
		change    func(*lifecycle.Facts, *lifecycle.Policy)
		want      lifecycle.Action
		hibernate bool
	}{
		"as it is":                {func(*lifecycle.Facts, *lifecycle.Policy) {}, lifecycle.ActionStopMachine, true},
		"its pool does not":       {func(_ *lifecycle.Facts, p *lifecycle.Policy) { p.Hibernates = false }, lifecycle.ActionStopMachine, false},
		"it was launched before":  {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Cloud.Hibernates = false }, lifecycle.ActionStopMachine, false},
		"it still boots":          {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Cloud.State = lifecycle.MachinePending }, lifecycle.ActionStopMachine, false},
		"not clean":               {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Report.Signal = lifecycle.SignalRegOK }, lifecycle.ActionStopMachine, false},
		"clean of the run before": {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.Assignment++ }, lifecycle.ActionStopMachine, false},
		"clean long ago": {func(f *lifecycle.Facts, _ *lifecycle.Policy) {
			f.Report.HeartbeatAt = now.Add(-2 * time.Minute)
			f.StoreReadableSince, f.ReportsReadAt, f.StoreUpSince = start, now, start
		}, lifecycle.ActionStopMachine, false},
		"not heard": {func(f *lifecycle.Facts, _ *lifecycle.Policy) {
			f.Report = nil
			f.StoreReadableSince, f.ReportsReadAt, f.StoreUpSince = start, now, start
		}, lifecycle.ActionStopMachine, false},
		"registered": {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.RunnerName = "remuda-3-i-1" }, lifecycle.ActionStopMachine, false},
		"hot":        {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.Standby = &lifecycle.Standby{} }, lifecycle.ActionStopMachine, false},
		"busy":       {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Report.Busy = true }, lifecycle.ActionKeep, false},
		"just launched": {func(f *lifecycle.Facts, _ *lifecycle.Policy) {
			f.Record.LaunchedAt = now.Add(-119 * time.Second)
		}, lifecycle.ActionKeep, false},
		"launched two minutes ago": {func(f *lifecycle.Facts, _ *lifecycle.Policy) {
			f.Record.LaunchedAt = now.Add(-2 * time.Minute)
		}, lifecycle.ActionStopMachine, true},
		"just launched, before that": {func(f *lifecycle.Facts, _ *lifecycle.Policy) {
			f.Record.LaunchedAt, f.Cloud.Hibernates = now.Add(-119*time.Second), false
		}, lifecycle.ActionStopMachine, false},
	} {
		f, p := hibernating(t)
		tt.change(&f, &p)
		d := lifecycle.Decide(f, now, p)
		if d.Action != tt.want || d.Action == lifecycle.ActionStopMachine && d.Hibernate != tt.hibernate {
			t.Errorf("%s: %s, hibernate %t (%s), want %s, %t", name, d.Action, d.Hibernate, d.Reason, tt.want, tt.hibernate)
		}
		if name == "just launched" && !d.CheckAt.Equal(now.Add(time.Second)) {
			t.Errorf("%s: it is looked at again at %s, want in a second", name, d.CheckAt)
		}
	}
}

// TestAHostHasTimeToWriteItsMemory: as much as it has takes at 100 MiB a second, beside what any host has to stop and to be ready.
func TestAHostHasTimeToWriteItsMemory(t *testing.T) {
	f, p := hibernating(t)
	f.Record.MemoryMiB, f.Cloud.State = 30000, lifecycle.MachineStopping
	for after, want := range map[time.Duration]lifecycle.Action{17*time.Minute - time.Second: lifecycle.ActionKeep, 17 * time.Minute: lifecycle.ActionTerminate} {
		f.StoreReadableSince, f.ReportsReadAt, f.StoreUpSince = start, now.Add(after), start
		if d := lifecycle.Decide(f, now.Add(after), p); d.Action != want {
			t.Errorf("after %s: %s (%s), want %s", after, d.Action, d.Reason, want)
		}
	}
}

// TestAHibernatedHostIsBack once it is heard after the start, whether it resumed or booted. What it said before it slept is not that, also if it
// comes after the start.
func TestAHibernatedHostIsBack(t *testing.T) {
	wanted := &lifecycle.Request{RequestID: "q", RunID: "78", Repository: "acme/shop"}
	r, err := stoppedHost(t, true).Started(start1())
	if err != nil {
		t.Fatal(err)
	}
	p := stoppedPolicy()
	p.Hibernates = true
	for name, tt := range map[string]struct {
		report lifecycle.Report
		after  time.Duration
		want   lifecycle.Action
	}{
		"late, from before":      {lifecycle.Report{Assignment: r.Assignment - 1, Signal: lifecycle.SignalRemoveRegOK, BootID: "boot-1", HeartbeatAt: now.Add(-time.Hour)}, 3 * time.Minute, lifecycle.ActionKeep},
		"resumed, and registers": {lifecycle.Report{Assignment: r.Assignment, BootID: "boot-1", HeartbeatAt: now.Add(20 * time.Second)}, 30 * time.Second, lifecycle.ActionKeep},
		"resumed, and has registered": {lifecycle.Report{Assignment: r.Assignment, Signal: lifecycle.SignalRegOK, BootID: "boot-1", HeartbeatAt: now.Add(20 * time.Second)},
			30 * time.Second, lifecycle.ActionReady},
		"booted, and has registered": {lifecycle.Report{Assignment: r.Assignment, Signal: lifecycle.SignalRegOK, BootID: "boot-2", HeartbeatAt: now.Add(20 * time.Second)},
			30 * time.Second, lifecycle.ActionReady},
		"resumed, and fell silent": {lifecycle.Report{Assignment: r.Assignment, BootID: "boot-1", HeartbeatAt: now.Add(20 * time.Second)}, 2 * time.Minute, lifecycle.ActionTerminate},
	} {
		f := lifecycle.Facts{Record: r, Request: wanted, Report: &tt.report, Cloud: shownAs(lifecycle.MachineRunning)}
		f.StoreReadableSince, f.ReportsReadAt, f.StoreUpSince = start, now.Add(tt.after), start
		if d := lifecycle.Decide(f, now.Add(tt.after), p); d.Action != tt.want {
			t.Errorf("%s: %s (%s), want %s", name, d.Action, d.Reason, tt.want)
		}
	}
}
