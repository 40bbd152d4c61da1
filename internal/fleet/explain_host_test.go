package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// explained are the sentences about a host, with "i-1" for its id.
func (w *world) explained(ctx context.Context, id string) []string {
	w.t.Helper()
	e, err := w.fleet.ExplainHost(ctx, id, fleet.OfRun{}, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	text := strings.Join(e.Sentences, "\n")
	return strings.Split(strings.ReplaceAll(text, id, "i-1"), "\n")
}

// says fails unless all of these sentences are there, in this order.
func (w *world) says(ctx context.Context, id string, want ...string) {
	w.t.Helper()
	sentences := w.explained(ctx, id)
	rest := strings.Join(sentences, "\n")
	for _, part := range want {
		before, after, ok := strings.Cut(rest, part)
		if !ok {
			w.t.Errorf("no word of %q, or not there, in:\n%s", part, strings.Join(sentences, "\n"))
			return
		}
		_, rest = before, after
	}
}

// TestExplainAHost is the whole explanation of a host in the pool.
func TestExplainAHost(t *testing.T) {
	diaryWorld(t, func(ctx context.Context, w *world, _ *diary, _ *pace) {
		id := w.mustProvision(ctx, demand("1", "a", 1))[0].InstanceID
		time.Sleep(time.Minute)
		w.release(ctx, "1", true)
		w.sweepOnce(ctx, w.fleet.NewRefresh(false))
		time.Sleep(2 * time.Minute)
		want := []string{
			"Host i-1 (c5.large, large, on-demand, local-a) of pool default is idle (pooled) since 00:01:00Z (2m0s ago): deregistered and clean.",
			"It was launched at 00:00:00Z (3m0s ago), has served 1 run and may serve the next of acme/app.",
			"Its agent was last heard at 00:03:00Z (0s ago): UD_REMOVE_REG_OK, no job runs.",
			"EC2 says that its machine runs.",
			"It is kept: idle: waiting for a run.",
			"It is looked at again by 00:06:00Z (in 3m0s).",
			"If nothing changes until 00:06:00Z (in 3m0s): terminate, since: idle until its threshold.",
			"00:00:00Z i-1 created: launched for run 1.",
			"00:00:00Z i-1 created → running: registered for run 1.",
			"00:01:00Z i-1 running → idle (releasing): run 1 was released.",
			"00:01:00Z i-1 idle (releasing) → idle (pooled): deregistered and clean.",
			"00:01:00Z i-1 keep (refresh sweep): idle: waiting for a run.",
		}
		if diff := cmp.Diff(want, w.explained(ctx, id)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if _, err := w.fleet.ExplainHost(ctx, "i-none", fleet.OfRun{}, time.Now()); !errors.Is(err, lifecycle.ErrNotFound) {
			t.Errorf("an unknown host: %v, want ErrNotFound", err)
		}
	})
}

// TestExplainAHostThroughItsLife: each time the one thing that matters then.
func TestExplainAHostThroughItsLife(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		id := host.InstanceID
		w.set(func() { w.busy[host.HostKey] = true })
		time.Sleep(time.Second)
		w.says(ctx, id, "is running since", "serves run 1 of acme/app, attempt 1, for request a, as its assignment 1",
			"UD_REG_OK, a job runs, 1 begun", "GitHub has its runner remuda-1-i-1, id 1, online and not busy",
			"It is kept: running a job", "(in 5h59m59s): terminate, since: its maximum runtime of 6h0m0s is over", "created → running")
		if _, err := w.fleet.Hold(ctx, id, 8*time.Hour, "a look", time.Now()); err != nil {
			t.Fatal(err)
		}
		w.says(ctx, id, "An operator holds it until", "(in 8h0m0s): terminate, since: its maximum runtime")
		if _, err := w.fleet.Hold(ctx, id, 0, "seen", time.Now()); err != nil {
			t.Fatal(err)
		}
		w.github.change(host.RunnerName, func(r *lifecycle.Runner) { r.Busy = true })
		w.says(ctx, id, "id 1, online and busy")
		w.github.change(host.RunnerName, func(r *lifecycle.Runner) { r.Online = false })
		w.says(ctx, id, "id 1, offline and busy")
		w.github.mu.Lock()
		w.github.down = true
		w.github.mu.Unlock()
		w.says(ctx, id, "GitHub could not be asked about runner remuda-1-i-1")
		w.github.mu.Lock()
		w.github.down = false
		w.github.mu.Unlock()
		w.release(ctx, "1", false)
		time.Sleep(time.Minute)
		w.says(ctx, id, "is idle (releasing)", "It is kept: released while busy", "keep (due sweep): released while busy: waiting for the job to finish")
		w.set(func() {
			w.forge[host.HostKey] = func(p *lifecycle.Report) { p.Detail = "first\x1b[31mred\nsecond" }
		})
		time.Sleep(time.Second)
		w.says(ctx, id, "it says: first.")
		w.set(func() { w.busy[host.HostKey] = false })
		time.Sleep(10 * time.Minute)
		w.says(ctx, id, "is terminated since", "served 1 run", "Its agent's reports are ignored", "EC2 confirmed the end", "Nothing is left to be done for it", "forget")
	})
}

