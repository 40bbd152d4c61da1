package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/github/webhook"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
)

func TestAServiceGoesFromZeroAndBack(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		w.sweep()
		w.want("jobs", 0, "at rest")
		w.containers.jobs("jobs", 1, 0)
		if got := w.nudge("jobs"); got.Seen.Wanted != 1 || got.Seen.Reason != "1 job waits and there are no runners" {
			t.Errorf("nudged: %+v", got.Seen)
		}
		w.want("jobs", 1, "nudged")
		w.containers.jobs("jobs", 31, 1)
		w.sweep()
		w.want("jobs", 4, "with a long backlog")
		w.containers.jobs("jobs", 0, 1)
		for range 20 {
			w.sweep()
		}
		w.want("jobs", 4, "with a busy runner")
		w.containers.jobs("jobs", 0, 0)
		for n := range 4 {
			w.sweep()
			w.want("jobs", 4, fmt.Sprintf("after %d idle checks", n+1))
		}
		w.containers.jobs("jobs", 1, 0) // resets the count
		w.sweep()
		w.containers.jobs("jobs", 0, 0)
		for range 4 {
			w.sweep()
		}
		w.want("jobs", 4, "after four idle checks again")
		w.sweep()
		w.want("jobs", 0, "after the fifth")
		if diff := cmp.Diff([]string{"jobs=1", "jobs=4", "jobs=0"}, w.containers.sets); diff != "" {
			t.Errorf("what ECS was told (-want +got):\n%s", diff)
		}
		page, err := w.store.EventsSince(t.Context(), lifecycle.PageOf{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, e := range page.Items {
			if e.Action == lifecycle.ActionScale {
				told = append(told, e.Reason)
			}
		}
		want := []string{
			"service jobs goes from 0 to 1: 1 job waits and there are no runners",
			"service jobs goes from 1 to 4: 31 jobs wait for 1 runner, more than 10 for each",
			"service jobs goes from 4 to 0: nothing waits and nothing is worked on, at 5 checks in a row",
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
	}, "jobs")
}

// Nudges between two checks are no checks: five of them end nothing, nor do five
// sweeps at once of replicas that take turns.
func TestLooksBetweenTwoChecksDoNotCount(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		w.containers.desired["jobs"] = 1
		w.sweep()
		for range 20 {
			w.nudge("jobs")
			sweep := w.fleet.NewServiceSweep()
			if err := w.fleet.Drive(t.Context(), sweep, 0); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			time.Sleep(40 * time.Second)
			w.nudge("jobs")
		}
		w.want("jobs", 1, "after many looks")
		for range 3 {
			w.sweep()
		}
		w.want("jobs", 1, "after four checks")
		w.sweep()
		w.want("jobs", 0, "after the fifth")
	}, "jobs")
}

// A sweep that dies between its decision and its effect is finished by the next.
func TestACrashBetweenADecisionAndItsEffect(t *testing.T) {
	for name, tt := range map[string]struct {
		before, queued, after int
	}{"out": {0, 1, 1}, "in": {3, 0, 0}} {
		t.Run(name, func(t *testing.T) {
			inServices(t, func(t *testing.T, w *serviceWorld) {
				w.containers.desired["jobs"] = tt.before
				for range 4 {
					w.sweep()
				}
				w.containers.jobs("jobs", tt.queued, 0)
				time.Sleep(time.Minute)
				dies := w.fleet.NewServiceSweep()
				for {
					if _, err := dies.Step(t.Context(), time.Now()); err != nil {
						t.Fatal(err)
					}
					if row, err := w.store.Service(t.Context(), "jobs"); err != nil || row.Wanted == tt.after && row.CheckedAt.Equal(time.Now()) {
						break
					}
				}
				w.want("jobs", tt.before, "after the crash")
				w.fleet = w.newFleet("b", w.options("jobs"))
				w.containers.jobs("jobs", tt.queued, 0)
				w.sweep()
				w.want("jobs", tt.after, "after the next sweep")
			}, "jobs")
		})
	}
}

// losing is a store in which other writers are faster a few times.
type losing struct {
	services.Store
	left *int
}

