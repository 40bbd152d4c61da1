package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// TestExplainWhatIsNotedOnAHost: each mark has its sentence, and a host without the mark has none.
func TestExplainWhatIsNotedOnAHost(t *testing.T) {
	const at = "00:01:00Z (0s ago)"
	tests := map[string]struct {
		mark func(*lifecycle.Record)
		want []string
	}{
		"none":     {func(*lifecycle.Record) {}, nil},
		"retiring": {func(r *lifecycle.Record) { r.Retiring = true }, []string{"It is retiring: no run gets it any more, and it leaves when it is next idle."}},
		"retiring, and why": {func(r *lifecycle.Record) { r.Retiring, r.RetiringReason = true, "its template is old" }, []string{
			"It is retiring: no run gets it any more, and it leaves when it is next idle.", "Why it retires: its template is old.",
		}},
		"a reason alone": {func(r *lifecycle.Record) { r.RetiringReason = "its template is old" }, nil},
		"interrupted":    {func(r *lifecycle.Record) { r.InterruptionAt = time.Now() }, []string{"EC2 announced that it takes the machine back at " + at + "."}},
		"replaced":       {func(r *lifecycle.Record) { r.ReplacedBy = "q" }, []string{"Request q gets its run another host in its place."}},
		"an orphan":      {func(r *lifecycle.Record) { r.OrphanAt = time.Now() }, []string{"Scale-down has marked it as an orphan since " + at + ": GitHub did not list it."}},
		"idle":           {func(r *lifecycle.Record) { r.IdleDetectedAt = time.Now() }, []string{"Scale-down first read it as idle at " + at + "."}},
		"failed":         {func(r *lifecycle.Record) { r.ClaimFailures = 1 }, []string{"Its last 1 registration failed by its own fault."}},
	}
	begins := []string{"It is retiring", "Why it retires", "EC2 announced", "Request q gets", "Scale-down has marked", "Scale-down first", "Its last"}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
				host := w.mustProvision(ctx, demand("1", "a", 1))[0]
				w.set(func() { w.busy[host.HostKey] = true })
				time.Sleep(time.Minute)
				r := w.record(host.HostKey)
				tt.mark(&r)
				if _, err := w.store.UpdateInstance(ctx, r); err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, s := range w.explained(ctx, host.InstanceID) {
					if slices.ContainsFunc(begins, func(begin string) bool { return strings.HasPrefix(s, begin) }) {
						got = append(got, s)
					}
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestExplainWhatTheCloudSays: of a machine that is impaired, tagged or about to end.
func TestExplainWhatTheCloudSays(t *testing.T) {
	inBubbleOf(t, scalingDown(policy.ScaleDown{}), func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.compute.Impair(host.InstanceID, true)
		w.says(ctx, host.InstanceID, "EC2 says that its machine runs, impaired by the health checks of EC2.",
			// Its agent is heard, so it is no reason to end the host.
			"If it is there still at 06:00:0", "terminate, since: its maximum runtime of 6h0m0s is over")
		w.compute.Impair(host.InstanceID, false)
		w.compute.SetBypass(host.InstanceID, true)
		w.says(ctx, host.InstanceID, "EC2 says that its machine runs, and that it is tagged remuda:bypass-removal=true: scale-down leaves it alone.")
		if _, err := w.fleet.Terminate(ctx, host.InstanceID, "", time.Now()); err != nil {
			t.Fatal(err)
		}
		told := strings.Join(w.explained(ctx, host.InstanceID), "\n")
		if strings.Contains(told, "confirmed the end") || strings.Contains(told, "Nothing is left") || !strings.Contains(told, "EC2 says that its machine is ") {
			t.Errorf("before EC2 has said that the machine is gone:\n%s", told)
		}
	})
}

// TestExplainWhatAnAgentSays: why it failed, and that it speaks of an assignment that is over.
func TestExplainWhatAnAgentSays(t *testing.T) {
	diaryWorld(t, func(ctx context.Context, w *world, _ *diary, _ *pace) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.set(func() {
			w.forge[host.HostKey] = func(p *lifecycle.Report) { p.Signal, p.Cause = lifecycle.SignalRegFailed, lifecycle.CauseGitHub }
		})
		time.Sleep(time.Second)
		w.says(ctx, host.InstanceID, "UD_REG_FAILED (cause: github), no job runs.")
		w.set(func() {
			w.forge[host.HostKey] = func(p *lifecycle.Report) { p.Assignment = 0 }
		})
		time.Sleep(time.Second)
		w.says(ctx, host.InstanceID, "UD_REG_OK for assignment 0, which is not the current one, no job runs.")
	})
}

