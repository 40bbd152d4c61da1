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
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

const jobPool = "jobs"

// jobWorld is a world with a job pool, whose webhooks come to its first replica.
func jobWorld(t *testing.T, maximum int, change ...func(*fleet.JobOptions)) *world {
	t.Helper()
	var h *hub
	w := newWorld(t, func(o *fleet.Options) {
		o.Log = hclog.New(&hclog.LoggerOptions{Output: t.Output()})
		h = newHub(o.GitHub.(*fakeGitHub))
		h.github.deleting = h.deleted
		withJobs(o, h, maximum, change...)
	})
	w.hub = h
	h.hear = func(ctx context.Context, webhook lifecycle.Webhook) error {
		return w.fleet.TakeWebhook(ctx, webhook, time.Now())
	}
	return w
}

func withJobs(o *fleet.Options, h *hub, maximum int, change ...func(*fleet.JobOptions)) {
	o.Pools[jobPool] = pool(lifecycle.ReuseSameRepository)
	o.Repositories = []string{repository}
	o.Jobs = &fleet.JobOptions{
		Store: o.Store.(fleet.JobStore), GitHub: h, Parse: h.parse,
		Pools: map[string]fleet.JobPool{jobPool: {
			JobPool:      policy.JobPool{Maximum: maximum, UnclaimedTimeout: 2 * time.Minute},
			Labels:       []string{"remuda-small"},
			Repositories: []string{"acme/*"},
		}},
	}
	for _, c := range change {
		c(o.Jobs)
	}
}

// live lets the world live until do is done. Each fleet serves jobs and sweeps.
func (w *world) live(t *testing.T, do func(context.Context), others ...*fleet.Fleet) {
	ctx, cancel := context.WithCancel(t.Context())
	defer synctest.Wait()
	defer cancel()
	go w.agents(ctx)
	go w.hub.live(ctx)
	for _, f := range append(others, w.fleet) {
		go f.ServeJobs(ctx)
		go f.Sweep(ctx)
	}
	synctest.Wait()
	do(ctx)
}

// until waits for something, at most so long.
func (w *world) until(what string, most time.Duration, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if ok() {
			return
		}
	}
	w.t.Fatalf("not within %s: %s; turns %+v", most, what, w.turns())
}

func (w *world) turns() slots.Table {
	turns, err := w.store.SlotTable(context.Background(), jobPool)
	if err != nil {
		w.t.Helper()
		w.t.Fatal(err)
	}
	return turns
}

// atRest reports whether the accounts of the pool are empty and nothing serves.
func (w *world) atRest() bool {
	return len(w.turns().Open) == 0 &&
		len(w.records(lifecycle.StateCreated, lifecycle.StateClaimed, lifecycle.StateRunning)) == 0
}

func (w *world) ran(ids ...int64) func() bool {
	return func() bool {
		w.hub.mu.Lock()
		defer w.hub.mu.Unlock()
		return !slices.ContainsFunc(ids, func(id int64) bool { return !slices.Contains(w.hub.given, id) })
	}
}

func (w *world) allOver() bool { return w.hub.open() == 0 }

func poolJob(id int64, queuedAt time.Time) lifecycle.WorkflowJob {
	return lifecycle.WorkflowJob{ID: id, RunID: "1", Name: "build", Labels: []string{"remuda-small"}, QueuedAt: queuedAt}
}

func TestJobsOfAPoolAllRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 4)
		w.live(t, func(ctx context.Context) {
			most := 0
			for id := range int64(40) {
				w.hub.queue(ctx, poolJob(id+1, time.Now()), 3*time.Second)
			}
			w.until("all jobs over", 10*time.Minute, func() bool {
				most = max(most, w.machines())
				return w.allOver()
			})
			w.until("the pool at rest", time.Minute, w.atRest)
			if most != 4 {
				t.Errorf("%d machines at most, want 4", most)
			}
			if n := w.hub.calls("JIT"); n != 40 {
				t.Errorf("%d registrations for 40 jobs", n)
			}
			if names := w.github.names(); len(names) > 0 {
				t.Errorf("registrations are left: %v", names)
			}
			if !slices.IsSorted(w.hub.given) {
				t.Errorf("jobs ran in the order %v", w.hub.given)
			}
		})
	})
}

