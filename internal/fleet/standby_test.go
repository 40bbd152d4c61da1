package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// listening has the clean hosts of the default pool register ahead of need.
func listening(o *fleet.Options) {
	p := o.Pools["default"]
	p.Policy.Standby = lifecycle.StandbyListening
	o.Pools["default"] = p
}

// inHotWorld has one host that served run 1 and is hot. Agents and sweeps go on.
func inHotWorld(t *testing.T, do func(ctx context.Context, t *testing.T, w *world), change ...func(*fleet.Options)) {
	t.Helper()
	inStandbyWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.makeHot(ctx)
		do(ctx, t, w)
	}, change...)
}

func inStandbyWorld(t *testing.T, do func(ctx context.Context, t *testing.T, w *world), change ...func(*fleet.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, append([]func(*fleet.Options){listening}, change...)...)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		go w.fleet.Sweep(ctx)
		synctest.Wait()
		do(ctx, t, w)
	})
}

// makeHot has run 1 use a host and give it back, and waits until it is hot.
func (w *world) makeHot(ctx context.Context) lifecycle.Record {
	w.t.Helper()
	w.mustProvision(ctx, demand("1", "first", 1))
	w.release(ctx, "1", true)
	w.until("the host is hot", time.Minute, func() bool { return w.only().Hot() })
	return w.only()
}

// only is the one host.
func (w *world) only() lifecycle.Record {
	w.t.Helper()
	records := w.records()
	if len(records) != 1 {
		w.t.Fatalf("%d hosts, want 1", len(records))
	}
	return records[0]
}

// labelsOf are those that were set on the runner of a host.
func (w *world) labelsOf(r lifecycle.Record) []string {
	w.github.mu.Lock()
	defer w.github.mu.Unlock()
	return w.github.labels[w.github.ids[r.RunnerName]]
}

func TestAHostBecomesHot(t *testing.T) {
	inHotWorld(t, func(_ context.Context, t *testing.T, w *world) {
		r := w.only()
		want := &lifecycle.Standby{Assignment: 2, Label: r.Standby.Label, RunnerID: w.github.ids["remuda-2-"+r.InstanceID], URL: "https://github.test/" + repository}
		if d := cmp.Diff(want, r.Standby); d != "" {
			t.Error(d)
		}
		label, ok := strings.CutPrefix(r.Standby.Label.Reveal(), "remuda-standby-")
		if !ok || len(label) < 26 { // 26 characters of base 32 are 130 bits
			t.Errorf("label %q", r.Standby.Label.Reveal())
		}
		if r.Registration != nil || r.RunnerName != "remuda-2-"+r.InstanceID {
			t.Errorf("registration %v, runner %s", r.Registration, r.RunnerName)
		}
	})
}

// A claim costs no registration and does not wait for the agent, which here says nothing any more.
func TestAHotHostIsReadyOnceItsLabelsAreSet(t *testing.T) {
	inHotWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		before := w.only()
		w.set(func() { w.mute = true })
		began := time.Now()
		d := demand("2", "q", 1)
		d.Spec.Labels = []string{"fast"}
		got := w.mustProvision(ctx, d)
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("took %s", took)
		}
		r := w.only()
		if len(got) != 1 || r.State != lifecycle.StateRunning || r.RunID != "2" || r.RunnerName != before.RunnerName || r.Assignment != 3 {
			t.Errorf("record %+v", r)
		}
		if d := cmp.Diff(&lifecycle.Standby{Assignment: 2, RunnerID: before.Standby.RunnerID}, r.Standby); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"2", "fast"}, w.labelsOf(r)); d != "" {
			t.Error(d)
		}
	})
}

// A release that is followed sees to it that its host is hot, without a sweep.
func TestAFollowedReleaseMakesHostsHot(t *testing.T) {
	for name, waits := range map[string]bool{"the caller waited": true, "the caller did not wait": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, listening)
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				go w.agents(ctx)
				w.mustProvision(ctx, demand("1", "first", 1))
				r := w.release(ctx, "1", waits)
				r.Follow()
				if err := w.fleet.Drive(ctx, r, patience); err != nil || !w.only().Hot() {
					t.Errorf("%v, record %+v", err, w.only())
				}
			})
		})
	}
}

