package lifecycle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// TestHostsWithACacheOfDocker: a host does not outlive a run that may not write the cache. No job that runs is touched by that.
func TestHostsWithACacheOfDocker(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*lifecycle.Facts, *lifecycle.Policy)
		want   lifecycle.Action
		code   lifecycle.ReasonCode
	}{
		"its run may write":         {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.KeepCaches = []string{"images"} }, lifecycle.ActionPool, lifecycle.ReasonClean},
		"its run may not":           {func(*lifecycle.Facts, *lifecycle.Policy) {}, lifecycle.ActionTerminate, lifecycle.ReasonUntrustedRun},
		"it may write another":      {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.KeepCaches = []string{"go"} }, lifecycle.ActionTerminate, lifecycle.ReasonUntrustedRun},
		"a pool without it":         {func(_ *lifecycle.Facts, p *lifecycle.Policy) { p.DockerCache = "" }, lifecycle.ActionPool, lifecycle.ReasonClean},
		"launched ahead of need":    {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.Uses, f.Record.TrustKey = 0, "" }, lifecycle.ActionPool, lifecycle.ReasonPrepared},
		"it left its standby":       {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.RequestID = "" }, lifecycle.ActionPool, lifecycle.ReasonClean},
		"a job runs on":             {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Report.Busy = true }, lifecycle.ActionDrain, lifecycle.ReasonReleasedBusy},
		"an operator looks at it":   {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.Hold = now.Add(time.Hour) }, lifecycle.ActionKeep, lifecycle.ReasonHeld},
		"an agent that is not done": {func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Report.Signal = lifecycle.SignalNone }, lifecycle.ActionKeep, lifecycle.ReasonWaitingForCleanUp},
	} {
		f, p := releasedClean(t), lifecycle.DefaultPolicy()
		f.Record.RequestID, p.DockerCache = "q1", "images"
		tt.change(&f, &p)
		if d := lifecycle.Decide(f, now, p); d.Action != tt.want || d.Code != tt.code {
			t.Errorf("%s: %s [%s] (%s), want %s [%s]", name, d.Action, d.Code, d.Reason, tt.want, tt.code)
		}
	}
}

// TestAHostWhoseRunIsNotJudged: GitHub is asked again about the run of a clean host, but not for longer than a clean-up may wait for it.
func TestAHostWhoseRunIsNotJudged(t *testing.T) {
	for name, tt := range map[string]struct {
		released time.Duration // ago
		change   func(*lifecycle.Facts)
		want     lifecycle.Action
		judges   bool
		next     time.Duration
	}{
		"released now":       {0, nil, lifecycle.ActionKeep, true, 15 * time.Second},
		"not much time left": {59*time.Minute + 55*time.Second, nil, lifecycle.ActionKeep, true, 5 * time.Second},
		"no time left":       {time.Hour, nil, lifecycle.ActionTerminate, false, 0},
		"it was judged":      {0, func(f *lifecycle.Facts) { f.Record.Unjudged = false }, lifecycle.ActionTerminate, false, 0},
		"it may write":       {0, func(f *lifecycle.Facts) { f.Record.KeepCaches = []string{"images"} }, lifecycle.ActionPool, false, 0},
		"it leaves":          {0, func(f *lifecycle.Facts) { f.Record.Retiring = true }, lifecycle.ActionTerminate, false, 0},
	} {
		f, p := releasedClean(t), lifecycle.DefaultPolicy()
		p.DockerCache, p.ExternalTimeout = "images", time.Hour
		f.Record.RequestID, f.Record.Unjudged, f.Record.ReleasedAt = "q1", true, now.Add(-tt.released)
		if tt.change != nil {
			tt.change(&f)
		}
		d := lifecycle.Decide(f, now, p)
		if d.Action != tt.want || d.Judges != tt.judges || d.Action == lifecycle.ActionKeep && !d.CheckAt.Equal(now.Add(tt.next)) {
			t.Errorf("%s: %s [%s] (%s), judges %v, next %v", name, d.Action, d.Code, d.Reason, d.Judges, d.CheckAt.Sub(now))
		}
	}
}

