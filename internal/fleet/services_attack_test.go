package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// A sweep whose counts take long takes nothing back of what a nudge did in between,
// whichever of the services hangs.
func TestAStaleLookScalesNothingIn(t *testing.T) {
	for _, hangs := range []string{"jobs", "slow"} {
		t.Run(hangs, func(t *testing.T) {
			inServices(t, func(t *testing.T, w *serviceWorld) {
				w.containers.desired["jobs"] = 1
				w.containers.jobs("jobs", 11, 1) // for which 2 are needed
				var hung atomic.Bool
				w.containers.counting = func(name string) {
					if name == hangs && hung.CompareAndSwap(false, true) {
						time.Sleep(4 * time.Second)
					}
				}
				done := make(chan error)
				go func() { done <- w.fleet.Drive(t.Context(), w.fleet.NewServiceSweep(), 0) }()
				time.Sleep(2 * time.Second)
				w.containers.jobs("jobs", 31, 1)
				w.nudge("jobs")
				w.want("jobs", 4, "nudged with a long backlog")
				w.containers.jobs("jobs", 11, 4)
				if err := <-done; err != nil {
					t.Error(err)
				}
				w.want("jobs", 4, "after the sweep that looked before")
				row, err := w.store.Service(t.Context(), "jobs")
				if err != nil || !strings.HasPrefix(row.Reason, "31 jobs wait for") {
					t.Errorf("error %v, and the row says of the older look: %s", err, row.Reason)
				}
			}, "jobs", "slow")
		})
	}
}

// If the count in ECS is also set from elsewhere, a scale-out never makes it less.
func TestAScaleOutNeverSetsLess(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		w.containers.desired["jobs"] = 1
		w.containers.jobs("jobs", 11, 1)
		w.containers.counting = func(string) {
			w.containers.mu.Lock()
			defer w.containers.mu.Unlock()
			w.containers.desired["jobs"] = 3
		}
		got := w.nudge("jobs")
		w.want("jobs", 3, "set by hand meanwhile")
		if got.Seen.Wanted != 3 || !strings.HasSuffix(got.Seen.Reason, ", and in the meantime its desired count was set to 3") || len(w.containers.sets) != 0 {
			t.Errorf("it wants %d: %s; ECS was told %v", got.Seen.Wanted, got.Seen.Reason, w.containers.sets)
		}
	}, "jobs")
}

// A nudge while a service is about to go to zero keeps it up, also where its job
// is not counted any more, or not yet.
func TestANudgeWhileAServiceGoesToZero(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		w.containers.desired["jobs"] = 1
		counts := 0
		w.containers.counting = func(string) {
			if counts++; counts != 6 { // the last one before the call of ECS
				return
			}
			w.containers.jobs("jobs", 31, 0)
			w.nudge("jobs")
			w.containers.jobs("jobs", 0, 0)
		}
		for range 5 {
			w.sweep()
		}
		w.want("jobs", 4, "nudged meanwhile")
	}, "jobs")
}

// Forty databases that hang hold up neither the sweep nor the nudges of those
// that do not.
func TestQueuesThatHangHoldUpNoOther(t *testing.T) {
	const hang, good = 40, 20
	var names []string
	for i := range hang {
		names = append(names, fmt.Sprintf("hangs-%02d", i))
	}
	for i := range good {
		names = append(names, fmt.Sprintf("well-%02d", i))
	}
	for name, nudged := range map[string]bool{"swept": false, "nudged": true} {
		t.Run(name, func(t *testing.T) {
			inServices(t, func(t *testing.T, w *serviceWorld) {
				w.containers.counting = func(name string) {
					if strings.HasPrefix(name, "hangs") {
						time.Sleep(20 * time.Second)
					}
				}
				for _, name := range names[hang:] {
					w.containers.jobs(name, 1, 0)
				}
				ctx, cancel := context.WithCancel(t.Context())
				began := time.Now()
				if nudged {
					go w.fleet.ServeServices(ctx) // without the lease: only nudges count
					for _, name := range names {
						w.fleet.NudgeSoon(name)
					}
				} else {
					go func() { _ = w.fleet.Drive(ctx, w.fleet.NewServiceSweep(), 0) }()
				}
				for w.containers.called()["set"] < good && time.Since(began) < time.Minute {
					time.Sleep(100 * time.Millisecond)
				}
				if took := time.Since(began); took > 6*time.Second {
					t.Errorf("they waited %s for their first runners", took)
				}
				if n := w.containers.called()["describe"]; !nudged && n != 1+good {
					t.Errorf("ECS was asked %d times; want once for all, and once before each that is scaled", n)
				}
				cancel()
				time.Sleep(time.Minute)
			}, names...)
		})
	}
}