// A follower lets go of a host that the next run claims before it is hot.
func TestAFollowedHostIsClaimed(t *testing.T) {
	inStandbyWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.warming = true })
		w.mustProvision(ctx, demand("1", "first", 1))
		r := w.release(ctx, "1", true)
		w.mustProvision(ctx, demand("2", "q", 1))
		began := time.Now()
		r.Follow()
		if err := w.fleet.Drive(ctx, r, patience); err != nil || time.Since(began) > 10*time.Second {
			t.Errorf("%v, after %s", err, time.Since(began))
		}
	})
}

// The next run is served by another registration: a label that was removed may still bring jobs (actions/runner#4225).
func TestAReleasedHostRegistersAnew(t *testing.T) {
	inHotWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		first := w.only()
		w.mustProvision(ctx, demand("2", "q", 1))
		w.release(ctx, "2", true)
		w.until("the host is hot again", time.Minute, func() bool { return w.only().Hot() })
		r := w.only()
		if r.Standby.RunnerID == first.Standby.RunnerID || r.RunnerName == first.RunnerName || r.Standby.Label == first.Standby.Label {
			t.Errorf("before %+v, now %+v", first.Standby, r.Standby)
		}
		if d := cmp.Diff([]string{r.RunnerName}, w.github.names()); d != "" {
			t.Errorf("runners: %s", d)
		}
	})
}

// Where the labels cannot be set, the claimed host registers for its run within the same request.
func TestAClaimFallsBackToRegistering(t *testing.T) {
	refused := fmt.Errorf("set labels: %w", lifecycle.ErrRefused)
	away := &lifecycle.UnavailableError{What: "github", RetryAfter: time.Second, Err: errors.New("502")}
	for name, test := range map[string]struct {
		world func(w *world, r lifecycle.Record)
		took  time.Duration // at most
	}{
		"the registration is gone": {func(w *world, r lifecycle.Record) { w.github.deregister(r.RunnerName) }, 2 * time.Second},
		"the labels are refused": {func(w *world, _ lifecycle.Record) {
			w.github.refuses(nil, func(int64) error { return refused })
		}, 2 * time.Second},
		"no answer for long": {func(w *world, _ lifecycle.Record) {
			w.github.refuses(nil, func(int64) error { return away })
		}, 25 * time.Second},
		"no answer for a minute": {func(w *world, _ lifecycle.Record) {
			w.github.refuses(nil, func(int64) error {
				return &lifecycle.UnavailableError{What: "github", RetryAfter: time.Minute, Err: errors.New("rate limit")}
			})
		}, 2 * time.Second},
		"the runner was lost": {func(w *world, r lifecycle.Record) {
			w.forge[r.HostKey] = func(p *lifecycle.Report) {
				if p.Assignment < 4 {
					p.Signal, p.Cause = lifecycle.SignalRegFailed, lifecycle.CauseGitHub
				}
			}
			w.github.refuses(nil, func(int64) error { return away })
		}, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inHotWorld(t, func(ctx context.Context, t *testing.T, w *world) {
				before := w.only()
				w.set(func() { test.world(w, before) })
				began := time.Now()
				w.mustProvision(ctx, demand("2", "q", 1))
				if took := time.Since(began); took > test.took {
					t.Errorf("took %s", took)
				}
				r := w.only()
				if r.State != lifecycle.StateRunning || r.Assignment != 4 || r.RunnerName != "remuda-4-"+r.InstanceID || r.Standby != nil {
					t.Errorf("record %+v", r)
				}
				if d := cmp.Diff([]string{r.RunnerName}, w.github.names()); d != "" {
					t.Errorf("runners: %s", d)
				}
				e, err := w.fleet.Explain(ctx, repository, "2", time.Now())
				if err != nil || !strings.Contains(strings.Join(e.Sentences, "\n"), "so it registers again") {
					t.Errorf("the explanation does not say so: %v\n%s", err, strings.Join(e.Sentences, "\n"))
				}
			})
		})
	}
}