func (l losing) UpdateService(ctx context.Context, s model.Service) (model.Service, error) {
	if *l.left--; *l.left >= 0 {
		return model.Service{}, fmt.Errorf("update service: %w", lifecycle.ErrConflict)
	}
	return l.Store.UpdateService(ctx, s)
}

func TestSomebodyElseIsFaster(t *testing.T) {
	for times, desired := range map[int]int{2: 1, 3: 0} {
		inServices(t, func(t *testing.T, w *serviceWorld) {
			left := times
			w.fleet = w.newFleet("b", w.options("jobs"), func(o *fleet.Options) { o.Services.Store = losing{w.store, &left} })
			w.containers.jobs("jobs", 1, 0)
			_, err := w.fleet.NudgeService(t.Context(), "jobs")
			if (err == nil) != (desired == 1) || err != nil && !errors.Is(err, lifecycle.ErrUnavailable) {
				t.Errorf("nudged, lost %d times: got error %v", times, err)
			}
			w.want("jobs", desired, fmt.Sprintf("nudged, lost %d times", times))
		}, "jobs")
	}
	inServices(t, func(t *testing.T, w *serviceWorld) {
		left := 1
		w.fleet = w.newFleet("b", w.options("jobs"), func(o *fleet.Options) { o.Services.Store = losing{w.store, &left} })
		w.containers.jobs("jobs", 1, 0)
		w.sweep()
		w.want("jobs", 0, "after a sweep that lost")
		w.sweep()
		w.want("jobs", 1, "after the next")
	}, "jobs")
}

// The history grows with what changes.
func TestAServiceAtRestTellsNothing(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		for range 10 {
			w.sweep()
		}
		page, err := w.store.EventsSince(t.Context(), lifecycle.PageOf{Limit: 1000})
		if err != nil || len(page.Items) != 1 {
			t.Errorf("%d events of ten sweeps, error %v", len(page.Items), err)
		}
	}, "jobs")
}

func TestWhoeverHoldsTheLeaseSweeps(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		ctx, cancel := context.WithCancel(t.Context())
		go w.fleet.ServeServices(ctx)
		time.Sleep(5 * time.Minute)
		if n := w.containers.called()["describe"]; n != 0 {
			t.Errorf("%d looks without the lease", n)
		}
		w.containers.jobs("jobs", 1, 0)
		w.fleet.NudgeSoon("jobs")
		synctest.Wait()
		w.want("jobs", 1, "nudged, without the lease")
		cancel()
		synctest.Wait()
	}, "jobs")
}

// A job that comes while its service is being scaled in keeps the runners.
func TestAJobThatComesJustThen(t *testing.T) {
	for name, jobs := range map[string][2]int{"waiting": {1, 0}, "taken": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			inServices(t, func(t *testing.T, w *serviceWorld) {
				w.containers.desired["jobs"] = 2
				for range 4 {
					w.sweep()
				}
				counts := 0
				w.containers.counting = func(string) {
					if counts++; counts == 2 {
						w.containers.jobs("jobs", jobs[0], jobs[1])
					}
				}
				w.sweep()
				w.want("jobs", 2, "after the sweep")
				row, err := w.store.Service(t.Context(), "jobs")
				if err != nil || row.IdleChecks != 0 || row.Wanted != 2 || counts != 2 {
					t.Errorf("row %+v, error %v, %d counts", row, err, counts)
				}
			}, "jobs")
		})
	}
}