// A held fleet ends no runner in a container either, nor does a fleet that cannot
// tell whether it is held; waiting jobs still get runners.
func TestAHeldFleetScalesNothingIn(t *testing.T) {
	const idle = "; else it would go to zero: nothing waits and nothing is worked on, at 5 checks in a row"
	hold := func(t *testing.T, w *serviceWorld, d time.Duration) { w.hold(t.Context(), w.fleet, d) }
	for name, tt := range map[string]struct {
		begin, end func(*testing.T, *serviceWorld)
		says       string
	}{
		"held": {
			begin: func(t *testing.T, w *serviceWorld) { hold(t, w, time.Hour) },
			end:   func(t *testing.T, w *serviceWorld) { hold(t, w, 0) },
			says:  "by CN=ops (looking): nothing is ended; take the hold away first" + idle,
		},
		"unreadable": {
			begin: func(_ *testing.T, w *serviceWorld) {
				w.fleet = w.newFleet("b", w.options("jobs"), func(o *fleet.Options) { o.Guards = &awayGuards{o.Guards} })
			},
			end:  func(_ *testing.T, w *serviceWorld) { w.fleet = w.newFleet("c", w.options("jobs")) },
			says: "hold: context deadline exceeded" + idle,
		},
		"held between the decision and its effect": {
			begin: func(t *testing.T, w *serviceWorld) {
				counts := 0
				w.containers.counting = func(string) {
					if counts++; counts == 6 { // the one before it tells ECS
						hold(t, w, time.Hour)
					}
				}
			},
			end:  func(t *testing.T, w *serviceWorld) { hold(t, w, 0) },
			says: "by CN=ops (looking): nothing is ended; take the hold away first",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inServices(t, func(t *testing.T, w *serviceWorld) {
				w.containers.desired["jobs"] = 2
				tt.begin(t, w)
				for range 5 {
					w.sweep()
				}
				w.want("jobs", 2, "while it is so")
				row, err := w.store.Service(t.Context(), "jobs")
				if err != nil || row.Wanted != 2 || !strings.HasSuffix(row.Reason, tt.says) {
					t.Errorf("error %v, it wants %d: %s; want %s", err, row.Wanted, row.Reason, tt.says)
				}
				w.containers.jobs("jobs", 31, 0)
				w.sweep()
				w.want("jobs", 4, "with a backlog")
				w.containers.jobs("jobs", 0, 0)
				tt.end(t, w)
				for range 5 {
					w.sweep()
				}
				w.want("jobs", 0, "afterwards")
			}, "jobs")
		})
	}
}

// damagedServices has a service whose row cannot be read.
type damagedServices struct {
	services.Store
	name string
}

func (s damagedServices) Service(ctx context.Context, name string) (model.Service, error) {
	if name == s.name {
		return model.Service{}, errDamaged
	}
	return s.Store.Service(ctx, name)
}

// A service whose row cannot be read keeps no other from being looked at and listed.
func TestADamagedServiceKeepsNoOther(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		w.fleet = w.newFleet("b", w.options("a", "b"), func(o *fleet.Options) {
			o.Services.Store = damagedServices{o.Services.Store, "a"}
		})
		w.containers.jobs("a", 3, 0)
		w.containers.jobs("b", 3, 0)
		s := w.fleet.NewServiceSweep()
		if err := w.fleet.Drive(t.Context(), s, 0); err != nil {
			t.Fatal(err)
		}
		if err := s.Failed(); !errors.Is(err, errDamaged) || !strings.HasPrefix(err.Error(), "read service a: ") {
			t.Errorf("what failed: %v", err)
		}
		w.want("a", 0, "whose row cannot be read")
		w.want("b", 1, "three jobs wait")
		if _, err := w.fleet.NudgeService(t.Context(), "a"); !errors.Is(err, errDamaged) {
			t.Errorf("nudged: got error %v", err)
		}
		page, err := w.fleet.Services(t.Context(), lifecycle.PageOf{})
		if err != nil || len(page.Items) != 2 {
			t.Fatalf("listed: %d services, error %v", len(page.Items), err)
		}
		const why = "its state cannot be read: read: damaged document: no JSON from byte 1 on"
		if a, b := page.Items[0].Seen, page.Items[1].Seen; a.Reason != why || a.Queued != nil || b.Desired != 1 && b.Wanted != 1 {
			t.Errorf("listed: %+v and %+v", a, b)
		}
	}, "a", "b")
}

// A replica whose clock was ahead counted last: a service still goes to zero.
func TestCountedByAClockAhead(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		w.containers.desired["jobs"] = 1
		w.sweep()
		row, err := w.store.Service(t.Context(), "jobs")
		if err != nil {
			t.Fatal(err)
		}
		row.CountedAt = time.Now().Add(time.Hour)
		if _, err := w.store.UpdateService(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			w.sweep()
		}
		w.want("jobs", 1, "after four idle checks")
		w.sweep()
		w.want("jobs", 0, "after five")
	}, "jobs")
}
