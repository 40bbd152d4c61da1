package lifecycle_test

import (
	"math"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/silence"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

func resetPolicy() lifecycle.Policy {
	p := lifecycle.DefaultPolicy()
	p.Reset = statement.LevelRootVolume
	return p
}

// releasedClean is a host that says it is clean after its run.
func releasedClean(t *testing.T) lifecycle.Facts {
	t.Helper()
	f, _ := cleanFacts(t, nil)
	f.Record.TrustKey, f.Record.Uses, f.Record.Repository, f.Record.LastRun = "acme/shop", 3, "acme/shop", "7"
	return f
}

// TestACleanHostGetsANewRootVolume before it is pooled, where its pool wants that, unless it has one or ends.
func TestACleanHostGetsANewRootVolume(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*lifecycle.Facts, *lifecycle.Policy)
		want   lifecycle.Action
	}{
		"as it is":           {func(*lifecycle.Facts, *lifecycle.Policy) {}, lifecycle.ActionReset},
		"by the clean slate": {func(_ *lifecycle.Facts, p *lifecycle.Policy) { p.Reset = statement.LevelSlate }, lifecycle.ActionPool},
		"not used": {func(f *lifecycle.Facts, _ *lifecycle.Policy) {
			f.Record.Uses, f.Record.TrustKey = 0, ""
		}, lifecycle.ActionPool},
		"renewed": {func(f *lifecycle.Facts, _ *lifecycle.Policy) {
			f.Record.RootVolume = &lifecycle.RootVolume{At: now.Add(-time.Hour), ReplacedAt: now.Add(-time.Minute)}
		}, lifecycle.ActionPool},
		"worn out": {func(_ *lifecycle.Facts, p *lifecycle.Policy) { p.MaxUses = 3 }, lifecycle.ActionTerminate},
		"retiring": {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.Retiring = true }, lifecycle.ActionTerminate},
		"held":     {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.Hold = now.Add(time.Hour) }, lifecycle.ActionKeep},
		"of a held fleet": {func(f *lifecycle.Facts, _ *lifecycle.Policy) {
			f.FleetHold = &fleethold.Hold{Until: now.Add(time.Hour)}
		}, lifecycle.ActionHold},
		"busy": {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Report.Busy = true }, lifecycle.ActionDrain},
	} {
		f, p := releasedClean(t), resetPolicy()
		tt.change(&f, &p)
		if d := lifecycle.Decide(f, now, p); d.Action != tt.want {
			t.Errorf("%s: %s (%s), want %s", name, d.Action, d.Reason, tt.want)
		}
	}
}

// resettingHost is a host that waits for its new root volume. With a task the cloud has the order.
func resettingHost(t *testing.T, task string) (lifecycle.Facts, lifecycle.Policy) {
	t.Helper()
	f, p := releasedClean(t), resetPolicy()
	r, err := lifecycle.Apply(f.Record, lifecycle.Decide(f, now, p), now, p)
	if err != nil {
		t.Fatal(err)
	}
	if r.RootVolume.Task = task; r.RequestID != "" || r.RunnerName != "" || r.TrustKey == "" || r.AgentKey == "" || r.Assignment != f.Record.Assignment {
		t.Fatalf("a host that waits for its root volume is %+v", r)
	}
	f.Record = r
	return f, p
}