// An answer that was lost is asked for again.
func TestLostAnswersToLabels(t *testing.T) {
	inHotWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		calls := 0
		w.github.refuses(nil, func(int64) error {
			if calls++; calls <= 2 {
				return &lifecycle.UnavailableError{What: "github", RetryAfter: time.Second, Err: context.DeadlineExceeded}
			}
			return nil
		})
		w.mustProvision(ctx, demand("2", "q", 1))
		if r := w.only(); calls != 3 || r.RunnerName != "remuda-2-"+r.InstanceID || len(w.labelsOf(r)) != 1 {
			t.Errorf("%d calls, record %+v", calls, r)
		}
	})
}

// GitHub deletes no runner that has a job, and only a run's own labels bring one: the labels were set after all. The job runs to
// its end on a host of its run, which then registers.
func TestLabelsThatWereSetAfterAll(t *testing.T) {
	inHotWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.github.refuses(func(int64) error { return lifecycle.ErrBusy }, func(int64) error { return fmt.Errorf("set labels: %w", lifecycle.ErrRefused) })
		w.mustProvision(ctx, demand("2", "q", 1))
		if r := w.only(); r.State != lifecycle.StateRunning || r.Assignment != 4 || r.RunnerName != "remuda-4-"+r.InstanceID {
			t.Errorf("record %+v", r)
		}
	})
}

// A registration that GitHub did not delete when its host was registered again is deleted when the host is ready, at the latest.
func TestAnOldRegistrationIsDeletedInTheEnd(t *testing.T) {
	away := &lifecycle.UnavailableError{What: "github", RetryAfter: time.Second, Err: errors.New("502")}
	for name, refused := range map[string]struct {
		err   error // of the first deletion
		crash bool  // after it; another replica goes on
	}{"no answer": {away, false}, "a job": {lifecycle.ErrBusy, false}, "a crash": {away, true}} {
		t.Run(name, func(t *testing.T) {
			inHotWorld(t, func(ctx context.Context, t *testing.T, w *world) {
				deletions := 0
				w.github.refuses(func(int64) error {
					if deletions++; deletions == 1 {
						return refused.err
					}
					return nil
				}, func(int64) error { return fmt.Errorf("set labels: %w", lifecycle.ErrRefused) })
				if refused.crash {
					p, err := w.fleet.NewProvision(demand("2", "q", 1))
					if err != nil {
						t.Fatal(err)
					}
					stepUntil(ctx, t, p, func() bool { return deletions > 0 })
				}
				w.mustProvision(ctx, demand("2", "q", 1))
				if d := cmp.Diff([]string{w.only().RunnerName}, w.github.names()); d != "" {
					t.Errorf("after %d deletions, runners: %s", deletions, d)
				}
			})
		})
	}
}

// findsCounted is GitHub that counts how often each runner is looked for by its name, which is the first call of its deletion.
type findsCounted struct {
	*fakeGitHub
	mu    sync.Mutex
	finds map[string]int
}

func (g *findsCounted) of(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.finds[name]
}

func (g *findsCounted) FindRunner(ctx context.Context, repository, name string) (lifecycle.Runner, error) {
	g.mu.Lock()
	g.finds[name]++
	g.mu.Unlock()
	return g.fakeGitHub.FindRunner(ctx, repository, name)
}

