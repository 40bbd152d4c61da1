package fleet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// steps is an operation that does what its function says.
type steps func(ctx context.Context, now time.Time) (fleet.Progress, error)

func (s steps) Step(ctx context.Context, now time.Time) (fleet.Progress, error) { return s(ctx, now) }

func TestDrive(t *testing.T) {
	full := &lifecycle.UnavailableError{What: "write", Err: errors.New("disk full")}
	fails := steps(func(context.Context, time.Time) (fleet.Progress, error) { return fleet.Progress{}, full })
	waits := steps(func(context.Context, time.Time) (fleet.Progress, error) {
		return fleet.Progress{Wait: time.Second}, nil
	})
	hangs := steps(func(ctx context.Context, _ time.Time) (fleet.Progress, error) {
		<-ctx.Done()
		return fleet.Progress{}, &lifecycle.UnavailableError{What: "write", Err: ctx.Err()}
	})
	// recovers is away for the first 3 s of its life.
	recovers := func() steps {
		began := time.Now()
		return func(_ context.Context, now time.Time) (fleet.Progress, error) {
			if now.Sub(began) < 3*time.Second {
				return fleet.Progress{}, full
			}
			return fleet.Progress{Wait: time.Second}, nil
		}
	}
	tests := map[string]struct {
		op       func() steps
		deadline time.Duration
		patience time.Duration
		is       error
		says     string
		early    bool // it answers before the deadline
	}{
		"away for longer than patience":   {op: func() steps { return fails }, deadline: time.Minute, patience: time.Second, is: lifecycle.ErrUnavailable, says: "disk full", early: true},
		"away until the deadline":         {op: func() steps { return fails }, deadline: time.Minute, patience: time.Hour, is: context.DeadlineExceeded, says: "disk full", early: true},
		"away until a short deadline":     {op: func() steps { return fails }, deadline: 20 * time.Millisecond, patience: time.Hour, is: context.DeadlineExceeded, says: "disk full", early: true},
		"nothing away until the deadline": {op: func() steps { return waits }, deadline: time.Minute, patience: time.Hour, is: context.DeadlineExceeded},
		"a step that hangs":               {op: func() steps { return hangs }, deadline: time.Minute, patience: time.Hour, is: context.DeadlineExceeded},
		"away at first only":              {op: recovers, deadline: time.Minute, patience: time.Hour, is: context.DeadlineExceeded},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, began := newWorld(t), time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
				defer cancel()
				err := w.fleet.Drive(ctx, tt.op(), tt.patience)
				if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("got %v, want %v that says %q", err, tt.is, tt.says)
				}
				if tt.says == "" && strings.Contains(err.Error(), "disk full") {
					t.Errorf("got %v, although nothing was away at the end", err)
				}
				if left := tt.deadline - time.Since(began); tt.early != (left > 0) {
					t.Errorf("answered %s before the deadline", left)
				}
			})
		})
	}
}

// An operation has begun when it has done something that goes on without it.
func TestBegun(t *testing.T) { synctest.Test(t, testBegun) }