// Who waits longer comes first, also when its webhook is late.
func TestALateJobTakesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		w.live(t, func(ctx context.Context) {
			begun := time.Now()
			w.hub.queue(ctx, poolJob(5, begun), time.Minute)
			w.until("the first job runs", time.Minute, w.ran(5))
			var late lifecycle.Webhook
			hear := w.hub.hearBy(func(ctx context.Context, webhook lifecycle.Webhook) error {
				if webhook.Job.ID != 7 {
					return w.fleet.TakeWebhook(ctx, webhook, time.Now())
				}
				late = webhook
				return nil
			})
			w.hub.queue(ctx, poolJob(7, begun.Add(time.Second)), time.Second)
			w.hub.hearBy(hear)
			w.hub.queue(ctx, poolJob(9, begun.Add(2*time.Second)), time.Second)
			w.hub.queue(ctx, poolJob(8, begun.Add(2*time.Second)), time.Second)
			_ = hear(ctx, late)
			synctest.Wait()
			page, err := w.store.WaitingJobs(ctx, jobPool, lifecycle.PageOf{})
			if err != nil {
				t.Fatal(err)
			}
			var order []int64
			for _, j := range page.Items {
				order = append(order, j.ID)
			}
			if diff := cmp.Diff([]int64{7, 8, 9}, order); diff != "" {
				t.Errorf("order of service (-want +got):\n%s", diff)
			}
			w.until("all jobs over", 5*time.Minute, w.allOver)
			if diff := cmp.Diff([]int64{5, 7, 8, 9}, w.hub.given); diff != "" {
				t.Errorf("order of jobs (-want +got):\n%s", diff)
			}
		})
	})
}

// A host whose job another runner took serves the next one, or goes back.
func TestAStolenJobLeavesNoHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 2)
		w.live(t, func(ctx context.Context) {
			stolen := func(id int64) {
				w.set(func() { w.mute = true }) // no host gets ready for now
				w.hub.queue(ctx, poolJob(id, time.Now()), time.Second)
				w.until("a turn", time.Minute, func() bool { return len(w.turns().Open) == 1 })
				w.hub.steal(ctx, id)
				w.set(func() { w.mute = false })
				w.until("a host without a job", time.Minute, func() bool { return len(w.records(lifecycle.StateRunning)) == 1 })
			}
			stolen(1)
			w.hub.queue(ctx, poolJob(2, time.Now()), time.Second)
			w.until("the next job ran on it", time.Minute, w.ran(2))
			if n := w.turns().Assigned; n != 1 {
				t.Errorf("%d turns were given, want 1", n)
			}
			w.until("the pool at rest", time.Minute, w.atRest)
			stolen(3)
			w.until("the host went back", 10*time.Minute, w.atRest)
			if names := w.github.names(); len(names) > 0 {
				t.Errorf("registrations are left: %v", names)
			}
		})
	})
}

// What GitHub could not tell is found out: queued jobs by the deliveries that
// failed, the ends of jobs by the hosts themselves.
func TestLostWebhooksLoseNoJob(t *testing.T) {
	racepass.CoveredBy(t, "TestJobsOfAPoolAllRun")
	for name, lost := range map[string]func(lifecycle.Webhook) bool{
		"all":         func(lifecycle.Webhook) bool { return true },
		"queued":      func(w lifecycle.Webhook) bool { return w.Action == lifecycle.StatusQueued },
		"in_progress": func(w lifecycle.Webhook) bool { return w.Action == lifecycle.StatusInProgress },
		"completed":   func(w lifecycle.Webhook) bool { return w.Action == lifecycle.StatusCompleted },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := jobWorld(t, 3)
				w.hub.lose = lost
				w.live(t, func(ctx context.Context) {
					for id := range int64(9) {
						w.hub.queue(ctx, poolJob(id+1, time.Now()), 3*time.Second)
					}
					w.until("all jobs over", time.Hour, w.allOver)
					w.until("the pool at rest", time.Hour, w.atRest)
				})
			})
		})
	}
}

func TestRepeatedWebhooksDoNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 3)
		hear := w.hub.hear
		w.hub.hear = func(ctx context.Context, webhook lifecycle.Webhook) error {
			err := hear(ctx, webhook)
			for range 2 {
				if again := hear(ctx, webhook); !isExists(again) && !isNotOurs(again) {
					t.Errorf("a repeat of %s: got %v", webhook.DeliveryID, again)
				}
			}
			webhook.DeliveryID += "-again" // as a replay would have it: the id is not signed
			_ = hear(ctx, webhook)
			return err
		}
		w.live(t, func(ctx context.Context) {
			for id := range int64(6) {
				w.hub.queue(ctx, poolJob(id+1, time.Now()), 3*time.Second)
			}
			w.until("all jobs over", 10*time.Minute, w.allOver)
			w.until("the pool at rest", time.Minute, w.atRest)
			if n := w.hub.calls("JIT"); n != 6 {
				t.Errorf("%d registrations for 6 jobs", n)
			}
		})
	})
}

// Cancelled jobs leave no host behind, whether they waited or ran.
func TestCancelledJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 2)
		w.live(t, func(ctx context.Context) {
			for id := range int64(4) {
				w.hub.queue(ctx, poolJob(id+1, time.Now()), time.Hour)
			}
			w.until("two jobs run", time.Minute, w.ran(1, 2))
			for id := range int64(4) {
				w.hub.cancel(ctx, id+1)
			}
			w.until("the pool at rest", 5*time.Minute, w.atRest)
		})
	})
}

func TestWhoMayUseAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 2)
		w.live(t, func(ctx context.Context) {
			stranger := poolJob(1, time.Now())
			stranger.Repository = "other/app"
			w.hub.queue(ctx, stranger, time.Second)
			fork := poolJob(2, time.Now())
			fork.RunID = "2"
			w.hub.runs["2"] = lifecycle.WorkflowRun{RunID: "2", Repository: repository, RepositoryID: repositoryID, HeadRepositoryID: 99}
			w.hub.queue(ctx, fork, time.Second)
			time.Sleep(time.Minute)
			if turns := w.turns(); turns.Assigned != 0 {
				t.Errorf("turns were given: %+v", turns)
			}
			if _, err := w.store.Webhook(ctx, "delivery-1"); !errors.Is(err, lifecycle.ErrNotFound) {
				t.Errorf("the stranger's webhook was kept: %v", err)
			}
			hook, err := w.store.Webhook(ctx, "delivery-2")
			if err != nil || !strings.HasPrefix(hook.Reason, "refused:") {
				t.Errorf("the fork's webhook: %v, %q", err, hook.Reason)
			}
		})
	})
}

// The records of hosts say whether their job may be of a fork, after a launch and after a claim.
func TestHostsThatTakeJobsOfForks(t *testing.T) {
	racepass.CoveredBy(t, "TestJobsOfAPoolAllRun")
	for _, forks := range []bool{false, true} {
		t.Run(fmt.Sprint(forks), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := jobWorld(t, 1, func(o *fleet.JobOptions) {
					p := o.Pools[jobPool]
					p.Forks = forks
					o.Pools[jobPool] = p
				})
				w.live(t, func(ctx context.Context) {
					for id := range int64(2) {
						w.hub.queue(ctx, poolJob(id+1, time.Now()), 10*time.Second)
						w.until("the job runs", time.Minute, w.ran(id+1))
						w.until("its host is known to run", time.Minute, func() bool { return len(w.records(lifecycle.StateRunning)) == 1 })
						hosts := w.records(lifecycle.StateRunning)
						if hosts[0].Forks != forks || hosts[0].Assignment != 1+2*id {
							t.Errorf("job %d: forks are let in, by the record: %+v", id+1, hosts)
						}
						w.until("the pool at rest", time.Minute, w.atRest)
						if hosts := w.records(lifecycle.StateIdle); len(hosts) != 1 || hosts[0].Forks {
							t.Errorf("in the pool: %+v", hosts)
						}
					}
				})
			})
		})
	}
}