// A registration that was deleted when its host was registered again is not looked for when the host is ready.
func TestAnOldRegistrationIsDeletedOnce(t *testing.T) {
	g := &findsCounted{finds: map[string]int{}}
	inHotWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		old := w.only().RunnerName
		w.github.refuses(nil, func(int64) error { return fmt.Errorf("set labels: %w", lifecycle.ErrRefused) })
		before := g.of(old)
		w.mustProvision(ctx, demand("2", "q", 1))
		if n := g.of(old) - before; n != 1 || w.github.knows(old) {
			t.Errorf("the old runner was looked for %d times, want 1; it is there: %t", n, w.github.knows(old))
		}
	}, func(o *fleet.Options) {
		g.fakeGitHub = o.GitHub.(*fakeGitHub)
		o.GitHub = g
	})
}

// stepUntil makes steps of an operation until something has happened, and then no more, as if its replica had crashed.
func stepUntil(ctx context.Context, t *testing.T, o fleet.Op, happened func() bool) {
	t.Helper()
	for range 1000 {
		if happened() {
			return
		}
		progress, err := o.Step(ctx, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(progress.Wait)
	}
	t.Fatal("it has not happened after 1000 steps")
}

// The registration of a host that another replica has just made ready by it is not deleted.
func TestARegistrationThatServesIsNotDeleted(t *testing.T) {
	inHotWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		var deleted atomic.Int64
		var other sync.Once
		w.github.refuses(func(int64) error { deleted.Add(1); return nil }, func(int64) error {
			other.Do(func() { // the other replica is faster
				r := w.only()
				r, err := lifecycle.Apply(r, lifecycle.Decision{Action: lifecycle.ActionReady, RunnerID: r.Standby.RunnerID}, time.Now(), lifecycle.DefaultPolicy())
				if err == nil {
					_, err = w.store.UpdateInstance(ctx, r)
				}
				if err != nil {
					t.Error(err)
				}
			})
			return fmt.Errorf("set labels: %w", lifecycle.ErrRefused)
		})
		w.mustProvision(ctx, demand("2", "q", 1))
		if r := w.only(); r.State != lifecycle.StateRunning || r.RunnerName != "remuda-2-"+r.InstanceID || deleted.Load() > 0 {
			t.Errorf("%d deletions, record %+v", deleted.Load(), r)
		}
	})
}

// Many hosts get their labels at once, and the failure of one is no failure of the others.
func TestLabelsOfManyHosts(t *testing.T) {
	inStandbyWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "first", 12))
		w.release(ctx, "1", true)
		hot := func() bool {
			return !slices.ContainsFunc(w.records(), func(r lifecycle.Record) bool { return !r.Hot() })
		}
		w.until("all hosts are hot", time.Minute, hot)
		lost := w.records()[5]
		w.github.deregister(lost.RunnerName)
		w.mustProvision(ctx, demand("2", "q", 12))
		for _, r := range w.records(lifecycle.StateRunning) {
			if r.HostKey != lost.HostKey && (r.Assignment != 3 || len(w.labelsOf(r)) != 1) {
				t.Errorf("record %+v, labels %v", r, w.labelsOf(r))
			}
		}
		if r := w.record(lost.HostKey); r.Assignment != 4 {
			t.Errorf("the lost one: %+v", r)
		}
	})
}

// A fleet that works on one host at a time sets the labels of one after the other, and of all.
func TestLabelsOfOneHostAtATime(t *testing.T) {
	inStandbyWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "first", 3))
		w.release(ctx, "1", true)
		w.until("all hosts are hot", time.Minute, func() bool {
			return !slices.ContainsFunc(w.records(), func(r lifecycle.Record) bool { return !r.Hot() })
		})
		var open, most, calls atomic.Int64
		w.github.refuses(nil, func(int64) error {
			calls.Add(1)
			most.Store(max(most.Load(), open.Add(1)))
			time.Sleep(100 * time.Millisecond)
			open.Add(-1)
			return nil
		})
		p := w.newProvision(w.fleet, demand("2", "q", 3))
		stepUntil(ctx, t, p, func() bool { return len(w.serving("2")) == 3 && len(w.records(lifecycle.StateRunning)) == 3 })
		if most.Load() != 1 || calls.Load() != 3 {
			t.Errorf("%d calls, at most %d at once", calls.Load(), most.Load())
		}
	}, func(o *fleet.Options) { o.AtOnce = 1 })
}

