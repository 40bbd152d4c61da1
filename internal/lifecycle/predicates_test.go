package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// TestDraining: the job of a host that was released with one may run until the runtime ends that it had.
func TestDraining(t *testing.T) {
	ends := now.Add(time.Hour)
	for name, tt := range map[string]struct {
		record lifecycle.Record
		want   bool
	}{
		"released with a job":        {lifecycle.Record{State: lifecycle.StateIdle, Threshold: ends, RuntimeEndsAt: ends}, true},
		"released, and it is over":   {lifecycle.Record{State: lifecycle.StateIdle, Threshold: now, RuntimeEndsAt: ends}, false},
		"released without a runtime": {lifecycle.Record{State: lifecycle.StateIdle}, false},
		"serving":                    {lifecycle.Record{State: lifecycle.StateRunning, Threshold: ends, RuntimeEndsAt: ends}, false},
		"pooled":                     {lifecycle.Record{State: lifecycle.StateIdle, PooledAt: now, Threshold: ends, RuntimeEndsAt: ends}, false},
	} {
		if got := tt.record.Draining(); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestServingSinceByState(t *testing.T) {
	p := lifecycle.DefaultPolicy()
	launched, made := start.Add(-time.Hour), start.Add(-time.Minute)
	for name, tt := range map[string]struct {
		record lifecycle.Record
		want   time.Time
	}{
		"launched for it":           {lifecycle.Record{State: lifecycle.StateRunning, Assignment: 1, LaunchedAt: launched, CreatedAt: made, RuntimeEndsAt: now, Threshold: now}, launched},
		"its launch is not known":   {lifecycle.Record{State: lifecycle.StateCreated, Assignment: 1, CreatedAt: made, Threshold: now}, made},
		"claimed":                   {lifecycle.Record{State: lifecycle.StateClaimed, Assignment: 2, LaunchedAt: launched, Threshold: now}, now.Add(-p.ClaimTimeout)},
		"claimed, not known when":   {lifecycle.Record{State: lifecycle.StateClaimed, Assignment: 2, LaunchedAt: launched}, launched},
		"claimed as its first":      {lifecycle.Record{State: lifecycle.StateClaimed, Assignment: 1, LaunchedAt: launched, Threshold: now}, launched},
		"serving again":             {lifecycle.Record{State: lifecycle.StateRunning, Assignment: 2, LaunchedAt: launched, RuntimeEndsAt: now, MaxRuntime: time.Hour}, now.Add(-time.Hour)},
		"serving, without its time": {lifecycle.Record{State: lifecycle.StateRunning, Assignment: 2, LaunchedAt: launched, Threshold: now}, launched},
		"idle":                      {lifecycle.Record{State: lifecycle.StateIdle, Assignment: 2, LaunchedAt: launched, Threshold: now}, launched},
	} {
		if got := tt.record.ServingSince(p); !got.Equal(tt.want) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// TestMayRest: what ends before it would rest does not rest, and neither does a host that registers ahead of need.
func TestMayRest(t *testing.T) {
	for name, tt := range map[string]struct {
		rest, idle, warm time.Duration
		listens          bool
		used, unused     bool
	}{
		"never":                {0, time.Hour, time.Hour, false, false, false},
		"less than never":      {-1, time.Hour, time.Hour, false, false, false},
		"both":                 {time.Minute, time.Hour, time.Hour, false, true, true},
		"the used ones":        {time.Minute, time.Hour, time.Minute, false, true, false},
		"the unused ones":      {time.Minute, time.Minute, time.Hour, false, false, true},
		"the used ones listen": {time.Minute, time.Hour, time.Hour, true, false, true},
	} {
		p := lifecycle.Policy{RestAfter: tt.rest, IdleTime: tt.idle, WarmTime: tt.warm}
		if tt.listens {
			p.Standby = lifecycle.StandbyListening
		}
		if used, unused := p.MayRest(false), p.MayRest(true); used != tt.used || unused != tt.unused {
			t.Errorf("%s: used %t, unused %t, want %t and %t", name, used, unused, tt.used, tt.unused)
		}
		pooled := lifecycle.Record{State: lifecycle.StateIdle, PooledAt: now.Add(-tt.rest), Uses: 1, TrustKey: "acme/shop"}
		if got := p.Waited(pooled, now); got != tt.used {
			t.Errorf("%s: it has waited %t, want %t", name, got, tt.used)
		}
		hot, young, busy := pooled, pooled, pooled
		hot.Standby, young.PooledAt, busy.State = &lifecycle.Standby{}, now.Add(1-tt.rest), lifecycle.StateRunning
		for _, r := range []lifecycle.Record{hot, young, busy} {
			if p.Waited(r, now) {
				t.Errorf("%s: %+v has waited", name, r)
			}
		}
	}
}

func TestMayStop(t *testing.T) {
	for _, tt := range []struct {
		policy lifecycle.Policy
		want   bool
	}{{lifecycle.Policy{}, false}, {lifecycle.Policy{StoppedMaximum: 1}, true}, {lifecycle.Policy{StopsFresh: true}, true}} {
		if got := tt.policy.MayStop(); got != tt.want {
			t.Errorf("a maximum of %d, fresh ones %t: %t", tt.policy.StoppedMaximum, tt.policy.StopsFresh, got)
		}
	}
}

// TestMachineOfALaunch: all that names a launch has to be the same.
func TestMachineOfALaunch(t *testing.T) {
	order := lifecycle.LaunchOrder{Repository: "acme/shop", RunID: "7", RequestID: "a", Number: 2}
	own := lifecycle.Machine{Repository: "acme/shop", RunID: "7", RequestID: "a", Launch: 2}
	if !own.From(order) {
		t.Errorf("%+v is not from %+v", own, order)
	}
	for name, change := range map[string]func(*lifecycle.Machine){
		"another repository": func(m *lifecycle.Machine) { m.Repository = "acme/web" },
		"another run":        func(m *lifecycle.Machine) { m.RunID = "8" },
		"another request":    func(m *lifecycle.Machine) { m.RequestID = "b" },
		"another launch":     func(m *lifecycle.Machine) { m.Launch = 1 },
	} {
		m := own
		if change(&m); m.From(order) {
			t.Errorf("one of %s is from the order", name)
		}
	}
}

// TestReplacementIsOneHost, whatever the request was for that lost it.
func TestReplacementIsOneHost(t *testing.T) {
	q := lifecycle.Request{RequestID: "a", Spec: lifecycle.Spec{Count: 5, MinimumCount: 3}, Taken: make([]lifecycle.Taken, 5)}
	got := q.Replacement(lifecycle.Record{InstanceID: "i-1", Assignment: 2}, now)
	if got.Spec.Count != 1 || got.Spec.MinimumCount != 1 || got.Missing() != 1 || q.Missing() != 0 || got.ReplacementOf.Generation != 1 {
		t.Errorf("%+v", got)
	}
	for taken, want := range []int{5, 4, 3, 2, 1, 0, 0} {
		if q.Taken = make([]lifecycle.Taken, taken); q.Missing() != want {
			t.Errorf("with %d hosts %d are missing, want %d", taken, q.Missing(), want)
		}
	}
}

// TestAsksForHold: what ends, stops or resets a host asks whether the fleet is held; what leaves it as it is does not.
func TestAsksForHold(t *testing.T) {
	pooled := lifecycle.Record{State: lifecycle.StateIdle, PooledAt: now, Threshold: now.Add(time.Hour)}
	started := lifecycle.Record{State: lifecycle.StateClaimed, Stop: &lifecycle.Stop{}, Threshold: now.Add(time.Hour)}
	held, marked, late := pooled, pooled, pooled
	held.Hold, marked.FleetHeld, late.Threshold = now.Add(time.Minute), true, now
	for name, tt := range map[string]struct {
		decision lifecycle.Decision
		record   lifecycle.Record
		want     bool
	}{
		"ended":                        {lifecycle.Decision{Action: lifecycle.ActionTerminate}, pooled, true},
		"its machine is ended":         {lifecycle.Decision{Action: lifecycle.ActionEndMachine}, pooled, true},
		"its machine is gone":          {lifecycle.Decision{Action: lifecycle.ActionTerminate, Gone: true}, pooled, false},
		"stopped":                      {lifecycle.Decision{Action: lifecycle.ActionStop}, pooled, true},
		"stopped again after no start": {lifecycle.Decision{Action: lifecycle.ActionStop}, started, false},
		"reset":                        {lifecycle.Decision{Action: lifecycle.ActionReset}, pooled, true},
		"kept":                         {lifecycle.Decision{Action: lifecycle.ActionKeep}, pooled, false},
		"kept, and held":               {lifecycle.Decision{Action: lifecycle.ActionKeep}, held, true},
		"kept, with a mark":            {lifecycle.Decision{Action: lifecycle.ActionKeep}, marked, true},
		"kept past its time":           {lifecycle.Decision{Action: lifecycle.ActionKeep}, late, true},
		"pooled":                       {lifecycle.Decision{Action: lifecycle.ActionPool}, late, false},
	} {
		if got := tt.decision.AsksForHold(tt.record, now); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestTheMeterFollowsTheHost: a run pays from the time at which its host is ready, and until the last moment at which its job may have run.
func TestTheMeterFollowsTheHost(t *testing.T) {
	p := lifecycle.DefaultPolicy()
	facts, _ := scene{host: "claimed", answer: "none", deadline: "ahead"}.facts()
	facts.Record.Meter = meter.Begin(start)
	ready, err := lifecycle.Apply(facts.Record, lifecycle.Decision{Action: lifecycle.ActionReady}, now, p)
	if c, _ := ready.Meter.Cycle(); err != nil || c.ReadyAt != meter.At(now) {
		t.Errorf("ready at %d, want %d: %v", c.ReadyAt, meter.At(now), err)
	}
	released, ends := now.Add(-time.Minute), now.Add(time.Hour)
	m := meter.Begin(start)
	m.Ready(start, start)
	m.Release(start, released, meter.User{Repository: "acme/shop", RunID: "7"})
	for name, tt := range map[string]struct {
		threshold time.Time
		until     time.Time
	}{"its job may run on": {ends, now}, "its job is over": {now.Add(time.Minute), released}} {
		r := lifecycle.Record{HostKey: hostKey, InstanceID: hostKey, State: lifecycle.StateIdle, Assignment: 1, ReleasedAt: released, RuntimeEndsAt: ends, Threshold: tt.threshold, Meter: m}
		ended, err := lifecycle.Apply(r, lifecycle.Decision{Action: lifecycle.ActionTerminate}, now, p)
		if c, _ := ended.Meter.Cycle(); err != nil || c.EndedAt != meter.At(tt.until) || c.GoneAt != meter.At(now) {
			t.Errorf("%s: used until %d, gone at %d, want %d and %d: %v", name, c.EndedAt, c.GoneAt, meter.At(tt.until), meter.At(now), err)
		}
	}
}

// TestJobsAreServedInOrder: by when they were queued, and then by their ids.
func TestJobsAreServedInOrder(t *testing.T) {
	early, late := lifecycle.Job{ID: 2, QueuedAt: now}, lifecycle.Job{ID: 1, QueuedAt: now.Add(1)}
	twin := lifecycle.Job{ID: 3, QueuedAt: now.In(time.FixedZone("east", 3600))}
	for _, pair := range [][2]lifecycle.Job{{early, late}, {early, twin}, {twin, late}} {
		if !pair[0].Before(pair[1]) || pair[1].Before(pair[0]) || pair[0].Before(pair[0]) {
			t.Errorf("%+v and %+v", pair[0], pair[1])
		}
	}
}

// TestFilterPasses: the parts of a filter that no database has a column for.
func TestFilterPasses(t *testing.T) {
	held := lifecycle.Record{Hold: now.Add(time.Hour), Repository: "acme/shop"}
	retiring := lifecycle.Record{Retiring: true, Repository: "acme/web"}
	unused := lifecycle.Record{}
	for name, tt := range map[string]struct {
		filter                 lifecycle.Filter
		held, retiring, unused bool
	}{
		"all":              {lifecycle.Filter{}, true, true, true},
		"held now":         {lifecycle.Filter{HeldAt: now}, true, false, false},
		"held later":       {lifecycle.Filter{HeldAt: now.Add(time.Hour)}, false, false, false},
		"retiring":         {lifecycle.Filter{Retiring: true}, false, true, false},
		"of a repository":  {lifecycle.Filter{Repository: "Acme/Shop"}, true, false, false},
		"of an owner":      {lifecycle.Filter{Repository: "ACME"}, true, true, false},
		"of another owner": {lifecycle.Filter{Repository: "ac"}, false, false, false},
		"of both":          {lifecycle.Filter{Repository: "acme/shop", Retiring: true}, false, false, false},
	} {
		for _, r := range []struct {
			record lifecycle.Record
			want   bool
		}{{held, tt.held}, {retiring, tt.retiring}, {unused, tt.unused}} {
			if got := tt.filter.Passes(r.record); got != r.want {
				t.Errorf("%s: %+v passes %t", name, r.record, got)
			}
		}
	}
}

// TestReboots: the silence of a host says nothing while its machine is stopped, gets a new root volume, or boots with it.
func TestReboots(t *testing.T) {
	replaced := &lifecycle.RootVolume{At: now, ReplacedAt: now}
	for name, tt := range map[string]struct {
		record lifecycle.Record
		want   bool
	}{
		"stopped":                     {lifecycle.Record{State: lifecycle.StateIdle, PooledAt: now, Stop: &lifecycle.Stop{}}, true},
		"starting":                    {lifecycle.Record{State: lifecycle.StateClaimed, Stop: &lifecycle.Stop{}}, true},
		"resetting":                   {lifecycle.Record{State: lifecycle.StateIdle, RootVolume: &lifecycle.RootVolume{At: now}}, true},
		"boots with a new volume":     {lifecycle.Record{State: lifecycle.StateIdle, RootVolume: replaced}, true},
		"pooled with a new volume":    {lifecycle.Record{State: lifecycle.StateIdle, PooledAt: now, RootVolume: replaced}, false},
		"releasing":                   {lifecycle.Record{State: lifecycle.StateIdle}, false},
		"of a run, with a new volume": {lifecycle.Record{State: lifecycle.StateRunning, RootVolume: replaced}, false},
	} {
		if got := tt.record.Reboots(); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestOnlyAwakeHosts: a claim of what is awake does not hold for a host that rests, and any other does.
func TestOnlyAwakeHosts(t *testing.T) {
	r := idleOver().Record
	r.Threshold = now.Add(time.Hour)
	for _, rests := range []bool{false, true} {
		if r.RestingAt = (time.Time{}); rests {
			r.RestingAt = now
		}
		for _, awake := range []bool{false, true} {
			c := start1()
			if c.Awake = awake; c.Holds(r) != (!awake || !rests) {
				t.Errorf("of a host that is awake only: %t, it rests: %t, and it holds: %t", awake, rests, c.Holds(r))
			}
		}
	}
	woken, err := lifecycle.Apply(r, lifecycle.Decision{Action: lifecycle.ActionWake, CheckAt: now.Add(time.Minute)}, now, lifecycle.DefaultPolicy())
	if err != nil || woken.Resting() || !woken.Pooled() || !woken.DueAt.Equal(now.Add(time.Minute)) {
		t.Errorf("woken: %+v, %v", woken, err)
	}
}

// TestCyclesOfARecord: a host that was released has ended a cycle, unless its job may run on, and has begun the next one unless it has ended.
func TestCyclesOfARecord(t *testing.T) {
	m := meter.Begin(start)
	m.Ready(start, start)
	m.Release(start, now, meter.User{Repository: "acme/shop", RunID: "7"})
	released := lifecycle.Record{State: lifecycle.StateIdle, ReleasedAt: now, Meter: m}
	draining, gone := released, released
	draining.RuntimeEndsAt, draining.Threshold = now.Add(time.Hour), now.Add(time.Hour)
	gone.State = lifecycle.StateTerminated
	gone.Meter.End(now, now.Add(time.Minute), false)
	for name, tt := range map[string]struct {
		record lifecycle.Record
		ends   []meter.Milli
	}{
		"released": {released, []meter.Milli{meter.At(now), 0}}, "draining": {draining, []meter.Milli{0}}, "ended": {gone, []meter.Milli{meter.At(now)}},
		"not metered": {lifecycle.Record{State: lifecycle.StateRunning}, nil},
	} {
		var ends []meter.Milli
		for _, c := range tt.record.Cycles() {
			ends = append(ends, c.EndedAt)
		}
		if diff := cmp.Diff(tt.ends, ends); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