// TestExplainSinceWhenEachHostIsReady: a run has the time of each of its hosts, and not that of another.
func TestExplainSinceWhenEachHostIsReady(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.mute = true })
		outcome := make(chan error, 1)
		go func() {
			_, err := w.provision(ctx, demand("1", "a", 2))
			outcome <- err
		}()
		w.waitFor(2)
		hosts := w.records()
		late := hosts[0].HostKey
		w.set(func() { w.mute, w.deaf[late] = false, true })
		time.Sleep(10 * time.Second)
		w.set(func() { delete(w.deaf, late) })
		if err := <-outcome; err != nil {
			t.Fatal(err)
		}
		told := w.whyRun("1")
		for _, h := range hosts {
			want := fmt.Sprintf("Host %s (c5.large) is running since 00:00:0", h.InstanceID)
			if h.HostKey == late {
				want = fmt.Sprintf("Host %s (c5.large) is running since 00:00:1", h.InstanceID)
			}
			if !strings.Contains(told, want) {
				t.Errorf("no word of %q in:\n%s", want, told)
			}
		}
	})
}

// TestExplainHowARequestEnded: with all of its hosts, with none, or rolled back.
func TestExplainHowARequestEnded(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demandOf(repository, "1", 2, 1, time.Minute))
		says := func(run, want string) {
			t.Helper()
			if told := w.whyRun(run); !strings.Contains(told, want) {
				t.Errorf("no word of %q in:\n%s", want, told)
			}
		}
		says("1", "Request a of attempt 1 asked for 2 large on-demand hosts (at least 1) of pool default at 00:00:00Z and got 2.\n")
		w.release(ctx, "1", true)
		says("1", "and got 2. The run was released at 00:00:0")
		w.set(func() { w.forge["*"] = func(p *lifecycle.Report) { p.Busy, p.Jobs = true, 1 } }) // a host at work stays
		for capacity, want := range []string{"and got none: ", "and was rolled back: "} {
			w.compute.SetCapacity("*", 2+capacity) // run 1 has two machines
			d := demandOf("other/app", fmt.Sprint(2+capacity), 2, 2, time.Minute)
			d.Spec.UsageClass = lifecycle.UsageSpot
			if _, err := w.provision(ctx, d); err == nil {
				t.Errorf("with %d machines to be had a run has two", capacity)
			}
			e, err := w.fleet.Explain(ctx, "other/app", d.RunID, time.Now())
			if err != nil || !strings.Contains(e.Sentences[0], " asked for 2 large spot hosts (at least 2) of pool default at ") || !strings.Contains(e.Sentences[0], want) {
				t.Errorf("%v: %q, want %q", err, e.Sentences[0], want)
			}
		}
	})
}

// TestExplainARunWhoseHostIsAboutToEnd: what is next stands in place of what may follow, and a hold of the fleet in place of both.
func TestExplainARunWhoseHostIsAboutToEnd(t *testing.T) {
	inBubbleOf(t, scalingDown(policy.ScaleDown{}), func(ctx context.Context, t *testing.T, w *world) {
		d := demand("1", "a", 1)
		d.Spec.MaxRuntime = 2 * time.Minute
		w.mustProvision(ctx, d)
		time.Sleep(3 * time.Minute)
		told := w.whyRun("1")
		if !strings.Contains(told, "; next: terminate, since: its maximum runtime of 2m0s is over.\n") || strings.Contains(told, "scale-down") {
			t.Errorf("the run:\n%s", told)
		}
		w.hold(ctx, w.fleet, time.Hour)
		told = w.whyRun("1")
		if !strings.Contains(told, "else it would be ended: its maximum runtime of 2m0s is over") || strings.Contains(told, "; next: terminate") {
			t.Errorf("the run while the fleet is held:\n%s", told)
		}
	})
}