// GitHub limits writes, so of very many hosts some would get their labels late. These register at once, and neither
// they nor the deletions of their old registrations hold up the others.
func TestLabelsOfVeryManyHosts(t *testing.T) {
	inStandbyWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		const hosts, atOnce = 100, 60
		w.mustProvision(ctx, demand("1", "first", hosts))
		w.release(ctx, "1", true)
		w.until("all hosts are hot", time.Minute, func() bool {
			return !slices.ContainsFunc(w.records(), func(r lifecycle.Record) bool { return !r.Hot() })
		})
		labels, deletions := rate.NewLimiter(rate.Every(600*time.Millisecond), atOnce), rate.NewLimiter(rate.Every(time.Second), 10)
		w.github.refuses(func(int64) error { return paced(deletions, 2*time.Second) }, func(int64) error { return paced(labels, 5*time.Second) })
		began := time.Now()
		w.mustProvision(ctx, demand("2", "q", hosts))
		if took := time.Since(began); took > 12*time.Second {
			t.Errorf("the last host was ready after %s", took)
		}
		hot := 0
		for _, r := range w.records(lifecycle.StateRunning) {
			if r.Standby != nil {
				hot++
			}
		}
		if hot < atOnce || hot > atOnce+10 {
			t.Errorf("%d of %d hosts got labels, want %d at once and those that take no longer than a registration", hot, hosts, atOnce)
		}
	})
}

// paced is a call of 250 ms that waits for its turn, as internal/github has it, if it comes before the caller gives up.
func paced(turns *rate.Limiter, longest time.Duration) error {
	turn := turns.Reserve()
	wait := turn.Delay()
	if wait > longest {
		turn.Cancel()
		return &lifecycle.UnavailableError{What: "github", RetryAfter: wait, Err: errors.New("paced")}
	}
	time.Sleep(wait + 250*time.Millisecond)
	return nil
}

// A call that GitHub does not answer keeps no other host waiting, and no answered call is repeated.
func TestLabelsOfOneHostAreLate(t *testing.T) {
	inStandbyWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "first", 3))
		w.release(ctx, "1", true)
		w.until("all hosts are hot", time.Minute, func() bool {
			return !slices.ContainsFunc(w.records(), func(r lifecycle.Record) bool { return !r.Hot() })
		})
		late, calls := w.records()[1], map[int64]int{}
		w.github.refuses(nil, func(id int64) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if calls[id]++; id == late.Standby.RunnerID {
				return &lifecycle.UnavailableError{What: "github", RetryAfter: time.Second, Err: context.DeadlineExceeded}
			}
			return nil
		})
		began := time.Now()
		w.mustProvision(ctx, demand("2", "q", 3))
		for _, r := range w.records(lifecycle.StateRunning) {
			took := r.RuntimeEndsAt.Add(-r.MaxRuntime).Sub(began)
			if r.HostKey != late.HostKey && (took > 100*time.Millisecond || r.Standby == nil || calls[r.Standby.RunnerID] != 1) {
				t.Errorf("%s was ready after %s: %+v; calls %v", r.InstanceID, took, r.Standby, calls)
			}
		}
		if n := calls[late.Standby.RunnerID]; n < 5 || n > 20 {
			t.Errorf("GitHub was asked %d times within 15 s", n)
		}
	})
}

// A host that is claimed before it listens goes on to do so, and then gets the labels of its run.
func TestAWarmingHostIsClaimed(t *testing.T) {
	inStandbyWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.warming = true })
		w.mustProvision(ctx, demand("1", "first", 1))
		w.release(ctx, "1", true)
		if r := w.only(); !r.Warming() || r.Registration == nil || r.RunnerName != "remuda-2-"+r.InstanceID {
			t.Fatalf("record %+v", r)
		}
		w.mustProvision(ctx, demand("2", "q", 1))
		r := w.only()
		if r.State != lifecycle.StateRunning || r.RunnerName != "remuda-2-"+r.InstanceID || !slices.Equal(w.labelsOf(r), []string{"2"}) {
			t.Errorf("record %+v, labels %v", r, w.labelsOf(r))
		}
		if d := cmp.Diff(&lifecycle.Standby{Assignment: 2, RunnerID: w.github.ids[r.RunnerName]}, r.Standby); d != "" {
			t.Error(d)
		}
	})
}

