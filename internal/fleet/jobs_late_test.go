package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// An agent reports that a job has begun before GitHub's webhook does. The job does not get a second host for that,
// whether the webhook is late, lost, or says that another job runs there.
func TestLateStartsOfJobs(t *testing.T) {
	racepass.CoveredBy(t, "TestJobsOfAPoolAllRun")
	for name, test := range map[string]struct {
		late     time.Duration // 0: the webhooks are lost
		queued   int           // jobs that are queued at once
		wait     time.Duration
		assigned int64
	}{
		"by a few seconds":        {10 * time.Second, 1, 2 * time.Minute, 1},
		"by a minute":             {time.Minute, 1, 2 * time.Minute, 1},
		"never":                   {0, 1, 2 * time.Minute, 1},
		"of three jobs":           {10 * time.Second, 3, 2 * time.Minute, 3},
		"of three jobs, a minute": {time.Minute, 3, 2 * time.Minute, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := jobWorld(t, 6)
				hear := w.hub.hear
				w.hub.hear = func(ctx context.Context, webhook lifecycle.Webhook) error {
					if webhook.Job == nil || webhook.Job.Status != lifecycle.StatusInProgress {
						return hear(ctx, webhook)
					}
					if test.late > 0 {
						time.AfterFunc(test.late, func() { _ = hear(ctx, webhook) })
					}
					return nil
				}
				w.live(t, func(ctx context.Context) {
					for id := range int64(test.queued) {
						w.hub.queue(ctx, poolJob(id+1, time.Now()), 3*time.Minute)
					}
					time.Sleep(test.wait)
					if turns := w.turns(); turns.Assigned != test.assigned {
						t.Errorf("%d slots for %d jobs: %+v", turns.Assigned, test.queued, turns)
					}
					w.until("all jobs over", 5*time.Minute, w.allOver)
					w.until("the pool at rest", 5*time.Minute, w.atRest)
				})
			})
		})
	}
}

// A host that another job took than the one that it was assigned for leaves that without a host, which it gets once
// GitHub has said that it still waits.
func TestAHostThatAnotherJobTook(t *testing.T) {
	racepass.CoveredBy(t, "TestJobsOfAPoolAllRun")
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 3)
		w.live(t, func(ctx context.Context) {
			other := poolJob(1, time.Now())
			other.RunID = "2" // of a fork, which gets no host of its own
			w.hub.runs["2"] = lifecycle.WorkflowRun{RunID: "2", Repository: repository, RepositoryID: repositoryID, HeadRepositoryID: 99}
			lost := w.hub.lose
			w.hub.lose = func(v lifecycle.Webhook) bool {
				return lost(v) || v.Job.ID == 1 && v.Job.Status == lifecycle.StatusInProgress
			}
			w.hub.queue(ctx, other, 5*time.Minute)
			time.Sleep(time.Second)
			began := time.Now()
			w.hub.queue(ctx, poolJob(2, began), time.Second)
			w.until("the other job ran", 2*time.Minute, w.ran(1, 2))
			if took := time.Since(began); took > time.Minute {
				t.Errorf("the job had no host for %s", took)
			}
			if n := w.turns().Assigned; n != 2 {
				t.Errorf("%d slots, want 2", n)
			}
		})
	})
}

// A registered minimum is renewed before GitHub removes it, one host after the other, and jobs find one ready.
func TestTheRegisteredMinimumIsRenewed(t *testing.T) {
	racepass.CoveredBy(t, "TestJobsOfAPoolAllRun")
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 3, func(o *fleet.JobOptions) {
			p := o.Pools[jobPool]
			p.Minimum, p.Repository, p.Scope, p.RenewAfter = 2, repository, repository, 90*time.Second
			o.Pools[jobPool] = p
		})
		w.live(t, func(ctx context.Context) {
			w.until("two hosts wait", time.Minute, func() bool { return len(w.records(lifecycle.StateRunning)) == 2 })
			began, since := time.Now(), map[string]time.Time{}
			oldest, without := time.Duration(0), 0
			for time.Since(began) < 20*time.Minute {
				time.Sleep(time.Second)
				w.hub.mu.Lock()
				for name := range w.hub.runners {
					if _, known := since[name]; !known {
						since[name] = time.Now()
					}
					oldest = max(oldest, time.Since(since[name]))
				}
				w.hub.mu.Unlock()
				if len(w.records(lifecycle.StateRunning)) == 0 {
					without++
				}
			}
			if oldest > 115*time.Second || without > 0 {
				t.Errorf("the oldest registration was %s old, and for %d s no host was ready", oldest, without)
			}
			if renewals := w.hub.calls("JIT") - 2; renewals < 2*20*60/115 || renewals > 2*20*60/90 {
				t.Errorf("%d renewals of 2 hosts in 20 minutes", renewals)
			}
			w.hub.queue(ctx, poolJob(1, time.Now()), time.Second)
			w.until("the job runs", time.Second, w.ran(1))
			if n := w.machines(); n > 3 {
				t.Errorf("%d machines", n)
			}
		})
	})
}