// TestAHostThatLeavesItsRunEarly: the run may have had a job there, whose agent did not say that the host was ready.
func TestAHostThatLeavesItsRunEarly(t *testing.T) {
	p := lifecycle.DefaultPolicy()
	p.DockerCache = "images"
	r := releasedClean(t).Record
	r.State, r.RunID, r.RequestID, r.KeepCaches = lifecycle.StateClaimed, "8", "q2", []string{"images"}
	r, err := lifecycle.Apply(r, lifecycle.Decision{Action: lifecycle.ActionReturn}, now, p)
	if err != nil {
		t.Fatal(err)
	}
	f := lifecycle.Facts{Record: r, Report: &lifecycle.Report{Assignment: r.Assignment, Signal: lifecycle.SignalRemoveRegOK, HeartbeatAt: now}}
	f.Record.AgentKey = ""
	if d := lifecycle.Decide(f, now, p); d.Action != lifecycle.ActionTerminate || d.Code != lifecycle.ReasonUntrustedRun {
		t.Errorf("%s [%s] (%s)", d.Action, d.Code, d.Reason)
	}
}

// TestADroppedCacheOfDocker: what was in it may have been root, so the host leaves, whatever it does now.
func TestADroppedCacheOfDocker(t *testing.T) {
	spec := cache.Spec{Name: "images", Holds: cache.HoldsDocker, Size: 1 << 30}
	for name, r := range map[string]lifecycle.Record{
		"pooled":    {State: lifecycle.StateIdle, PooledAt: now, TrustKey: "acme/app", Caches: heldOf(spec, "acme/app")},
		"running":   {State: lifecycle.StateRunning, TrustKey: "acme/app"},
		"releasing": {State: lifecycle.StateIdle, ReleasedAt: now, TrustKey: "acme/app", KeepCaches: []string{"images"}},
	} {
		if !r.MayHave(spec, "acme/app") {
			t.Errorf("%s: it has it", name)
		}
		if _, ok := r.DropCache(spec, "acme/app"); ok {
			t.Errorf("%s: it goes on", name)
		}
	}
}

// TestImagesStayWithARegistration: a hot host that gives up its registration cleans up, and no run has left it. So it keeps the images.
func TestImagesStayWithARegistration(t *testing.T) {
	for host, action := range map[string]lifecycle.Action{"pooled, hot": lifecycle.ActionLeaveStandby, "claimed, hot": lifecycle.ActionReregister} {
		for _, name := range []string{"", "images"} {
			f, p := scene{host: host, answer: "none", deadline: "ahead"}.facts()
			p.DockerCache = name
			r, err := lifecycle.Apply(f.Record, lifecycle.Decision{Action: action}, now, p)
			if want := name != ""; err != nil || slices.Contains(r.KeepCaches, name) != want || !want && len(r.KeepCaches) > 0 {
				t.Errorf("%s, with the cache %q: keeps %q, %v", action, name, r.KeepCaches, err)
			}
		}
	}
}

// TestJudged: a host that is stopped again after a run that may change nothing gets no other.
func TestJudged(t *testing.T) {
	stopped, released := stoppedHost(t, true), releasedClean(t).Record
	for name, tt := range map[string]struct {
		r                  lifecycle.Record
		keep               []string
		unknown            bool
		retiring, unjudged bool
	}{
		"stopped, and may":        {stopped, []string{"images"}, false, false, false},
		"stopped, and may not":    {stopped, nil, false, true, false},
		"stopped, and not known":  {stopped, nil, true, true, false},
		"released, and may":       {released, []string{"images"}, false, false, false},
		"released, and may not":   {released, nil, false, false, false},
		"released, and not known": {released, nil, true, false, true},
	} {
		if r := tt.r.Judged(tt.keep, nil, tt.unknown); r.Unjudged != tt.unjudged || r.Retiring != tt.retiring || !slices.Equal(r.KeepCaches, tt.keep) || r.Startable(now, 0) != (tt.r.Startable(now, 0) && !tt.retiring) {
			t.Errorf("%s: keeps %q, unjudged %t, retiring %t: %s", name, r.KeepCaches, r.Unjudged, r.Retiring, r.RetiringReason)
		}
	}
}