// TestExplainAHostOfAHeldFleet: what is awaited then is the end of the hold.
func TestExplainAHostOfAHeldFleet(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.release(ctx, "1", true)
		if _, _, err := w.fleet.HoldFleet(ctx, time.Hour, "a look", "CN=ops", time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		w.says(ctx, host.InstanceID, "is idle (pooled)", "No host is ended: the fleet is held until 2000-01-01T01:00:",
			"It is kept: the fleet is held", "else it would be ended: idle until its threshold",
			"(in 50m0s): terminate, since: idle until its threshold")
		for _, s := range w.explained(ctx, host.InstanceID) {
			if strings.Contains(s, "An operator holds it") {
				t.Errorf("the fleet's hold is told as one of the host: %s", s)
			}
		}
		e, err := w.fleet.Explain(ctx, repository, "1", time.Now())
		if err != nil || !strings.HasPrefix(e.Sentences[0], "No host is ended: the fleet is held until") {
			t.Errorf("the run: %v, %v", e.Sentences, err)
		}
	})
}

// TestAHoldIsToldOnce: as a mark while the host would stay without it, and then as what keeps it. So is the hold of the fleet.
func TestAHoldIsToldOnce(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		d := demand("1", "a", 1)
		d.Spec.RunAttempt = 2
		host := w.mustProvision(ctx, d)[0]
		once := func(parts ...string) {
			t.Helper()
			e, err := w.fleet.Explain(ctx, repository, "1", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			var now []string
			for _, s := range e.Sentences {
				if s[0] < '0' || s[0] > '9' { // not of the history
					now = append(now, s)
				}
			}
			for _, text := range []string{strings.Join(now, "\n"), strings.Join(w.explained(ctx, host.InstanceID), "\n")} {
				n := 0
				for _, part := range parts {
					n += strings.Count(text, part)
				}
				if n != 1 {
					t.Errorf("the explanation names the hold %d times:\n%s", n, text)
				}
			}
		}
		if _, err := w.fleet.Hold(ctx, host.InstanceID, 8*time.Hour, "", time.Now()); err != nil {
			t.Fatal(err)
		}
		once("An operator holds it until", "held by an operator until")
		time.Sleep(7 * time.Hour)
		once("An operator holds it until", "held by an operator until")
		if _, err := w.fleet.Hold(ctx, host.InstanceID, 0, "", time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.fleet.HoldFleet(ctx, time.Hour, "a look", "CN=ops", time.Now()); err != nil {
			t.Fatal(err)
		}
		once("by CN=ops (a look)")
		e, err := w.fleet.Explain(ctx, repository, "1", time.Now())
		if err != nil || !strings.HasPrefix(e.Sentences[1], "Request a of attempt 2 asked for 1 ") {
			t.Errorf("%v: no attempt in %q", err, e.Sentences)
		}
	})
}

