package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/lifecycle/restored"
	"github.com/remuda-ci/remuda/internal/lifecycle/silence"
)

// TestAClaimIsWritten: the record says for which job, under which registration, and why this host was chosen.
func TestAClaimIsWritten(t *testing.T) {
	r := idleOver().Record
	r.Threshold = now.Add(time.Hour)
	c := start1()
	c.JobsOf, c.Forks, c.GitHubRunnerID, c.Arrival = "acme/shop", true, 5, &arrival.Arrival{Chosen: "it has the caches"}
	n, err := r.Claimed(c)
	if err != nil || n.JobsOf != "acme/shop" || !n.Forks || n.GitHubRunnerID != 5 || n.Reason != "claimed for one job of acme/shop (q), since it has the caches" {
		t.Errorf("%+v: %v", n, err)
	}
	c.JobsOf, c.Arrival = "", &arrival.Arrival{}
	if n, err = r.Claimed(c); err != nil || n.Reason != "claimed for run 78" {
		t.Errorf("without a cause: %q, %v", n.Reason, err)
	}
}

// TestAStartIsWritten, with when its machine is looked at, and a start that is taken back. The time in which it is stopped is not paid for.
func TestAStartIsWritten(t *testing.T) {
	p := stoppedPolicy()
	cycle := func(r lifecycle.Record) meter.Cycle {
		c, _ := r.Meter.Cycle()
		return c
	}
	before := stoppedHost(t, false)
	before.Meter = meter.Begin(start)
	before.Meter.Pool(start, now.Add(-time.Hour))
	d := lifecycle.Decide(lifecycle.Facts{Record: before, Cloud: shownAs(lifecycle.MachineStopped)}, now, p)
	stopped, err := lifecycle.Apply(before, d, now, p)
	if err != nil || cycle(stopped).StoppedAt != meter.At(now) || !stopped.DueAt.Equal(now.Add(time.Hour)) {
		t.Fatalf("stopped at %d, looked at again at %s: %v", cycle(stopped).StoppedAt, stopped.DueAt, err)
	}
	c := start1()
	c.Now = now.Add(time.Minute)
	n, err := stopped.Started(c)
	if err != nil || cycle(n).StartedAt != meter.At(c.Now) || n.Reason != "started for run 78" || !n.DueAt.Equal(c.Now.Add(20*time.Second)) || n.ReasonCode == stopped.ReasonCode {
		t.Fatalf("started at %d, looked at again at %s, %s: %q, %v", cycle(n).StartedAt, n.DueAt, n.ReasonCode, n.Reason, err)
	}
	back, err := lifecycle.Apply(n, lifecycle.Decision{Action: lifecycle.ActionStop}, c.Now, p)
	if err != nil || !back.Stopped() || !back.Threshold.Equal(c.Now.Add(p.StoppedTime)) || !back.DueAt.Equal(c.Now) || back.RunID != "" {
		t.Errorf("taken back it is %s until %s, and due at %s: %v", back.Condition(), back.Threshold, back.DueAt, err)
	}
}

// TestAResetIsWritten: the time of the run ends with it, and each step has its deadline and is looked at.
func TestAResetIsWritten(t *testing.T) {
	f, p := releasedClean(t), resetPolicy()
	f.Record.Meter = meter.Begin(start)
	f.Record.ReleasedAt, f.Record.DueAt = now.Add(-time.Minute), now.Add(-time.Second)
	r, err := lifecycle.Apply(f.Record, lifecycle.Decide(f, now, p), now, p)
	if c, _ := r.Meter.Cycle(); err != nil || c.PooledAt != meter.At(now) || !r.Threshold.Equal(now.Add(15*time.Minute)) || !r.DueAt.Equal(now) {
		t.Fatalf("pooled at %d, resetting until %s, due at %s: %v", c.PooledAt, r.Threshold, r.DueAt, err)
	}
	f.Record = r
	if d := lifecycle.Decide(f, now, p); d.Action != lifecycle.ActionReplaceRoot || !d.CheckAt.Equal(now.Add(p.EndPoll)) {
		t.Errorf("%s at %s", outcome(d), d.CheckAt)
	}
	f.Record.RootVolume.Task, f.RootTask = "task", &lifecycle.RootTask{ID: "task", State: lifecycle.RootReplaced}
	later := now.Add(time.Minute)
	r, err = lifecycle.Apply(f.Record, lifecycle.Decide(f, later, p), later, p)
	if err != nil || !r.Threshold.Equal(later.Add(p.CreationTimeout)) || !r.DueAt.Equal(later.Add(p.ReleasePoll)) {
		t.Errorf("with its new root volume it has until %s, and is due at %s: %v", r.Threshold, r.DueAt, err)
	}
	f.RootTask = &lifecycle.RootTask{ID: "task", State: lifecycle.RootReplacing}
	if d := lifecycle.Decide(f, now.Add(15*time.Minute), p); d.Reason != "EC2 did not replace the root volume within 15m0s" {
		t.Errorf("late: %q", d.Reason)
	}
}