func TestOneServiceThatFailsKeepsTheOthers(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		away := &lifecycle.UnavailableError{What: "ask", Err: errors.New("away")}
		w.containers.lookErr["a-look"], w.containers.countErr["b-count"], w.containers.setErr["c-set"] = away, away, away
		for _, name := range []string{"a-look", "b-count", "c-set", "d-good"} {
			w.containers.jobs(name, 1, 0)
		}
		time.Sleep(time.Minute)
		sweep := w.fleet.NewServiceSweep()
		if err := w.fleet.Drive(t.Context(), sweep, 0); err != nil {
			t.Fatal(err)
		}
		if err := sweep.Failed(); strings.Count(fmt.Sprint(err), "away") != 3 {
			t.Errorf("failed: %v", err)
		}
		w.want("d-good", 1, "beside three that fail")
		for name, says := range map[string]string{
			"a-look": "it could not be looked at: ask: away", "b-count": "it is not known what waits: ask: away", "c-set": "1 job waits and there are no runners, and ECS was not told: ask: away",
		} {
			row, err := w.store.Service(t.Context(), name)
			if err != nil || !strings.HasPrefix(row.Reason, says) || row.CheckedAt.IsZero() || row.Wanted != 0 {
				t.Errorf("%s: %+v, %v", name, row, err)
			}
			w.want(name, 0, "while it fails")
			if _, err := w.fleet.NudgeService(t.Context(), name); !errors.Is(err, lifecycle.ErrUnavailable) {
				t.Errorf("nudge of %s: got error %v, want unavailable", name, err)
			}
		}
		clear(w.containers.lookErr)
		clear(w.containers.countErr)
		clear(w.containers.setErr)
		w.sweep()
		for _, name := range []string{"a-look", "b-count", "c-set"} {
			w.want(name, 1, "once it is there again")
		}
	}, "a-look", "b-count", "c-set", "d-good")
}

func TestServicesThatAreNotThere(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		if _, err := w.fleet.NudgeService(t.Context(), "unknown"); !errors.Is(err, lifecycle.ErrNotFound) {
			t.Errorf("unknown: got error %v", err)
		}
		w.fleet = w.newFleet("b", func(o *fleet.Options) {
			o.Services = &services.Options{Store: w.store, Services: map[string]services.Service{"queue": {Name: "queue"}}}
		})
		if _, err := w.fleet.NudgeService(t.Context(), "queue"); !errors.Is(err, lifecycle.ErrRefused) {
			t.Errorf("not scaled: got error %v", err)
		}
		w.sweep()
		page, err := w.fleet.Services(t.Context(), lifecycle.PageOf{})
		if err != nil || len(page.Items) != 1 || page.Items[0].Seen.Reason != "it is not scaled here: the configuration names no cluster" {
			t.Errorf("list: %+v, %v", page, err)
		}
		none := w.newFleet("c")
		if page, err := none.Services(t.Context(), lifecycle.PageOf{}); err != nil || len(page.Items) != 0 {
			t.Errorf("without services: %+v, %v", page, err)
		}
		_, err = fleet.New(fleet.Options{
			Store: w.store, Queue: w.queue, Compute: w.compute, GitHub: w.github, Replica: "d", Pools: map[string]fleet.Pool{"default": {}},
			Services: &services.Options{Store: w.store, Services: map[string]services.Service{"x": {Name: "x", Cluster: "c"}}},
		})
		if err == nil {
			t.Error("a scaled service without its parts was taken")
		}
	}, "jobs")
}

func TestListServicesByPage(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		w.containers.jobs("b", 1, 0)
		w.sweep()
		var names []string
		of := lifecycle.PageOf{Limit: 2}
		for {
			page, err := w.fleet.Services(t.Context(), of)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range page.Items {
				names = append(names, fmt.Sprintf("%s in %s wants %d", s.Name, s.Cluster, s.Seen.Wanted))
			}
			if of.After = page.Next; of.After == "" {
				break
			}
		}
		if diff := cmp.Diff([]string{"a in runners wants 0", "b in runners wants 1", "c in runners wants 0"}, names); diff != "" {
			t.Error(diff)
		}
		if _, err := w.fleet.Services(t.Context(), lifecycle.PageOf{After: "x"}); !errors.Is(err, lifecycle.ErrPageToken) {
			t.Errorf("foreign token: got error %v", err)
		}
	}, "a", "b", "c")
}