// GitHub has its time to answer from when the host listens, and not from its claim.
func TestLabelsOfAWarmingHostAreLate(t *testing.T) {
	inStandbyWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.warming = true })
		w.mustProvision(ctx, demand("1", "first", 1))
		w.release(ctx, "1", true)
		claimed := time.Now()
		w.forge[w.only().HostKey] = func(p *lifecycle.Report) {
			if time.Since(claimed) < 40*time.Second {
				p.Signal = lifecycle.SignalNone
				return
			}
			p.RegisteredAt = claimed.Add(40 * time.Second)
		}
		calls := 0
		w.github.labeling = func(int64) error {
			if calls++; calls <= 2 {
				return &lifecycle.UnavailableError{What: "github", RetryAfter: time.Second, Err: context.DeadlineExceeded}
			}
			return nil
		}
		w.mustProvision(ctx, demand("2", "q", 1))
		if r := w.only(); calls != 3 || r.Assignment != 3 || r.RunnerName != "remuda-2-"+r.InstanceID {
			t.Errorf("%d calls, record %+v", calls, r)
		}
	})
}

// listsLate is GitHub that lists no runner until a time.
type listsLate struct {
	*fakeGitHub
	until time.Time
}

func (g *listsLate) FindRunner(ctx context.Context, repository, name string) (lifecycle.Runner, error) {
	g.mu.Lock()
	late := time.Now().Before(g.until)
	g.mu.Unlock()
	if late {
		return lifecycle.Runner{}, lifecycle.ErrNotFound
	}
	return g.fakeGitHub.FindRunner(ctx, repository, name)
}

// GitHub may list the runner of a host late that was claimed before it listened. The host gets its labels then, and registers for its run if that takes long.
func TestAWarmingHostIsListedLate(t *testing.T) {
	for name, test := range map[string]struct {
		late, took time.Duration
		assignment int64
	}{"soon": {8 * time.Second, 11 * time.Second, 3}, "not for long": {time.Hour, 20 * time.Second, 4}} {
		t.Run(name, func(t *testing.T) {
			g := &listsLate{}
			inStandbyWorld(t, func(ctx context.Context, t *testing.T, w *world) {
				w.set(func() { w.warming = true })
				w.mustProvision(ctx, demand("1", "first", 1))
				w.release(ctx, "1", true)
				began := time.Now()
				g.mu.Lock()
				g.until = began.Add(test.late)
				g.mu.Unlock()
				w.mustProvision(ctx, demand("2", "q", 1))
				if r, took := w.only(), time.Since(began); r.State != lifecycle.StateRunning || r.Assignment != test.assignment || took > test.took {
					t.Errorf("after %s: record %+v", took, r)
				}
			}, func(o *fleet.Options) {
				g.fakeGitHub = o.GitHub.(*fakeGitHub)
				o.GitHub = g
			})
		})
	}
}

// A repository and its organization give ids to their runners independently. After a change of the scope the id of
// a runner that listens may be that of another runner there, which must not get the jobs of a run.
func TestARunnerOfAnotherScopeGetsNoLabels(t *testing.T) {
	inHotWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.github.mu.Lock()
		w.github.place = "acme"
		w.github.mu.Unlock()
		w.github.labeling = func(id int64) error {
			t.Errorf("labels for runner %d", id)
			return nil
		}
		w.mustProvision(ctx, demand("2", "q", 1))
		if r := w.only(); r.State != lifecycle.StateRunning || r.Assignment != 4 || r.Standby != nil {
			t.Errorf("record %+v", r)
		}
	})
}