// TestARestIsWritten: since when the host rests, and when it is looked at. One that does not rest is looked at when its time is over.
func TestARestIsWritten(t *testing.T) {
	p := lifecycle.DefaultPolicy()
	r := idleOver().Record
	r.Threshold = now.Add(time.Hour)
	n, err := lifecycle.Apply(r, lifecycle.Decision{Action: lifecycle.ActionRest, CheckAt: now.Add(time.Minute)}, now, p)
	if err != nil || !n.RestingAt.Equal(now) || !n.DueAt.Equal(now.Add(time.Minute)) {
		t.Errorf("it rests since %s, and is due at %s: %v", n.RestingAt, n.DueAt, err)
	}
	for rests, want := range map[bool]time.Duration{true: 10 * time.Minute, false: time.Hour} {
		p.IdleTime, p.RestAfter = time.Hour, 10*time.Minute
		if r.PooledAt = now.Add(-time.Minute); !rests {
			p.RestAfter = 0
		}
		if got := p.RestLook(r, now); !got.Equal(now.Add(want)) {
			t.Errorf("it may rest %t, and is looked at in %s, want %s", rests, got.Sub(now), want)
		}
	}
}

// TestAnEndIsWritten: the run whose job was on the machine that EC2 took, that the machine is gone, and when it ended.
func TestAnEndIsWritten(t *testing.T) {
	r := lifecycle.Record{HostKey: hostKey, State: lifecycle.StateRunning, Repository: "acme/shop", RunID: "7", RunAttempt: 2, Assignment: 1, Threshold: now.Add(time.Hour)}
	for _, lost := range []bool{true, false} {
		n, err := lifecycle.Apply(r, lifecycle.Decision{Action: lifecycle.ActionTerminate, LostJob: lost}, now, lifecycle.DefaultPolicy())
		if want := map[bool]string{true: "acme/shop/7/2"}[lost]; err != nil || n.LostJob != want {
			t.Errorf("the lost job is %q, want %q: %v", n.LostJob, want, err)
		}
	}
	gone := &lifecycle.Machine{Hardware: shown, State: lifecycle.MachineGone, EndedAt: now.Add(-time.Minute)}
	if d := lifecycle.Decide(lifecycle.Facts{Record: r, Cloud: gone}, now, lifecycle.DefaultPolicy()); d.Action != lifecycle.ActionTerminate || !d.Gone {
		t.Errorf("%s, gone %t", outcome(d), d.Gone)
	}
	r = lifecycle.Record{HostKey: hostKey, State: lifecycle.StateTerminated, DueAt: now, UpdatedAt: now}
	if d := lifecycle.Decide(lifecycle.Facts{Record: r, Cloud: gone}, now, lifecycle.DefaultPolicy()); d.Action != lifecycle.ActionForget || !d.EndedAt.Equal(gone.EndedAt) {
		t.Errorf("%s, ended at %s", outcome(d), d.EndedAt)
	}
	for after, want := range map[time.Duration]lifecycle.Action{time.Hour - 1: lifecycle.ActionKeep, time.Hour: lifecycle.ActionForget} {
		d := lifecycle.Decide(lifecycle.Facts{Record: r, Cloud: &lifecycle.Machine{State: lifecycle.MachineGone}}, now.Add(after), lifecycle.DefaultPolicy())
		if d.Action != want {
			t.Errorf("a machine that EC2 does not show, %s after its end: %s", after, outcome(d))
		}
	}
}