// A dry refresh tells what would be done, and does and writes nothing.
func TestADryRefreshScalesNothing(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		w.containers.jobs("jobs", 1, 0)
		before := w.store.Dump()
		for _, dry := range []bool{true, false} {
			r := w.fleet.NewRefresh(dry)
			if err := w.fleet.Drive(t.Context(), r, patience); err != nil {
				t.Fatal(err)
			}
			want := []fleet.Decided{{Action: lifecycle.ActionScale, Code: lifecycle.ReasonJobsWaiting, Reason: "service jobs goes from 0 to 1: 1 job waits and there are no runners", Sweep: "services"}}
			if diff := cmp.Diff(want, r.Decisions()); diff != "" {
				t.Errorf("dry run %t (-want +got):\n%s", dry, diff)
			}
			if dry && w.store.Dump() != before {
				t.Errorf("a dry run wrote:\n%s", w.store.Dump())
			}
			w.want("jobs", map[bool]int{true: 0, false: 1}[dry], fmt.Sprintf("after a refresh, dry %t", dry))
		}
	}, "jobs")
}

// serve lets a replica sweep and look for a while.
func (w *serviceWorld) serve(do func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	go w.fleet.Sweep(ctx)
	go w.fleet.ServeServices(ctx)
	do()
	cancel()
	time.Sleep(time.Minute) // for a queue that hangs
}

func TestServeServicesSweepsAndHearsNudges(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		w.serve(func() {
			time.Sleep(30 * time.Second) // it has swept once
			w.containers.jobs("jobs", 1, 0)
			w.fleet.NudgeSoon("jobs")
			w.fleet.NudgeSoon("unknown")
			synctest.Wait()
			w.want("jobs", 1, "nudged")
			w.containers.jobs("jobs", 0, 0)
			time.Sleep(4 * time.Minute)
			w.want("jobs", 1, "after four minutes")
			time.Sleep(3 * time.Minute)
			w.want("jobs", 0, "after seven")
			w.containers.jobs("jobs", 1, 0)
			time.Sleep(70 * time.Second)
			w.want("jobs", 1, "whose nudge was lost")
		})
	}, "jobs")
}

// A source that nudges for each of a thousand jobs costs a look a second, and a count
// that lags behind the nudge is found out.
func TestNudgesAreFewLooks(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		w.containers.desired["jobs"] = 1
		w.containers.jobs("jobs", 1, 1)
		w.serve(func() {
			time.Sleep(30 * time.Second)
			before := w.containers.called()["describe"]
			for range 1000 {
				w.fleet.NudgeSoon("jobs")
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(5 * time.Second)
			if n := w.containers.called()["describe"] - before; n < 10 || n > 12 {
				t.Errorf("%d looks for nudges of ten seconds", n)
			}
		})
	}, "jobs")
	inServices(t, func(t *testing.T, w *serviceWorld) {
		w.serve(func() {
			time.Sleep(30 * time.Second)
			w.fleet.NudgeSoon("jobs")
			synctest.Wait()
			w.containers.jobs("jobs", 1, 0) // the index has it now
			time.Sleep(3 * time.Second)
			synctest.Wait()
			w.want("jobs", 1, "three seconds after the nudge")
		})
	}, "jobs")
}

// A job that came while its service went to zero, and nudged before it had, is
// found a little later.
func TestAServiceIsLookedAtOnceItWentToZero(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		w.containers.desired["jobs"] = 1
		w.containers.setting = func(string) {
			if w.containers.has("jobs") == 1 {
				w.containers.jobs("jobs", 1, 0)
			}
		}
		w.serve(func() {
			for w.containers.has("jobs") == 1 {
				time.Sleep(time.Second)
			}
			time.Sleep(4 * time.Second)
			w.want("jobs", 1, "four seconds later")
		})
	}, "jobs")
}