// TestAHostThatWaitsForItsRootVolume orders it only while its agent says that it is clean, follows what the cloud says of it, and ends if it does not come.
func TestAHostThatWaitsForItsRootVolume(t *testing.T) {
	state := func(s lifecycle.RootTaskState) func(*lifecycle.Facts) {
		return func(f *lifecycle.Facts) { f.RootTask = &lifecycle.RootTask{ID: "task", State: s} }
	}
	none := func(*lifecycle.Facts) {}
	silent := func(f *lifecycle.Facts) { f.Report.HeartbeatAt = now.Add(-time.Hour) }
	for name, tt := range map[string]struct {
		task   string
		after  time.Duration
		change func(*lifecycle.Facts)
		want   lifecycle.Action
	}{
		"it is not ordered":             {"", 0, none, lifecycle.ActionReplaceRoot},
		"its agent is not heard":        {"", 0, silent, lifecycle.ActionKeep},
		"its agent has not reported":    {"", 0, func(f *lifecycle.Facts) { f.Report = nil }, lifecycle.ActionKeep},
		"a job runs":                    {"", 0, func(f *lifecycle.Facts) { f.Report.Busy = true }, lifecycle.ActionKeep},
		"its agent is ahead":            {"", 0, func(f *lifecycle.Facts) { f.Report.Assignment++ }, lifecycle.ActionRetire},
		"its agent is behind":           {"", 0, func(f *lifecycle.Facts) { f.Report.Assignment-- }, lifecycle.ActionKeep},
		"held":                          {"", 0, func(f *lifecycle.Facts) { f.Record.Hold = now.Add(time.Hour) }, lifecycle.ActionKeep},
		"the cloud has begun":           {"", 0, state(lifecycle.RootReplacing), lifecycle.ActionBeginReset},
		"the cloud was done at once":    {"", 0, state(lifecycle.RootReplaced), lifecycle.ActionBeginReset},
		"the cloud refuses":             {"", 0, func(f *lifecycle.Facts) { f.RootRefused = "UnsupportedOperation" }, lifecycle.ActionTerminate},
		"it is under way, and silent":   {"task", time.Minute, silent, lifecycle.ActionKeep},
		"it is not replaced yet":        {"task", time.Minute, state(lifecycle.RootReplacing), lifecycle.ActionKeep},
		"it is replaced":                {"task", time.Minute, state(lifecycle.RootReplaced), lifecycle.ActionConfirmReset},
		"it is replaced late":           {"task", time.Hour, state(lifecycle.RootReplaced), lifecycle.ActionConfirmReset},
		"it has failed":                 {"task", time.Minute, state(lifecycle.RootFailed), lifecycle.ActionTerminate},
		"it does not come":              {"task", 15 * time.Minute, state(lifecycle.RootReplacing), lifecycle.ActionTerminate},
		"it is not ordered in its time": {"", 15 * time.Minute, silent, lifecycle.ActionTerminate},
		"it retires":                    {"task", 0, func(f *lifecycle.Facts) { f.Record.Retiring = true }, lifecycle.ActionTerminate},
		"it is interrupted":             {"task", 0, func(f *lifecycle.Facts) { f.Record.InterruptionAt = now }, lifecycle.ActionTerminate},
	} {
		f, p := resettingHost(t, tt.task)
		tt.change(&f)
		if d := lifecycle.Decide(f, now.Add(tt.after), p); d.Action != tt.want {
			t.Errorf("%s: %s (%s), want %s", name, d.Action, d.Reason, tt.want)
		}
	}
}