// A record may not say where the runner that listens belongs. That runner gets the labels of its run.
func TestARunnerOfAnUnknownScopeGetsItsLabels(t *testing.T) {
	inHotWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		r := w.only()
		standby := *r.Standby
		standby.URL, r.Standby = "", &standby
		if _, err := w.store.UpdateInstance(ctx, r); err != nil {
			t.Fatal(err)
		}
		w.mustProvision(ctx, demand("2", "q", 1))
		if got := w.only(); got.State != lifecycle.StateRunning || got.RunnerName != r.RunnerName || !slices.Equal(w.labelsOf(got), []string{"2"}) {
			t.Errorf("record %+v, labels %v", got, w.labelsOf(got))
		}
	})
}

// A host that cannot listen waits without a registration, until it has served another run.
func TestAHostThatCannotListen(t *testing.T) {
	for name, broken := range map[string]bool{"registration fails": true, "it does not listen in time": false} {
		t.Run(name, func(t *testing.T) {
			inStandbyWorld(t, func(ctx context.Context, t *testing.T, w *world) {
				w.set(func() { w.warming = true })
				w.mustProvision(ctx, demand("1", "first", 1))
				w.release(ctx, "1", true)
				if broken {
					w.set(func() { w.broken["*"] = lifecycle.CauseGitHub })
				}
				w.until("the host waits without a registration", 4*time.Minute, func() bool { r := w.only(); return r.Pooled() && r.Standby == nil })
				w.set(func() { delete(w.broken, "*"); w.warming = false })
				time.Sleep(30 * time.Second)
				if r := w.only(); r.Standby != nil || !r.StandbyFailed || r.RunnerName != "" {
					t.Errorf("record %+v", r)
				}
				w.mustProvision(ctx, demand("2", "q", 1))
				w.release(ctx, "2", true)
				w.until("the host is hot", time.Minute, func() bool { return w.only().Hot() })
			})
		})
	}
}

// A host whose registration ahead of need GitHub refuses for a minute goes on trying, and may be claimed in the meantime.
func TestAHostThatGitHubRefusesForAMinute(t *testing.T) {
	for _, cause := range []lifecycle.Cause{lifecycle.CauseGitHub, lifecycle.CauseRateLimit} {
		t.Run(string(cause), func(t *testing.T) {
			inStandbyWorld(t, func(ctx context.Context, t *testing.T, w *world) {
				w.set(func() { w.warming = true })
				w.mustProvision(ctx, demand("1", "first", 1))
				w.release(ctx, "1", true)
				w.set(func() { w.broken["*"] = cause })
				time.Sleep(time.Minute)
				if r := w.only(); !r.Warming() || r.Assignment != 2 {
					t.Errorf("record %+v", r)
				}
				w.set(func() { delete(w.broken, "*"); w.warming = false })
				w.until("the host is hot", 30*time.Second, func() bool { return w.only().Hot() })
				if r := w.only(); r.Assignment != 2 || r.StandbyFailed {
					t.Errorf("record %+v", r)
				}
			})
		})
	}
}

// A host that only says that it listens is not looked up on GitHub for as long as it is idle.
func TestAHostThatOnlySaysThatItListens(t *testing.T) {
	longIdle := func(o *fleet.Options) {
		p := o.Pools["default"]
		p.Policy.IdleTime = 24 * time.Hour
		o.Pools["default"] = p
	}
	inStandbyWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.warming = true })
		w.mustProvision(ctx, demand("1", "first", 1))
		w.release(ctx, "1", true)
		w.set(func() {
			w.forge[w.only().HostKey] = func(p *lifecycle.Report) {
				if w.only().Warming() {
					p.Signal = lifecycle.SignalRegOK
				}
			}
		})
		w.until("the host waits without a registration", 4*time.Minute, func() bool { r := w.only(); return r.Pooled() && r.Standby == nil })
		if r := w.only(); !r.StandbyFailed {
			t.Errorf("record %+v", r)
		}
	}, longIdle)
}