// TestWarmLaunches: one that is to be stopped says so.
func TestWarmLaunches(t *testing.T) {
	for kind, want := range map[lifecycle.RequestKind]string{
		lifecycle.RequestStopped: "launched ahead of need, to be stopped until the first run needs it",
		lifecycle.RequestWarm:    "launched ahead of need, for the first run that claims it",
	} {
		r := lifecycle.LaunchedWarm(lifecycle.Machine{HostKey: hostKey}, lifecycle.Request{Kind: kind}, now, lifecycle.DefaultPolicy())
		if r.Reason != want || r.ToStop != (kind == lifecycle.RequestStopped) {
			t.Errorf("%s: %q", kind, r.Reason)
		}
	}
}

// TestACleanHostHasItsCaches: the record that is pooled has what the agent says of them.
func TestACleanHostHasItsCaches(t *testing.T) {
	f, p := cleanFacts(t, nil)
	f.Record.Uses = 1
	f.Report.Caches = heldOf(ofRepository, "acme/shop")
	r, err := lifecycle.Apply(f.Record, lifecycle.Decide(f, now, p), now, p)
	if err != nil || r.Caches != f.Report.Caches {
		t.Errorf("it has %q: %v", r.Caches, err)
	}
}

// TestWhyAFreshHostIsPooled: one that kept its trust key has a new root volume, and any other was prepared.
func TestWhyAFreshHostIsPooled(t *testing.T) {
	renewed := &lifecycle.RootVolume{At: now, ReplacedAt: now}
	for name, tt := range map[string]struct {
		volume *lifecycle.RootVolume
		key    string
		want   string
	}{
		"prepared":          {nil, "", "prepared and clean, for the first run that claims it"},
		"renewed":           {renewed, "", "prepared and clean, for the first run that claims it"},
		"renewed, with key": {renewed, "acme/shop", "prepared, with a new root volume"},
	} {
		f, p := cleanFacts(t, nil)
		f.Record.Uses, f.Record.TrustKey, f.Record.RootVolume = 0, tt.key, tt.volume
		if d := lifecycle.Decide(f, now, p); d.Action != lifecycle.ActionPool || d.Reason != tt.want {
			t.Errorf("%s: %s: %q, want %q", name, outcome(d), d.Reason, tt.want)
		}
	}
}

// TestAHoldSaysWhose: an operator's on the host, or the one on the fleet, and what would happen without it.
func TestAHoldSaysWhose(t *testing.T) {
	for fleet, want := range map[bool]string{false: "held by an operator until ", true: "held with the whole fleet until "} {
		facts, policy := scene{host: "running", answer: "seen", beat: "fresh", deadline: "overrun"}.facts()
		facts.Record.Hold, facts.Record.FleetHeld = now.Add(time.Hour), fleet
		want += "2026-03-02T13:00:00Z; else it would be ended: its maximum runtime of 4h0m0s is over"
		if d := lifecycle.Decide(facts, now, policy); d.Reason != want {
			t.Errorf("%q, want %q", d.Reason, want)
		}
	}
	r := lifecycle.Record{Hold: now.Add(2 * time.Minute)}
	for after, want := range map[time.Duration]time.Duration{0: time.Minute, time.Minute: 2 * time.Minute} {
		if got := r.HoldCheckAt(now.Add(after)); !got.Equal(now.Add(want)) {
			t.Errorf("%s before its end it is looked at %s before", 2*time.Minute-after, r.Hold.Sub(got))
		}
	}
}

// TestAgesFromItsLaunch, or from its record where the launch is not known.
func TestAgesFromItsLaunch(t *testing.T) {
	p := lifecycle.DefaultPolicy()
	p.MaxAge, p.IdleTime = time.Hour, 24*time.Hour
	for name, tt := range map[string]struct {
		launched, created time.Duration
		want              lifecycle.Action
	}{
		"launched an hour ago":                {time.Hour, time.Minute, lifecycle.ActionTerminate},
		"launched a minute ago":               {time.Minute, time.Hour, lifecycle.ActionKeep},
		"recorded an hour ago, not known":     {-1, time.Hour, lifecycle.ActionTerminate},
		"recorded a minute ago, not known":    {-1, time.Minute, lifecycle.ActionKeep},
		"neither its launch nor its creation": {-1, -1, lifecycle.ActionKeep},
	} {
		f := idleOver()
		ago := func(d time.Duration) time.Time {
			if d < 0 {
				return time.Time{}
			}
			return now.Add(-d)
		}
		f.Record.Threshold, f.Record.LaunchedAt, f.Record.CreatedAt = now.Add(time.Hour), ago(tt.launched), ago(tt.created)
		if d := lifecycle.Decide(f, now, p); d.Action != tt.want {
			t.Errorf("%s: %s", name, outcome(d))
		}
	}
}