// A job that has begun without its webhook keeps one waiting job back, also while its host is not looked at again: the jobs
// that are queued after it get one host each.
func TestALateStartKeepsOneJobBack(t *testing.T) {
	racepass.CoveredBy(t, "TestJobsOfAPoolAllRun")
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 6)
		w.hub.lose = func(v lifecycle.Webhook) bool { return v.Action == lifecycle.StatusInProgress }
		w.live(t, func(ctx context.Context) {
			w.hub.queue(ctx, poolJob(1, time.Now()), 3*time.Minute)
			w.until("its host says that it has begun", time.Minute, func() bool {
				open := w.turns().Open
				return len(open) == 1 && open[0].Started && !open[0].UnannouncedAt.IsZero()
			})
			w.hub.queue(ctx, poolJob(2, time.Now()), 3*time.Minute)
			time.Sleep(5 * time.Second)
			if n := w.turns().Assigned; n != 2 {
				t.Errorf("%d slots for two jobs: %+v", n, w.turns())
			}
		})
	})
}

// A webhook that says that a job is queued, and comes after the job has started, names no runner. Its result names the one that the row has.
func TestAQueuedWebhookAfterTheStartOfItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1, func(o *fleet.JobOptions) {
			p := o.Pools[jobPool]
			p.Minimum, p.Repository, p.Scope = 1, repository, repository
			o.Pools[jobPool] = p
		})
		var late lifecycle.Webhook
		hear := w.hub.hear
		w.hub.hear = func(ctx context.Context, webhook lifecycle.Webhook) error {
			if webhook.Job.Status == lifecycle.StatusQueued {
				late = webhook
				return nil
			}
			return hear(ctx, webhook)
		}
		w.live(t, func(ctx context.Context) {
			w.hub.queue(ctx, poolJob(1, time.Now()), 10*time.Minute)
			w.until("the slot has its job", time.Minute, func() bool { return len(w.turns().Open) == 1 && w.turns().Open[0].Runs == 1 })
			if err := hear(ctx, late); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			webhook, err := w.store.Webhook(ctx, late.DeliveryID)
			if want := "job 1 runs on " + w.turns().Open[0].Runner; err != nil || webhook.Reason != want {
				t.Errorf("its result is %q, want %q, error %v", webhook.Reason, want, err)
			}
		})
	})
}

// Jobs that have begun without a webhook still count as waiting. As many jobs are read behind them as the pool has room for.
func TestJobsBehindThoseThatBeganUnannounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const begun, room = 10, 10
		w := jobWorld(t, begun+room)
		w.hub.lose = func(v lifecycle.Webhook) bool { return v.Action == lifecycle.StatusInProgress }
		w.live(t, func(ctx context.Context) {
			queue := func(from, to int64) (ids []int64) {
				for id := from; id < to; id++ {
					ids = append(ids, id)
					w.hub.queue(ctx, poolJob(id, time.Now()), 3*time.Minute)
				}
				return ids
			}
			w.until("the first jobs run", time.Minute, w.ran(queue(1, 1+begun)...))
			time.Sleep(time.Second)
			queue(1+begun, 1+begun+room)
			time.Sleep(time.Second) // sooner than GitHub is asked which jobs they run
			if n := w.turns().Assigned; n != begun+room {
				t.Errorf("%d slots for %d jobs", n, begun+room)
			}
		})
	})
}

// The end of a job may come before its host is known to be ready. Its webhook waits for that, and releases the host.
func TestTheEndOfAJobWaitsUntilItsHostIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		ready := false
		w.forge["*"] = func(p *lifecycle.Report) {
			if !ready {
				p.Signal = ""
			}
		}
		var last lifecycle.Webhook
		hear := w.hub.hear
		w.hub.hear = func(ctx context.Context, webhook lifecycle.Webhook) error {
			last = webhook
			return hear(ctx, webhook)
		}
		w.live(t, func(ctx context.Context) {
			w.hub.queue(ctx, poolJob(1, time.Now()), time.Second)
			w.until("the job is over", time.Minute, w.allOver)
			w.set(func() { ready = true })
			w.until("the pool at rest", time.Minute, w.atRest)
			webhook, err := w.store.Webhook(ctx, last.DeliveryID)
			if want := "job 1 is over on " + last.Job.RunnerName; err != nil || webhook.Action != lifecycle.StatusCompleted || webhook.Reason != want {
				t.Errorf("the result of %q is %q, want %q, error %v", webhook.Action, webhook.Reason, want, err)
			}
		})
	})
}