func TestTheMinimumWaitsForJobs(t *testing.T) {
	racepass.CoveredBy(t, "TestJobsOfAPoolAllRun")
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 3, func(o *fleet.JobOptions) {
			p := o.Pools[jobPool]
			p.Minimum, p.Repository, p.Scope = 2, repository, repository
			o.Pools[jobPool] = p
		})
		w.live(t, func(ctx context.Context) {
			ready := func() bool { return len(w.records(lifecycle.StateRunning)) == 2 }
			w.until("two hosts wait", time.Minute, ready)
			time.Sleep(20 * time.Minute)
			if !ready() || w.turns().Assigned != 2 {
				t.Errorf("the minimum did not stay: %+v", w.turns())
			}
			began := time.Now()
			w.hub.queue(ctx, poolJob(1, began), time.Second)
			w.until("the job runs", time.Minute, w.ran(1))
			if took := time.Since(began); took > time.Second {
				t.Errorf("a job waited %s for a host that stood ready", took)
			}
			w.until("two hosts wait again", 2*time.Minute, func() bool { return w.allOver() && ready() })
		})
	})
}

// Two replicas hear half of the webhooks each, and both give turns.
func TestReplicasNeverGiveTooManyTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 3)
		other := w.newFleet("b", func(o *fleet.Options) { withJobs(o, w.hub, 3) })
		n := 0
		w.hub.hear = func(ctx context.Context, webhook lifecycle.Webhook) error {
			if n++; n%2 == 0 {
				return other.TakeWebhook(ctx, webhook, time.Now())
			}
			return w.fleet.TakeWebhook(ctx, webhook, time.Now())
		}
		w.live(t, func(ctx context.Context) {
			for id := range int64(30) {
				w.hub.queue(ctx, poolJob(id+1, time.Now()), 2*time.Second)
			}
			w.until("all jobs over", 10*time.Minute, func() bool {
				if open := len(w.turns().Open); open > 3 {
					t.Errorf("%d turns at once, want at most 3", open)
				}
				return w.allOver()
			})
			w.until("the pool at rest", 2*time.Minute, w.atRest)
		}, other)
	})
}

// For more than ten minutes GitHub does not answer: no host is ended for it, and then the
// work goes on by itself.
func TestGitHubIsDownForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 3)
		w.live(t, func(ctx context.Context) {
			for id := range int64(3) {
				w.hub.queue(ctx, poolJob(id+1, time.Now()), 2*time.Second)
			}
			w.until("hosts in the pool", 5*time.Minute, func() bool { return len(w.records(lifecycle.StateIdle)) == 3 && w.atRest() })
			w.hub.queue(ctx, poolJob(10, time.Now()), 20*time.Minute)
			w.until("a job runs", time.Minute, w.ran(10))
			w.setDown(true)
			w.hub.queue(ctx, poolJob(11, time.Now()), 2*time.Second)
			w.hub.queue(ctx, poolJob(12, time.Now()), 2*time.Second)
			time.Sleep(11 * time.Minute)
			for _, r := range w.records(lifecycle.StateTerminated) {
				t.Errorf("ended while GitHub was away: %s", r.Reason)
			}
			if n := len(w.records(lifecycle.StateIdle)); n != 2 {
				t.Errorf("%d idle hosts are left, want 2", n)
			}
			machines := w.machines()
			w.setDown(false)
			w.until("the waiting jobs ran", 2*time.Minute, w.ran(11, 12))
			if n := w.machines(); n != machines {
				t.Errorf("%d machines afterwards, want the %d that there were", n, machines)
			}
		})
	})
}

func (w *world) setDown(down bool) {
	w.github.mu.Lock()
	defer w.github.mu.Unlock()
	w.github.down = down
}

// A webhook that was acknowledged is in the store, though no worker serves it,
// and a sweep goes on with it.
func TestAcknowledgedIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 2)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		go w.hub.live(ctx)
		for id := range int64(4) {
			w.hub.queue(ctx, poolJob(id+1, time.Now()), time.Second)
		}
		go w.fleet.Sweep(ctx) // and no worker serves jobs
		w.until("all jobs over", 30*time.Minute, w.allOver)
		w.until("the pool at rest", 10*time.Minute, w.atRest)
	})
}