// TestAReleasedHostIsAsOldAsItsRelease: one whose job may run on is as old as its run, and one whose job is over is not.
func TestAReleasedHostIsAsOldAsItsRelease(t *testing.T) {
	for name, tt := range map[string]struct {
		host string
		want lifecycle.Action
	}{"draining": {"draining", lifecycle.ActionKeep}, "releasing": {"releasing, fresh", lifecycle.ActionTerminate}} {
		facts, policy := scene{host: tt.host, answer: "none", deadline: "reached"}.facts()
		facts.Report, facts.Watch, facts.Record.UpdatedAt = nil, silence.Watch{}, now.Add(-restored.Old+time.Second)
		if d := lifecycle.Decide(facts, now, policy); d.Action != tt.want {
			t.Errorf("%s: %s", name, outcome(d))
		}
	}
}

// TestTheOpenCycleHasItsRun, from when the run got the host, so that a report charges it before the release.
func TestTheOpenCycleHasItsRun(t *testing.T) {
	r := lifecycle.Record{State: lifecycle.StateRunning, Repository: "acme/shop", RunID: "7", Workflow: "CI", Meter: meter.Begin(start), Arrival: &arrival.Arrival{At: now}}
	got := r.Cycles()
	if len(got) != 1 || got[0].ClaimedAt == 0 || got[0].User != (meter.User{Repository: "acme/shop", RunID: "7", Workflow: "CI"}) {
		t.Errorf("%+v", got)
	}
	if r.RunID = ""; r.Cycles()[0].Used() {
		t.Errorf("without a run: %+v", r.Cycles())
	}
}

// TestErrorsAreKinds: whatever they say, errors.Is knows them.
func TestErrorsAreKinds(t *testing.T) {
	missing, away := lifecycle.NotFound("no host %s", "i-1"), &lifecycle.UnavailableError{What: "ask", Err: errors.ErrUnsupported}
	for _, tt := range []struct {
		err                   error
		notFound, unavailable bool
	}{{missing, true, false}, {away, false, true}, {lifecycle.ErrConflict, false, false}} {
		if got := [2]bool{errors.Is(tt.err, lifecycle.ErrNotFound), errors.Is(tt.err, lifecycle.ErrUnavailable)}; got != [2]bool{tt.notFound, tt.unavailable} {
			t.Errorf("%v: not found %t, unavailable %t", tt.err, got[0], got[1])
		}
	}
	if !errors.Is(away, errors.ErrUnsupported) {
		t.Error("its cause is lost")
	}
}

// TestPassedOver: until its time, and not then.
func TestPassedOver(t *testing.T) {
	for before, want := range map[time.Duration]bool{1: true, 0: false, -1: false} {
		if got := (lifecycle.Job{NotBefore: now.Add(before)}).PassedOver(now); got != want {
			t.Errorf("%s before its time: %t", before, got)
		}
	}
}

// TestAHostIsReplacedThreeTimesInARow, and not a fourth time.
func TestAHostIsReplacedThreeTimesInARow(t *testing.T) {
	for generation, want := range []bool{true, true, true, false} {
		facts, policy := scene{host: "running, to be replaced", answer: "seen", beat: "fresh", deadline: "ahead", notice: "interrupted", request: "wanted"}.facts()
		q := *facts.Request
		q.ReplacementOf, facts.Request = &lifecycle.ReplacementOf{Generation: generation}, &q
		if d := lifecycle.Decide(facts, now, policy); (d.Action == lifecycle.ActionReplace) != want {
			t.Errorf("after %d: %s", generation, outcome(d))
		}
	}
}