func testBegun(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go w.agents(ctx)
	p, err := w.fleet.NewProvision(demand("1", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	if p.Begun() {
		t.Error("a Provision has begun before its first step")
	}
	if err := w.fleet.Drive(ctx, p, patience); err != nil || !p.Begun() {
		t.Errorf("a Provision that is done has not begun (%v)", err)
	}
	r := w.fleet.NewRelease(repository, "1", 0, false)
	if _, err := r.Step(ctx, time.Now()); err != nil || r.Begun() {
		t.Errorf("a Release that has only read has begun (%v)", err)
	}
	if _, err := r.Step(ctx, time.Now()); err != nil || !r.Begun() {
		t.Errorf("a Release that has marked its request has not begun (%v)", err)
	}
}

// acting counts the calls that change a machine.
type acting struct {
	fleet.Compute
	calls int
}

func (a *acting) Launch(ctx context.Context, o lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	a.calls++
	return a.Compute.Launch(ctx, o)
}

func (a *acting) Start(ctx context.Context, id string) error {
	a.calls++
	return a.Compute.Start(ctx, id)
}

// recorded is an operation whose effects are counted.
type recorded interface {
	fleet.Op
	Recorder() *op.Recorder
}

// stepAlone steps an operation until it is done, and has the agents answer between two steps. Nothing else goes on, so what changed within a step is its
// effect, and counts as one.
func (w *world) stepAlone(ctx context.Context, cloud *acting, o recorded) {
	w.t.Helper()
	for range 1000 {
		changes, calls, effects := w.store.Changes(), cloud.calls, o.Recorder().Effects
		ofRepo, ofAll := w.used(ofRepository), w.used(ofOwner)
		progress, err := o.Step(ctx, time.Now())
		if err != nil {
			w.t.Fatal(err)
		}
		changed := w.store.Changes() - changes + cloud.calls - calls
		if counted := o.Recorder().Effects - effects; (counted > 0) != (changed > 0) {
			w.t.Errorf("%d effects were counted of a step with %d changes", counted, changed)
		}
		if w.used(ofRepository) != ofRepo && w.used(ofOwner) != ofAll {
			w.t.Error("two ledgers were written in one step")
		}
		if progress.Done {
			return
		}
		w.answer(ctx)
		time.Sleep(progress.Wait)
	}
	w.t.Fatal("it is not done after 1000 steps")
}

// Every step that changes something counts as an effect, and no other one does. A call that has had an effect goes on for longer while a dependency
// is away.
func TestEachChangeIsAnEffect(t *testing.T) {
	cloud := &acting{}
	counted := func(o *fleet.Options) { cloud.Compute, o.Compute = o.Compute, cloud }
	limits := limited(policy.Limits{HostsPerRepository: 10, HostsPerOwner: 10})
	for name, do := range map[string]func(ctx context.Context, w *world){
		"hosts are launched, given back and claimed": func(ctx context.Context, w *world) {
			for _, run := range []string{"1", "2"} {
				w.stepAlone(ctx, cloud, w.newProvision(w.fleet, demand(run, "a", 2)))
				w.stepAlone(ctx, cloud, w.fleet.NewRelease(repository, run, 0, true))
			}
		},
		"a stopped host is started": func(ctx context.Context, w *world) {
			w.stopOne(ctx)
			w.stepAlone(ctx, cloud, w.newProvision(w.fleet, demand("1", "a", 2)))
		},
		"a launch is cut short by a release": func(ctx context.Context, w *world) {
			stepUntil(ctx, w.t, w.newProvision(w.fleet, demand("1", "a", 2)), func() bool { return w.machines() == 2 })
			w.stepAlone(ctx, cloud, w.fleet.NewRelease(repository, "1", 0, true))
		},
		"a claim is cut short, and its host is ready": func(ctx context.Context, w *world) {
			w.useOnce(ctx, 1)
			stepUntil(ctx, w.t, w.newProvision(w.fleet, demand("1", "a", 1)), func() bool { return len(w.serving("1")) == 1 })
			r, err := lifecycle.Apply(w.serving("1")[0], lifecycle.Decision{Action: lifecycle.ActionReady}, time.Now(), lifecycle.DefaultPolicy())
			if err == nil {
				_, err = w.store.UpdateInstance(ctx, r)
			}
			if err != nil {
				w.t.Fatal(err)
			}
			w.stepAlone(ctx, cloud, w.newProvision(w.fleet, demand("1", "a", 1)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { do(t.Context(), newWorld(t, stops(1), limits, counted)) })
		})
	}
	t.Run("a host of a job is registered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, ctx := jobWorld(t, 1), t.Context()
			w.fleet = w.newFleet("b", func(o *fleet.Options) { withJobs(o, w.hub, 1) }, limits, counted)
			d := demand("1", "a", 1)
			d.Spec.Pool, d.Spec.JobsOf, d.Spec.Labels = jobPool, repository, []string{"remuda-small"}
			w.stepAlone(ctx, cloud, w.newProvision(w.fleet, d))
			w.stepAlone(ctx, cloud, w.fleet.NewRelease(repository, "1", 0, true))
		})
	})
}

// While an operation waits, watchers see what it has done a second ago. What is done at once is written once, at its end.
func TestHistoryOfAnOperationThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t), t.Context()
		p := w.newProvision(w.fleet, demand("1", "a", 1))
		launched := func() bool {
			page, err := w.store.EventsSince(ctx, lifecycle.PageOf{Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			return len(page.Items) > 0
		}
		stepUntil(ctx, t, p, func() bool { return len(w.records()) == 1 })
		began := time.Now()
		for time.Since(began) < 2*time.Second {
			progress, err := p.Step(ctx, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if since := time.Since(began); launched() != (since >= time.Second) {
				t.Errorf("%s after the launch it is in the history: %t", since, launched())
			}
			time.Sleep(progress.Wait)
		}
	})
}