// A hot host whose registration is lost while no run is there deregisters what is left, and waits without one.
func TestAHotHostLosesItsRegistration(t *testing.T) {
	inHotWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.github.deregister(w.only().RunnerName)
		w.until("the host waits without a registration", 2*time.Minute, func() bool { r := w.only(); return r.Pooled() && r.Standby == nil })
		if len(w.github.names()) > 0 {
			t.Errorf("runners: %v", w.github.names())
		}
	})
}

func TestAStandbyRegistrationIsRenewedEachDay(t *testing.T) {
	longIdle := func(o *fleet.Options) {
		p := o.Pools["default"]
		p.Policy.IdleTime = 100 * time.Hour
		o.Pools["default"] = p
	}
	inHotWorld(t, func(_ context.Context, t *testing.T, w *world) {
		first := w.only()
		time.Sleep(24 * time.Hour)
		w.until("the host has registered again", 2*time.Minute, func() bool { r := w.only(); return r.Hot() && r.Assignment == 3 })
		if r := w.only(); r.RunnerName == first.RunnerName || r.Standby.Label == first.Standby.Label {
			t.Errorf("before %+v, now %+v", first.Standby, r.Standby)
		}
		if n := len(w.github.names()); n != 1 {
			t.Errorf("%d runners", n)
		}
	}, longIdle)
}

// While GitHub gives no token, a clean host is pooled as it is.
func TestAHostIsPooledWithoutAToken(t *testing.T) {
	inStandbyWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "first", 1))
		w.release(ctx, "1", false)
		w.github.setDownFor(repository)
		w.until("the host is pooled", time.Minute, func() bool { return w.only().Pooled() })
		if r := w.only(); r.Standby != nil || r.Registration != nil {
			t.Errorf("record %+v", r)
		}
	})
}

// The end of an idle hot host ends its registration too.
func TestTheEndOfAHotHost(t *testing.T) {
	inHotWorld(t, func(_ context.Context, t *testing.T, w *world) {
		w.until("the host is gone", 20*time.Minute, func() bool { return len(w.records(lifecycle.StateTerminated)) == 1 && w.machines() == 0 })
		w.until("its registration is gone", 5*time.Minute, func() bool { return len(w.github.names()) == 0 })
	})
}

// A run that is released while its labels are being set leaves no runner with them.
func TestAReleaseDuringTheLabels(t *testing.T) {
	inHotWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		first := w.only()
		released := false
		w.github.refuses(nil, func(int64) error {
			if !released {
				released = true
				w.release(ctx, "2", false)
			}
			return nil
		})
		if _, err := w.provision(ctx, demand("2", "q", 1)); err == nil {
			t.Error("the request succeeded")
		}
		w.until("the host is hot again", 2*time.Minute, func() bool { return w.only().Hot() })
		if w.github.knows(first.RunnerName) {
			t.Error("the runner that has the labels of the run is still there")
		}
	})
}

// A refresh that has a claimed host registered again says so, though it first meant the host to be ready.
func TestARefreshSaysWhatCameOfTheLabels(t *testing.T) {
	inHotWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		stepUntil(ctx, t, w.newProvision(w.fleet, demand("2", "q", 1)), func() bool { return w.only().State == lifecycle.StateClaimed })
		w.github.refuses(nil, func(int64) error { return fmt.Errorf("set labels: %w", lifecycle.ErrRefused) })
		refresh := w.fleet.NewRefresh(false)
		w.sweepOnce(ctx, refresh)
		var said []lifecycle.Action
		for _, d := range refresh.Decisions() {
			if d.Sweep == "refresh" && d.InstanceID == w.only().InstanceID {
				said = append(said, d.Action)
			}
		}
		if d := cmp.Diff([]lifecycle.Action{lifecycle.ActionReady, lifecycle.ActionReregister}, said); d != "" {
			t.Errorf("decisions (-want +got):\n%s", d)
		}
	})
}
