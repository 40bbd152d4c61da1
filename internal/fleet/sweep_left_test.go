package fleet_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// ends are the ways in which a host that serves a run ends before its run is released.
var ends = map[string]func(context.Context, *world, lifecycle.Record){
	"its machine is gone": func(_ context.Context, w *world, h lifecycle.Record) {
		time.Sleep(6 * time.Minute) // EC2's word on a new machine is not sure
		w.set(func() { w.deaf[h.HostKey] = true })
		w.compute.Kill(h.InstanceID)
	},
	"EC2 interrupts it": func(_ context.Context, w *world, h lifecycle.Record) {
		w.set(func() {
			w.forge[h.HostKey] = func(p *lifecycle.Report) { p.InterruptionAt = time.Now().Add(2 * time.Minute) }
		})
	},
	"its maximum runtime is over": func(_ context.Context, _ *world, h lifecycle.Record) {
		time.Sleep(time.Until(h.Threshold))
	},
	"it is ordered": func(ctx context.Context, w *world, h lifecycle.Record) {
		if _, err := w.fleet.Terminate(ctx, h.InstanceID, "", time.Now()); err != nil {
			w.t.Fatal(err)
		}
	},
}

// A job was queued while the host of its run was there, so its webhook did nothing.
// However the host ends, the job gets another.
func TestAJobOutlivesTheHostOfItsRun(t *testing.T) {
	racepass.CoveredBy(t, "TestARunThatLosesManyHostsIsLookedAtOnce")
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
				h := w.mustProvision(ctx, demand("5", "q", 1))[0]
				w.noteWaiting(ctx, 77)
				end(ctx, w, h)
				w.until("the host has ended", 10*time.Minute, func() bool { return w.record(h.HostKey).State == lifecycle.StateTerminated })
				w.until("another serves the run", time.Minute, func() bool { return len(w.serving("5")) == 1 })
				w.until("nothing is left to be looked at", time.Minute, func() bool { return w.record(h.HostKey).LostBy == nil })
			})
		})
	}
}

// A job that got a host by the rule of its repository gets another, and another.
func TestAJobOutlivesTheHostsThatItsRuleGaveIt(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, _ *testing.T, w *world) {
		w.hub.queue(ctx, runJob(1, "5", 1), time.Hour)
		for range 3 {
			w.until("a host serves the run", time.Minute, func() bool {
				hosts := w.serving("5")
				return len(hosts) == 1 && hosts[0].State == lifecycle.StateRunning
			})
			ends["it is ordered"](ctx, w, w.serving("5")[0])
		}
	}, byWebhook(policy.Rule{MaxHosts: 3}))
}

// Nothing is done for a run that was released, nor where no job waits.
func TestNobodyLooksForARunThatIsOver(t *testing.T) {
	for name, before := range map[string]func(context.Context, *world){
		"no job waits": func(context.Context, *world) {},
		"its job is for other hosts": func(ctx context.Context, w *world) {
			w.noteWaiting(ctx, 77, "gpu")
		},
		"it was released": func(ctx context.Context, w *world) {
			w.noteWaiting(ctx, 77)
			w.release(ctx, "5", false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
				h := w.mustProvision(ctx, demand("5", "q", 1))[0]
				before(ctx, w)
				ends["it is ordered"](ctx, w, h)
				time.Sleep(time.Minute)
				if n := len(w.serving("5")); n != 0 {
					t.Errorf("run 5 has %d hosts, want none", n)
				}
				if n := w.hub.calls("WorkflowRun"); n != 0 {
					t.Errorf("GitHub was asked about the run %d times", n)
				}
			})
		})
	}
}

// countingJobs counts the lists of a run's jobs, and the webhooks that are noted.
type countingJobs struct {
	fleet.JobStore
	lists int
	noted []string
}

func (c *countingJobs) OpenJobsOfRun(ctx context.Context, repository, runID string) ([]lifecycle.Job, error) {
	c.lists++
	return c.JobStore.OpenJobsOfRun(ctx, repository, runID)
}

func (c *countingJobs) CreateWebhook(ctx context.Context, w lifecycle.Webhook) error {
	c.noted = append(c.noted, w.DeliveryID)
	return c.JobStore.CreateWebhook(ctx, w)
}

// Hosts of one run that end together have it looked at once, and its jobs once each.
// GitHub is asked about the run once for all, and once for each job that gets a host.
func TestARunThatLosesManyHostsIsLookedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts, jobs = 4, 6
		rule := byWebhook(policy.Rule{MaxHosts: hosts})
		w := jobWorld(t, 4, rule)
		w.live(t, func(ctx context.Context) {
			for id := range int64(jobs) {
				w.hub.queue(ctx, runJob(id+1, "5", 1), time.Hour)
			}
			w.until("all serve", time.Minute, func() bool { return len(w.records(lifecycle.StateRunning)) == hosts })
			asked := w.hub.calls("WorkflowRun")
			counted := &countingJobs{JobStore: w.store}
			sweeper := w.newFleet("second", func(o *fleet.Options) {
				withJobs(o, w.hub, 4, rule, func(o *fleet.JobOptions) { o.Store = counted })
			})
			for _, r := range w.serving("5") {
				ends["it is ordered"](ctx, w, r)
			}
			if err := sweeper.Drive(ctx, sweeper.NewDueSweep(), patience); err != nil {
				t.Fatal(err)
			}
			slices.Sort(counted.noted)
			if n := len(slices.Compact(counted.noted)); counted.lists != 1 || n != jobs || len(counted.noted) != jobs {
				t.Errorf("the jobs of the run were listed %d times, and looked at: %s", counted.lists, strings.Join(counted.noted, ", "))
			}
			if w.until("as many serve again", time.Minute, func() bool { return len(w.serving("5")) == hosts }); t.Failed() {
				return
			}
			if n := w.hub.calls("WorkflowRun") - asked; n > 1+hosts {
				t.Errorf("GitHub was asked about the run %d times, want %d at most", n, 1+hosts)
			}
		})
	})
}

// racedRequests counts the writes of requests, and those that lose a race.
type racedRequests struct {
	fleet.Store
	writes, lost int
}

func (s *racedRequests) UpdateRequest(ctx context.Context, q lifecycle.Request) (lifecycle.Request, error) {
	stored, err := s.Store.UpdateRequest(ctx, q)
	if s.writes++; errors.Is(err, lifecycle.ErrConflict) {
		s.lost++
	}
	return stored, err
}

// A request that loses several hosts at once gives back the room of all of them after one write. No write loses a race with the sweep's own.
func TestARequestThatLosesManyHostsIsWrittenOnce(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		counted := &racedRequests{Store: w.store}
		sweeper := w.newFleet("second", func(o *fleet.Options) {
			withJobs(o, w.hub, 4)
			o.Store, o.Limits = counted, policy.Limits{HostsPerOwner: 10}
		})
		for _, r := range w.mustProvision(ctx, demand("5", "q", 3)) {
			r = w.record(r.HostKey)
			next, err := lifecycle.Apply(r, lifecycle.Decision{Action: lifecycle.ActionTerminate, Reason: "a test", LosesRun: true}, time.Now(), lifecycle.DefaultPolicy())
			if err == nil {
				_, err = w.store.UpdateInstance(ctx, next)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := sweeper.Drive(ctx, sweeper.NewDueSweep(), patience); err != nil {
			t.Fatal(err)
		}
		if counted.writes == 0 || counted.lost > 0 {
			t.Errorf("%d of %d writes lost a race", counted.lost, counted.writes)
		}
	})
}