// TestHistoriesAreInOrder: of events that were stored out of turn.
func TestHistoriesAreInOrder(t *testing.T) {
	diaryWorld(t, func(ctx context.Context, w *world, _ *diary, _ *pace) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.release(ctx, "1", true)
		again := w.mustProvision(ctx, demand("2", "b", 1))[0]
		var late []lifecycle.Event
		for second := range 3 {
			late = append(late, lifecycle.Event{
				At: time.Now().Add(-time.Duration(second) * time.Second), InstanceID: host.InstanceID, Repository: repository, RunID: "2", Assignment: again.Assignment, Reason: fmt.Sprint(second),
			})
		}
		if err := w.store.AddEvents(ctx, late); err != nil {
			t.Fatal(err)
		}
		run, err := w.fleet.Explain(ctx, repository, "2", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		of, err := w.fleet.ExplainHost(ctx, host.InstanceID, fleet.OfRun{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		history, err := w.fleet.History(ctx, host.InstanceID, time.Time{}, time.Time{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		for what, events := range map[string][]lifecycle.Event{"the run": run.Events, "the host": of.Events, "the history": history.Events} {
			if len(events) < 4 || !slices.IsSortedFunc(events, func(a, b lifecycle.Event) int { return a.At.Compare(b.At) }) {
				t.Errorf("the events of %s are out of order: %+v", what, events)
			}
		}
	})
}

// TestHealthy: a host is healthy while it lives and has reported of late.
func TestHealthy(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	heard := func(ago time.Duration) *lifecycle.Report { return &lifecycle.Report{HeartbeatAt: now.Add(-ago)} }
	for name, tt := range map[string]struct {
		state  lifecycle.State
		report *lifecycle.Report
		want   bool
	}{
		"heard":             {lifecycle.StateRunning, heard(59 * time.Second), true},
		"not heard of late": {lifecycle.StateRunning, heard(time.Minute), false},
		"never heard":       {lifecycle.StateRunning, nil, false},
		"ended":             {lifecycle.StateTerminated, heard(0), false},
	} {
		if got := fleet.Healthy(lifecycle.Record{State: tt.state}, tt.report, now, lifecycle.Policy{Silence: time.Minute}); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestReportsOfHosts: those that were not read yet are read.
func TestReportsOfHosts(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.mustProvision(ctx, demand("1", "a", 2))
		listed, reports, err := w.fleet.List(ctx, lifecycle.Filter{}, lifecycle.PageOf{Limit: 10}, time.Now())
		if err != nil || len(listed.Items) != 2 || len(reports) != 2 {
			t.Errorf("%v: %d hosts and %d reports, want two of each", err, len(listed.Items), len(reports))
		}
		known := map[string]lifecycle.Report{hosts[0].HostKey: {Detail: "known"}}
		reports, err = w.fleet.ReportsOf(ctx, hosts, known, time.Now())
		if err != nil || len(reports) != 2 || reports[hosts[0].HostKey].Detail != "known" || reports[hosts[1].HostKey].Signal != lifecycle.SignalRegOK {
			t.Errorf("%v: %+v", err, reports)
		}
	})
}

// TestCountOfHosts: pooled, fresh, hot and stopped ones, by pool.
func TestCountOfHosts(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	pooled := lifecycle.Record{Pool: "default", State: lifecycle.StateIdle, PooledAt: now, Threshold: now.Add(time.Hour), Uses: 1, TrustKey: repository, Version: 1}
	for key, change := range map[string]func(*lifecycle.Record){
		"used":          func(*lifecycle.Record) {},
		"used too":      func(*lifecycle.Record) {},
		"fresh":         func(r *lifecycle.Record) { r.Uses, r.TrustKey = 0, "" },
		"hot":           func(r *lifecycle.Record) { r.Standby = &lifecycle.Standby{RunnerID: 7} },
		"stopped":       func(r *lifecycle.Record) { r.Stop = &lifecycle.Stop{} },
		"stopped too":   func(r *lifecycle.Record) { r.Stop = &lifecycle.Stop{} },
		"fresh stopped": func(r *lifecycle.Record) { r.Uses, r.TrustKey, r.Stop = 0, "", &lifecycle.Stop{} },
		"retiring":      func(r *lifecycle.Record) { r.Retiring = true },
		"running":       func(r *lifecycle.Record) { r.State = lifecycle.StateRunning },
		"elsewhere":     func(r *lifecycle.Record) { r.Pool = "once" },
		"ended":         func(r *lifecycle.Record) { r.State = lifecycle.StateTerminated },
	} {
		r := pooled
		r.HostKey, r.InstanceID = key, key
		change(&r)
		if err := w.store.CreateInstance(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := w.fleet.Count(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]fleet.Counts{
		"default": {
			States: map[lifecycle.State]int{lifecycle.StateIdle: 8, lifecycle.StateRunning: 1}, Pooled: 4, Fresh: 1, Hot: 1, Stopped: 3, FreshStopped: 1,
		},
		"once": {States: map[lifecycle.State]int{lifecycle.StateIdle: 1}, Pooled: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// cutHistory is a store that reads the history of a host back to its last events.
type cutHistory struct {
	fleet.Store
	events int
}

func (s *cutHistory) EventsOfInstance(ctx context.Context, id string, since, until time.Time, limit int) (lifecycle.HostHistory, error) {
	return s.Store.EventsOfInstance(ctx, id, since, until, min(limit, s.events))
}

// TestExplainAHostWithALongHistory: what is cut is said, and what happened in its run is there, each event once.
func TestExplainAHostWithALongHistory(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		store := &cutHistory{Store: w.store, events: 1}
		cut := w.newFleet("b", func(o *fleet.Options) { o.Store = store })
		explained := func() (actions []string, long bool) {
			t.Helper()
			e, err := cut.ExplainHost(ctx, host.InstanceID, fleet.OfRun{}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			for _, event := range e.Events {
				actions = append(actions, event.From+" to "+event.To)
			}
			return actions, strings.Contains(strings.Join(e.Sentences, "\n"), "Its history is long; events before 00:00:0")
		}
		if got, long := explained(); !long || !slices.Equal(got, []string{" to created", "created to running"}) {
			t.Errorf("in its run: %q, long %t", got, long)
		}
		w.release(ctx, "1", true)
		if got, long := explained(); !long || len(got) != 1 {
			t.Errorf("in the pool: %q, long %t", got, long)
		}
		store.events = 10
		if got, long := explained(); long || len(got) != 4 {
			t.Errorf("uncut: %q, long %t", got, long)
		}
	})
}

// fullHistory is a store in which a host has as many events as one explanation shows, and older ones.
type fullHistory struct{ fleet.Store }

func (s fullHistory) EventsOfInstance(_ context.Context, id string, since, _ time.Time, limit int) (lifecycle.HostHistory, error) {
	h := lifecycle.HostHistory{From: since}
	for n := range limit {
		h.Events = append(h.Events, lifecycle.Event{ID: fmt.Sprint("e", n), InstanceID: id, At: since})
	}
	return h, nil
}

// Where a host has as many events as one explanation shows, those of its run are not put before them.
func TestAnExplanationShowsSoManyEvents(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		full := w.newFleet("b", func(o *fleet.Options) { o.Store = fullHistory{w.store} })
		if e, err := full.ExplainHost(ctx, host.InstanceID, fleet.OfRun{}, time.Now()); err != nil || len(e.Events) != 1000 {
			t.Errorf("%d events are shown (%v), want 1000", len(e.Events), err)
		}
	})
}