// What GitHub refuses for one repository, such as one that is gone, keeps no
// other waiting.
func TestARefusedRepositoryHoldsUpNoOther(t *testing.T) {
	racepass.CoveredBy(t, "TestJobsOfAPoolAllRun")
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		w.hub.refuses = "acme/gone"
		w.live(t, func(ctx context.Context) {
			begun := time.Now()
			for id := range int64(5) {
				j := poolJob(id+1, begun.Add(-time.Hour))
				j.Repository = "acme/gone"
				w.hub.queue(ctx, j, time.Second)
			}
			w.hub.queue(ctx, poolJob(100, begun), time.Second)
			w.until("the other's job ran", 2*time.Minute, w.ran(100))
			time.Sleep(8 * time.Minute) // tried again after 1, 3 and 7 of them
			if n := w.hub.calls("refused"); n < 5*3 || n > 5*5 {
				t.Errorf("%d registrations were tried for 5 jobs in 8 minutes", n)
			}
		})
	})
}

// A job that is over before its begin is noted says nothing against the
// job for which its host's slot was given: that one is not passed over.
func TestShortJobsPassNobodyOver(t *testing.T) {
	racepass.CoveredBy(t, "TestJobsOfAPoolAllRun")
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 3)
		w.hub.lose = func(w lifecycle.Webhook) bool { return w.Action == lifecycle.StatusInProgress }
		w.live(t, func(ctx context.Context) {
			began := time.Now()
			for id := range int64(60) {
				w.hub.queue(ctx, poolJob(id+1, began), 0)
			}
			w.until("all jobs over", 5*time.Minute, w.allOver)
			if took := time.Since(began); took > time.Minute {
				t.Errorf("60 jobs of no time took 3 hosts %s", took)
			}
		})
	})
}

// An hour after the last news of a job GitHub is asked about it, whether it waits or runs. Nothing is asked about one that is over.
func TestWhenAJobIsAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		w.live(t, func(ctx context.Context) {
			askedAfter := func(news time.Time) {
				t.Helper()
				j, err := w.store.Job(ctx, 2)
				if late := j.DueAt.Sub(news.Add(time.Hour)).Abs(); err != nil || late > 2*time.Second {
					t.Errorf("the %s job is asked about at %s, %s after its news, error %v", j.State, j.DueAt, j.DueAt.Sub(news), err)
				}
			}
			w.hub.queue(ctx, poolJob(1, time.Now()), 30*time.Minute)
			w.until("the first job runs", time.Minute, w.ran(1))
			queued := time.Now()
			w.hub.queue(ctx, poolJob(2, queued), time.Minute)
			synctest.Wait()
			askedAfter(queued)
			w.until("the second job runs", time.Hour, w.ran(2))
			time.Sleep(time.Second)
			askedAfter(time.Now())
			w.until("all jobs over", 5*time.Minute, w.allOver)
			time.Sleep(time.Second)
			if j, err := w.store.Job(ctx, 2); err != nil || j.State != lifecycle.JobDone || !j.DueAt.IsZero() {
				t.Errorf("the %s job is asked about at %s, error %v", j.State, j.DueAt, err)
			}
		})
	})
}

// Whether a run is a fork's is asked once, and what is remembered of that is bounded.
func TestForksAreAskedAboutOnce(t *testing.T) {
	const remembered = 4096
	w := jobWorld(t, 1)
	for n := range remembered + 1 {
		w.hub.runs[fmt.Sprint(n)] = lifecycle.WorkflowRun{RepositoryID: repositoryID, HeadRepositoryID: int64(repositoryID + n%2)}
	}
	ask := func(n, calls int) {
		t.Helper()
		fork, err := w.fleet.Fork(t.Context(), repository, fmt.Sprint(n))
		if want := []policy.Fork{policy.ForkNo, policy.ForkYes}[n%2]; err != nil || fork != want {
			t.Errorf("run %d: %v, error %v, want %v", n, fork, err, want)
		}
		if got := w.hub.calls("WorkflowRun"); got != calls {
			t.Fatalf("%d questions after that about run %d, want %d", got, n, calls)
		}
	}
	for n := range remembered {
		ask(n, n+1)
	}
	ask(0, remembered)
	ask(remembered, remembered+1) // one too many, so that all others are forgotten
	ask(remembered, remembered+1)
	ask(0, remembered+2)
	w.hub.runs = nil
	if fork, err := w.fleet.Fork(t.Context(), repository, "unknown"); fork != policy.ForkUnknown || err != nil {
		t.Errorf("an unknown run: %v, error %v", fork, err)
	}
}