// TestANewRootVolume makes a host that no run has used: it has no trust key, and binds the key of the agent on the new volume. What the old one has
// reported does not count.
func TestANewRootVolume(t *testing.T) {
	f, p := resettingHost(t, "task")
	f.RootTask = &lifecycle.RootTask{ID: "task", State: lifecycle.RootReplaced}
	old := *f.Report
	replacedAt := now.Add(2 * time.Minute)
	r, err := lifecycle.Apply(f.Record, lifecycle.Decide(f, replacedAt, p), replacedAt, p)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Unused() || !r.Renewed() || !r.Releasing() || r.AgentKey != "" || r.LastRun != "" || r.Uses != 3 || r.Assignment != f.Record.Assignment+1 {
		t.Fatalf("with its new root volume the host is %+v", r)
	}
	boots := replacedAt.Add(90 * time.Second)
	for name, report := range map[string]*lifecycle.Report{"none": nil, "the last one before": &old} {
		if d := lifecycle.Decide(lifecycle.Facts{Record: r, Report: report}, boots, p); d.Action != lifecycle.ActionKeep {
			t.Errorf("while it boots, report %s: %s (%s)", name, d.Action, d.Reason)
		}
		if d := lifecycle.Decide(lifecycle.Facts{Record: r, Report: report, Watch: silence.Watch{StoreUpSince: start, StoreReadableSince: start}}, r.Threshold, p); d.Action != lifecycle.ActionTerminate {
			t.Errorf("after the creation timeout, report %s: %s (%s)", name, d.Action, d.Reason)
		}
	}
	report := lifecycle.Report{
		Assignment: r.Assignment, Signal: lifecycle.SignalRemoveRegOK, HeartbeatAt: boots, BootID: "boot-1", AgentKey: anotherKey,
		Statement: signedReset(t, r, agentKey(2), func(s *statement.Reset) { s.Level = statement.LevelRootVolume }),
	}
	d := lifecycle.Decide(lifecycle.Facts{Record: r, Report: &report}, boots, p)
	pooled, err := lifecycle.Apply(r, d, boots, p)
	if err != nil || !pooled.Pooled() || pooled.AgentKey != anotherKey || d.Statement == "" {
		t.Fatalf("%s (%s), %v: key %q", d.Action, d.Reason, err, pooled.AgentKey)
	}
	if got := pooled.Threshold.Sub(boots); got != p.IdleTime {
		t.Errorf("it waits for %s, want the idle time of a host that runs have used", got)
	}
	claim := lifecycle.Claim{HostKey: r.HostKey, Assignment: pooled.Assignment, BindTo: "other/repo", Now: boots, RunID: "8", Repository: "other/repo"}
	if !claim.Holds(pooled) {
		t.Fatal("a run of another repository may not claim it")
	}
	claimed, err := pooled.Claimed(claim)
	if err != nil || claimed.TrustKey != "other/repo" || claimed.RootVolume != nil || claimed.Uses != 4 {
		t.Errorf("claimed: %+v, %v", claimed, err)
	}
}