// TestAfterTheHoldOfTheFleet: what the hold kept is no host that a run could claim, and
// is ended by a time that the explanation names.
func TestAfterTheHoldOfTheFleet(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.release(ctx, "1", true)
		pooled := func() int {
			counts, err := w.fleet.Count(ctx, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return counts["default"].Pooled
		}
		if n := pooled(); n != 1 {
			t.Errorf("%d hosts in the pool, want 1", n)
		}
		hold := func(d time.Duration, reason string) {
			if _, _, err := w.fleet.HoldFleet(ctx, d, reason, "CN=ops", time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		hold(time.Hour, "a look")
		time.Sleep(10*time.Minute + 5*time.Second)
		if n := pooled(); n != 0 {
			t.Errorf("%d hosts may be claimed beyond their threshold", n)
		}
		hold(0, "")
		due := w.record(host.HostKey).DueAt
		w.says(ctx, host.InstanceID, fmt.Sprintf("Next: terminate by %s (in ", due.UTC().Format("15:04:05Z")), "since: idle until its threshold")
	})
}

// TestOrdersWithoutAReason: no colon is left over.
func TestOrdersWithoutAReason(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		for _, d := range []time.Duration{time.Minute, 0} {
			if _, err := w.fleet.Hold(ctx, host.InstanceID, d, "", time.Now()); err != nil {
				t.Fatal(err)
			}
			if _, _, err := w.fleet.HoldFleet(ctx, d, "", "CN=ops", time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		w.says(ctx, host.InstanceID, "hold: held for 1m0s.", "hold: hold taken away.")
		all, err := w.fleet.Events(ctx, lifecycle.PageOf{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all.Items {
			if strings.HasSuffix(strings.TrimSpace(e.Reason), ":") {
				t.Errorf("%q", e.Reason)
			}
		}
	})
}

// TestExplainAHostThatIsSilent: what is not known is not made up.
func TestExplainAHostThatIsSilent(t *testing.T) {
	diaryWorld(t, func(ctx context.Context, w *world, _ *diary, _ *pace) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.set(func() { w.mute = true })
		time.Sleep(41 * time.Second)
		w.says(ctx, host.InstanceID, "was last heard at", "(41s ago)")
		if err := w.store.DeleteReport(ctx, host.HostKey); err != nil {
			t.Fatal(err)
		}
		w.says(ctx, host.InstanceID, "There is no valid report from its agent.")
	})
}

// TestExplainAHostOfARun: a run learns what a host did in it, and nothing about others.
func TestExplainAHostOfARun(t *testing.T) {
	diaryWorld(t, func(ctx context.Context, w *world, _ *diary, _ *pace) {
		id := w.mustProvision(ctx, demand("1", "a", 1))[0].InstanceID
		w.release(ctx, "1", true)
		w.mustProvision(ctx, demand("2", "b", 2))
		e, err := w.fleet.ExplainHost(ctx, id, fleet.OfRun{Repository: repository, RunID: "2"}, time.Now())
		if err != nil || len(e.Events) == 0 {
			t.Fatalf("%+v, %v", e, err)
		}
		for _, event := range e.Events {
			if event.RunID != "2" || event.InstanceID != id {
				t.Errorf("it is about run %q and host %s: %s", event.RunID, event.InstanceID, event.Reason)
			}
		}
		for _, of := range []fleet.OfRun{{Repository: repository, RunID: "1"}, {Repository: repository, RunID: "3"}, {Repository: "acme/other", RunID: "2"}} {
			if _, err := w.fleet.ExplainHost(ctx, id, of, time.Now()); !errors.Is(err, lifecycle.ErrNotFound) {
				t.Errorf("of run %v: %v, want ErrNotFound", of, err)
			}
		}
	})
}

// TestExplainARunTellsWhatSweepsSay: of its hosts, beside how they stand.
func TestExplainARunTellsWhatSweepsSay(t *testing.T) {
	diaryWorld(t, func(ctx context.Context, w *world, _ *diary, _ *pace) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		keep := lifecycle.Event{
			At: time.Now(), InstanceID: host.InstanceID, Repository: repository, RunID: "1", Assignment: 1,
			Action: lifecycle.ActionKeep, Sweep: "scale_down", Reason: "kept idle",
		}
		said := func(change func(*lifecycle.Event)) lifecycle.Event {
			e := keep
			change(&e)
			return e
		}
		if err := w.store.AddEvents(ctx, []lifecycle.Event{
			said(func(e *lifecycle.Event) { e.Reason = "kept young" }), // before it says something else
			keep,
			said(func(e *lifecycle.Event) { e.Sweep, e.Reason = "cloud", "its machine runs" }),
			said(func(e *lifecycle.Event) { e.Sweep, e.Action, e.Reason = "due", lifecycle.ActionRetire, "it is old" }),
			said(func(e *lifecycle.Event) { e.InstanceID, e.Reason = "i-other", "another host" }),
			said(func(e *lifecycle.Event) { e.Assignment, e.Reason = 0, "another assignment" }),
			said(func(e *lifecycle.Event) { e.Sweep, e.Reason = "", "no sweep" }),
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.fleet.Hold(ctx, host.InstanceID, time.Hour, "a look", time.Now()); err != nil {
			t.Fatal(err)
		}
		e, err := w.fleet.Explain(ctx, repository, "1", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(e.Sentences, "\n")
		for _, part := range []string{"An operator holds it", "keep (scale_down sweep): kept idle."} {
			if !strings.Contains(text, part) {
				t.Errorf("no word of %q in:\n%s", part, text)
			}
		}
		want := []string{
			"The scale_down sweep said at 00:00:00Z, and nothing else since: keep i-1, kept idle.",
			"The cloud sweep said at 00:00:00Z, and nothing else since: keep i-1, its machine runs.",
		}
		for what, sentences := range map[string][]string{"the run": strings.Split(strings.ReplaceAll(text, host.InstanceID, "i-1"), "\n"), "the host": w.explained(ctx, host.InstanceID)} {
			got := slices.DeleteFunc(sentences, func(s string) bool { return !strings.Contains(s, "nothing else since") })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
	})
}

// TestExplainAHostThatScaleDownMarked: what is awaited is not its threshold alone.
func TestExplainAHostThatScaleDownMarked(t *testing.T) {
	inScaleDown(t, policy.ScaleDown{IdleConfirmation: 10 * time.Minute}, 1, func(t *testing.T, s *scaleDownScene) {
		ready := s.record(s.hosts[0].HostKey).UpdatedAt
		s.sweepDown()
		id := s.hosts[0].InstanceID
		s.world.says(t.Context(), id, "is running since "+ready.UTC().Format("15:04:05Z"), "The first scale-down after ", "(in 10m0s) ends it if it still is idle")
		r := s.record(s.hosts[0].HostKey)
		r.OrphanAt, r.IdleDetectedAt = time.Now(), time.Time{}
		if _, err := s.store.UpdateInstance(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		s.world.says(t.Context(), id, "The next scale-down asks GitHub for it once more")
	})
}

// TestExplainAHostThatScaleDownMayEnd: its threshold, hours away, is not the next
// thing that may happen to it.
func TestExplainAHostThatScaleDownMayEnd(t *testing.T) {
	night, err := policy.ParsePeriod("* 22-6 * * *", "Europe/Amsterdam", 1, "")
	if err != nil {
		t.Fatal(err)
	}
	none := night
	none.IdleCount = 0
	tests := map[string]struct {
		rules policy.ScaleDown
		young bool
		want  string
	}{
		"young":     {policy.ScaleDown{}, true, "From 00:05:00Z (in 3m59s) on scale-down may end it, if it is idle."},
		"old":       {policy.ScaleDown{}, false, "Each scale-down, every 5m0s, may end it, if it is idle.\n"},
		"none kept": {policy.ScaleDown{Idle: []policy.Period{none}}, false, "Each scale-down, every 5m0s, may end it, if it is idle.\n"},
		"confirmed": {policy.ScaleDown{IdleConfirmation: time.Minute}, false, "may mark it as idle, if it is, and end it 1m0s later if it is still."},
		"kept": {policy.ScaleDown{Idle: []policy.Period{night}}, false,
			"may end it, if it is idle. Of each owner 1 idle host stays while * 22-6 * * * Europe/Amsterdam holds, as it does now."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubbleOf(t, scalingDown(tt.rules), func(ctx context.Context, t *testing.T, w *world) {
				begun := time.Now()
				host := w.mustProvision(ctx, demand("1", "a", 1))[0]
				time.Sleep(time.Until(begun.Add(time.Minute + time.Second)))
				if !tt.young {
					time.Sleep(10 * time.Minute)
				}
				w.says(ctx, host.InstanceID, "It is kept", tt.want, "If it is there still at 06:0", "terminate, since: its maximum runtime")
				if e, err := w.fleet.Explain(ctx, repository, "1", time.Now()); err != nil || !strings.Contains(strings.Join(e.Sentences, "\n"), tt.want) {
					t.Errorf("no word of %q of the run: %v, %v", tt.want, e.Sentences, err)
				}
				tagged := func(on bool) { w.compute.SetBypass(host.InstanceID, on) }
				busy := func(on bool) { w.set(func() { w.busy[host.HostKey] = on }) }
				for why, set := range map[string]struct{ on, off func() }{
					"while the fleet is held":     {func() { w.hold(ctx, w.fleet, time.Hour) }, func() { w.hold(ctx, w.fleet, 0) }},
					"while its machine is tagged": {func() { tagged(true) }, func() { tagged(false) }},
					"while a job runs on it":      {func() { busy(true) }, func() { busy(false) }},
					"while an operator holds it":  {func() { w.holdHost(ctx, host, time.Hour) }, func() { w.holdHost(ctx, host, 0) }},
				} {
					set.on()
					time.Sleep(time.Second)
					if told := strings.Join(w.explained(ctx, host.InstanceID), "\n"); strings.Contains(told, "n scale-down may") || strings.Contains(told, "Each scale-down") {
						t.Errorf("%s:\n%s", why, told)
					}
					set.off()
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// TestExplainNamesWhoAnswersForTheMachine: where hosts are processes of this
// machine, the explanation does not speak of EC2.
func TestExplainNamesWhoAnswersForTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *fleet.Options) {
			p := o.Pools["default"]
			p.Policy.Cloud = "the process table"
			o.Pools["default"] = p
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		id := w.mustProvision(ctx, demand("1", "a", 1))[0].InstanceID
		w.says(ctx, id, "The process table says that its machine runs.")
		if _, err := w.fleet.Terminate(ctx, id, "no longer needed", time.Now()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := w.fleet.Drive(ctx, w.fleet.NewDueSweep(), patience); err != nil {
				t.Fatal(err)
			}
			time.Sleep(lifecycle.DefaultPolicy().EndPoll)
		}
		w.says(ctx, id, "The process table confirmed the end of its machine.", "forget (due sweep): the process table confirmed the end")
		e, err := w.fleet.ExplainHost(ctx, id, fleet.OfRun{}, time.Now())
		if err != nil || strings.Contains(strings.Join(e.Sentences, "\n"), "EC2") {
			t.Errorf("%v, %v", e.Sentences, err)
		}
	})
}