// A queued job of a webhook has the service looked at whose runners serve it.
func TestAWebhookNudges(t *testing.T) {
	for _, tt := range []struct {
		name, status string
		labels       []string
		looks        int
	}{
		{"queued", "queued", []string{"self-hosted", "Containers"}, 1},
		{"queued for others", "queued", []string{"self-hosted", "containers", "gpu"}, 0},
		{"over", "completed", []string{"self-hosted", "containers"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inServices(t, func(t *testing.T, w *serviceWorld) {
				w.fleet = w.newFleet("b", w.options("jobs"), func(o *fleet.Options) {
					s := o.Services.Services["jobs"]
					s.Labels = []string{"containers"}
					o.Services.Services["jobs"] = s
					o.Jobs = &fleet.JobOptions{Store: w.store, GitHub: struct{ fleet.GitHubJobs }{}, Parse: webhook.Parse}
				})
				w.containers.jobs("jobs", 1, 0)
				ctx, cancel := context.WithCancel(t.Context())
				go w.fleet.ServeServices(ctx) // without the lease: only nudges count
				err := w.fleet.TakeWebhook(ctx, lifecycle.Webhook{DeliveryID: "1", RepositoryID: 1, Job: &lifecycle.WorkflowJob{
					ID: 1, Repository: repository, RunID: "1", Status: tt.status, Labels: tt.labels,
				}}, time.Now())
				if !errors.Is(err, fleet.ErrNotOurs) {
					t.Errorf("got error %v, want that no host of ours serves it", err)
				}
				time.Sleep(time.Second)
				if n := w.containers.called()["count"]; n != tt.looks {
					t.Errorf("%d looks, want %d", n, tt.looks)
				}
				cancel()
				synctest.Wait()
			}, "jobs")
		})
	}
}

// A queue that hangs holds up neither the nudges of others nor their sweep for
// longer than its own deadline.
func TestAQueueThatHangsIsAloneInIt(t *testing.T) {
	inServices(t, func(t *testing.T, w *serviceWorld) {
		w.containers.jobs("good", 1, 0)
		w.containers.counting = func(name string) {
			if name == "hangs" {
				time.Sleep(20 * time.Second)
			}
		}
		w.serve(func() {
			time.Sleep(time.Second)
			w.fleet.NudgeSoon("hangs")
			w.fleet.NudgeSoon("good")
			synctest.Wait()
			w.want("good", 1, "nudged beside one that hangs")
			before := w.containers.called()["describe"]
			for range 15 {
				time.Sleep(time.Second)
				w.fleet.NudgeSoon("hangs")
			}
			if n := w.containers.called()["describe"] - before; n > 5 {
				t.Errorf("%d looks at one that hangs, within 15 s, where each takes three", n)
			}
			time.Sleep(time.Minute)
		})
	}, "good", "hangs")
}

// Two replicas, jobs that come and go, crashes and outages: no busy runner is
// ended (the double panics), and in the end the service is as it must be.
func TestServicesInAnyWeather(t *testing.T) {
	for seed := range uint64(40) {
		inServices(t, func(t *testing.T, w *serviceWorld) {
			random := rand.New(rand.NewPCG(seed, 1))
			replicas := []*fleet.Fleet{w.fleet, w.newFleet("b", w.options("jobs"))}
			ops := make([]fleet.Op, len(replicas))
			for range 400 {
				i := random.IntN(len(ops))
				switch random.IntN(12) {
				case 0:
					w.containers.jobs("jobs", random.IntN(3)*random.IntN(20), 0)
				case 1:
					w.containers.jobs("jobs", 0, min(random.IntN(3), w.containers.has("jobs")))
				case 2:
					w.containers.countErr["jobs"] = []error{nil, errors.New("away")}[random.IntN(2)]
				case 3:
					w.containers.setErr["jobs"] = []error{nil, errors.New("away")}[random.IntN(2)]
				case 4:
					ops[i] = nil // dies
				case 5, 6:
					time.Sleep(time.Duration(random.IntN(70)) * time.Second)
				default:
					if ops[i] == nil {
						ops[i] = replicas[i].NewServiceSweep()
					}
					p, err := ops[i].Step(t.Context(), time.Now())
					if err != nil {
						t.Fatal(err)
					}
					if p.Done {
						ops[i] = nil
					}
				}
				if n := w.containers.has("jobs"); n < 0 || n > 4 {
					t.Fatalf("seed %d: %d runners", seed, n)
				}
			}
			clear(w.containers.countErr)
			clear(w.containers.setErr)
			w.containers.jobs("jobs", 1, 0)
			w.sweep()
			if w.containers.has("jobs") == 0 {
				t.Errorf("seed %d: a job waits without a runner", seed)
			}
			w.containers.jobs("jobs", 0, 0)
			for range 5 {
				w.sweep()
			}
			w.want("jobs", 0, fmt.Sprintf("seed %d: at rest", seed))
		}, "jobs")
	}
}