// TestWhereJobsHaveCredentials a host keeps its trust key: what a job has of its machine outlives the root volume. Of a host from an older launch template
// the pool does not say what its jobs could have.
func TestWhereJobsHaveCredentials(t *testing.T) {
	for name, change := range map[string]func(*lifecycle.Facts, *lifecycle.Policy){
		"its pool gives them": func(_ *lifecycle.Facts, p *lifecycle.Policy) { p.KeepsTrust = true },
		"its pool may have had them": func(f *lifecycle.Facts, p *lifecycle.Policy) {
			f.Template, p.Drift = "1", lifecycle.DriftIgnore
			f.Record.TemplateVersion = "0"
		},
	} {
		f, p := resettingHost(t, "task")
		change(&f, &p)
		f.RootTask = &lifecycle.RootTask{ID: "task", State: lifecycle.RootReplaced}
		r, err := lifecycle.Apply(f.Record, lifecycle.Decide(f, now, p), now, p)
		if err != nil || r.TrustKey != "acme/shop" || r.Unused() || !r.Fresh() || r.AgentKey != "" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestTheTokenOfAReplacement is of one decision: a record that was restored comes to the same assignment again, and EC2 would answer with what it replaced
// before, though a run has used that since.
func TestTheTokenOfAReplacement(t *testing.T) {
	f, p := resettingHost(t, "")
	released := releasedClean(t)
	later := now.Add(5 * time.Minute)
	released.Report.HeartbeatAt, released.Record.Threshold = later, later.Add(time.Minute)
	again, err := lifecycle.Apply(released.Record, lifecycle.Decide(released, later, p), later, p)
	if err != nil || !again.Resetting() || again.Assignment != f.Record.Assignment {
		t.Fatalf("%+v, %v", again, err)
	}
	if again.ReplacementToken() == f.Record.ReplacementToken() {
		t.Errorf("both have the token %s", again.ReplacementToken())
	}
	if f.Record.InstanceID, f.Record.Assignment = "i-0123456789abcdef0", math.MaxInt32; len(f.Record.ReplacementToken()) > 64 {
		t.Errorf("%s is longer than EC2 takes", f.Record.ReplacementToken())
	}
}

// TestAPoolThatReusesNoHostAnyMore ends one that was being reset, or was pooled with its new root volume: its machine has served a run.
func TestAPoolThatReusesNoHostAnyMore(t *testing.T) {
	resetting, p := resettingHost(t, "task")
	renewed := resetting
	renewed.RootTask = &lifecycle.RootTask{ID: "task", State: lifecycle.RootReplaced}
	var err error
	if renewed.Record, err = lifecycle.Apply(renewed.Record, lifecycle.Decide(renewed, now, p), now, p); err != nil {
		t.Fatal(err)
	}
	boots := now.Add(time.Minute)
	renewed.RootTask, renewed.Report = nil, &lifecycle.Report{
		Assignment: renewed.Record.Assignment, Signal: lifecycle.SignalRemoveRegOK, HeartbeatAt: boots, BootID: "boot-1", AgentKey: anotherKey,
		Statement: signedReset(t, renewed.Record, agentKey(2), func(*statement.Reset) {}),
	}
	pooled := renewed
	if pooled.Record, err = lifecycle.Apply(pooled.Record, lifecycle.Decide(pooled, boots, p), boots, p); err != nil || !pooled.Record.Pooled() {
		t.Fatalf("%+v, %v", pooled.Record, err)
	}
	p.Reuse, p.Reset = lifecycle.ReuseNone, statement.LevelSlate
	for name, f := range map[string]lifecycle.Facts{"resetting": resetting, "renewed": renewed, "pooled": pooled} {
		if d := lifecycle.Decide(f, boots, p); d.Action != lifecycle.ActionTerminate || d.Code != lifecycle.ReasonNoReuse {
			t.Errorf("%s: %s (%s)", name, d.Action, d.Reason)
		}
	}
}

// TestAfterANewRootVolume: what the old one had to do with is over, and the host is looked at as soon as there is something to see.
func TestAfterANewRootVolume(t *testing.T) {
	f, p := resettingHost(t, "")
	for state, look := range map[lifecycle.RootTaskState]time.Time{lifecycle.RootReplacing: now.Add(p.EndPoll), lifecycle.RootReplaced: now} {
		f.RootTask = &lifecycle.RootTask{ID: "task", State: state}
		d := lifecycle.Decide(f, now, p)
		r, err := lifecycle.Apply(f.Record, d, now, p)
		if err != nil || d.Action != lifecycle.ActionBeginReset || r.RootVolume.Task != "task" || !r.DueAt.Equal(look) {
			t.Errorf("%s: %s, then task %q, due at %s, %v; want %s", state, d.Action, r.RootVolume.Task, r.DueAt, err, look)
		}
	}
	f, p = resettingHost(t, "task")
	f.RootTask = &lifecycle.RootTask{ID: "task", State: lifecycle.RootReplaced}
	f.Record.ClaimFailures, f.Record.StandbyFailed = 2, true
	later := now.Add(time.Minute)
	r, err := lifecycle.Apply(f.Record, lifecycle.Decide(f, later, p), later, p)
	if err != nil || r.ClaimFailures != 0 || r.StandbyFailed || !r.ReleasedAt.Equal(later) || !r.RootVolume.ReplacedAt.Equal(later) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestARenewedHostInThePool ends if its pool lets no other run have a machine by now, and any other host stays until its time is over.
func TestARenewedHostInThePool(t *testing.T) {
	for _, renewed := range []bool{true, false} {
		for _, reuse := range []lifecycle.Reuse{lifecycle.ReuseNone, lifecycle.ReuseSameRepository} {
			f, p := idleOver(), lifecycle.DefaultPolicy()
			f.Record.Threshold, p.Reuse = now.Add(time.Hour), reuse
			if renewed {
				f.Record.RootVolume = &lifecycle.RootVolume{At: now.Add(-time.Hour), ReplacedAt: now.Add(-time.Minute)}
			}
			want := lifecycle.ActionKeep
			if renewed && reuse == lifecycle.ReuseNone {
				want = lifecycle.ActionTerminate
			}
			if d := lifecycle.Decide(f, now, p); d.Action != want {
				t.Errorf("renewed %t, reuse %s: %s, want %s", renewed, reuse, outcome(d), want)
			}
		}
	}
}
