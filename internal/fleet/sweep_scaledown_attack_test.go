package fleet_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// A job of a run is queued while the run's last idle host is being ended. At
// whatever step of the sweep its webhook is worked on, before GitHub gives the
// job to a runner: the run has a host for it.
func TestAJobThatIsQueuedDuringAScaleDownGetsAHost(t *testing.T) {
	every := racepass.Every(t, 5)
	for step, over := 0, false; !over; step += every {
		synctest.Test(t, func(t *testing.T) {
			w := jobWorld(t, 4)
			down := w.newFleet("down", func(o *fleet.Options) {
				withJobs(o, w.hub, 4)
				scalingDown(policy.ScaleDown{})(o)
			})
			w.live(t, func(ctx context.Context) {
				host := w.mustProvision(ctx, demand("5", "q", 1))[0]
				time.Sleep(7 * time.Minute) // its first job needs an approval, say
				sweep := down.NewScaleDownSweep()
				for at := 0; !over || at <= step; at++ {
					if at == step {
						w.hub.say(ctx, waitingJob(77))
						time.Sleep(2 * time.Second)
					}
					p, err := sweep.Step(ctx, time.Now())
					if err != nil {
						t.Fatal(err)
					}
					if p.Done {
						over = at < step
						break
					}
				}
				time.Sleep(3 * time.Minute)
				if len(w.serving("5")) == 0 && !over {
					t.Errorf("queued before step %d: the job waits for 3 min, and its run has no host; the first is %s: %s", step,
						w.record(host.HostKey).State, w.record(host.HostKey).Reason)
				}
			})
		})
		if t.Failed() || step > 50 {
			t.Fatalf("after %d steps", step)
		}
	}
}

func waitingJob(id int64) lifecycle.WorkflowJob {
	j := runJob(id, "5", 1)
	j.Repository, j.Status, j.QueuedAt = repository, lifecycle.StatusQueued, time.Now()
	return j
}

// A host with a job that could run on it is not idle for nothing.
func TestAHostIsKeptForAJobThatWaits(t *testing.T) {
	racepass.CoveredBy(t, "TestAHostOfAnOpenRequestIsKept")
	for name, test := range map[string]struct {
		labels []string
		stays  bool
	}{
		"of its class":                   {[]string{"5", "remuda-large"}, true},
		"of any":                         {[]string{"5"}, true},
		"of another class":               {[]string{"5", "remuda-small"}, false},
		"of a label that it has not":     {[]string{"5", "gpu"}, false},
		"and of one of these two labels": {[]string{"5", "remuda-large", "gpu"}, false},
		"of a default label":             {[]string{"self-hosted", "5", "remuda-large"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := jobWorld(t, 4)
				down := w.newFleet("down", func(o *fleet.Options) {
					withJobs(o, w.hub, 4)
					scalingDown(policy.ScaleDown{})(o)
				})
				w.live(t, func(ctx context.Context) {
					host := w.mustProvision(ctx, demand("5", "q", 1))[0]
					time.Sleep(7 * time.Minute)
					j := waitingJob(77)
					j.Labels = test.labels
					w.hub.say(ctx, j)
					time.Sleep(2 * time.Second)
					if err := down.Drive(ctx, down.NewScaleDownSweep(), patience); err != nil {
						t.Fatal(err)
					}
					if r := w.record(host.HostKey); (r.State == lifecycle.StateRunning) != test.stays {
						t.Errorf("it is %s: %s", r.State, r.Reason)
					}
				})
			})
		})
	}
}

// An idle host of a job pool stays as long as its pool has a minimum, and nothing says that scale-down may end it. Without a minimum it goes.
func TestTheMinimumOfAJobPoolIsKept(t *testing.T) {
	for name, minimum := range map[string]int{"a minimum": 1, "none": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set := func(minimum int) func(*fleet.JobOptions) {
					return func(o *fleet.JobOptions) {
						p := o.Pools[jobPool]
						p.Minimum, p.Repository, p.Scope, p.UnclaimedTimeout = minimum, repository, repository, time.Hour
						o.Pools[jobPool] = p
					}
				}
				w := jobWorld(t, 1, set(1))
				down := w.newFleet("down", func(o *fleet.Options) { withJobs(o, w.hub, 1, set(minimum)) }, scalingDown(policy.ScaleDown{}))
				w.live(t, func(ctx context.Context) {
					w.until("a host listens", 2*time.Minute, func() bool { return len(w.records(lifecycle.StateRunning)) == 1 })
					time.Sleep(10 * time.Minute)
					host := w.records(lifecycle.StateRunning)[0]
					e, err := down.ExplainHost(ctx, host.InstanceID, fleet.OfRun{}, time.Now())
					if said := strings.Join(e.Sentences, "\n"); err != nil || strings.Contains(said, "scale-down, every 5m0s, may end it") != (minimum == 0) {
						t.Errorf("%v: %s", err, said)
					}
					plan, err := down.ScaleDownPlan(ctx, time.Time{}, time.Now())
					if err != nil || len(plan.Decisions) != 1 || (plan.Decisions[0].Code == lifecycle.ReasonPoolMinimum) != (minimum > 0) {
						t.Errorf("%v: %+v", err, plan.Decisions)
					}
					if err := down.Drive(ctx, down.NewScaleDownSweep(), patience); err != nil {
						t.Fatal(err)
					}
					if r := w.record(host.HostKey); (r.State == lifecycle.StateRunning) != (minimum > 0) {
						t.Errorf("it is %s: %s", r.Condition(), r.Reason)
					}
				})
			})
		})
	}
}

// A host that starts within its time, longer than the boot time, and that its
// request waits for, is no orphan.
func TestAHostThatStartsWithinItsTimeIsNoOrphan(t *testing.T) {
	racepass.CoveredBy(t, "TestAHostOfAnOpenRequestIsKept")
	for name, earlier := range map[string]bool{"not marked before": false, "marked by an earlier sweep": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, scalingDown(policy.ScaleDown{}), func(o *fleet.Options) {
					p := o.Pools["default"]
					p.Policy.CreationTimeout = 20 * time.Minute
					o.Pools["default"] = p
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				w.set(func() { w.mute = true })
				d := demand("1", "a", 1)
				d.Spec.Timeout = 25 * time.Minute
				go w.provisionQuietly(ctx, d)
				w.waitFor(1)
				key := w.records()[0].HostKey
				s := &scaleDownScene{world: w}
				for age := time.Duration(0); age < 12*time.Minute; age += 15 * time.Second {
					beat := lifecycle.Report{HostKey: key, HeartbeatAt: time.Now(), Assignment: 1}
					if err := w.store.ForHost(key).PutReport(ctx, beat); err != nil {
						t.Fatal(err)
					}
					if age == 6*time.Minute || age == 11*time.Minute {
						if earlier {
							s.orphan(w.record(key))
						}
						s.sweepDown()
					}
					time.Sleep(15 * time.Second)
				}
				if r := w.record(key); r.State == lifecycle.StateTerminated || r.Orphan() != earlier {
					t.Errorf("after 11 of its 20 minutes it is %s, an orphan %t: %s", r.State, r.Orphan(), r.Reason)
				}
			})
		})
	}
}

// A notice of EC2 retires a host that waits for its confirmation as idle: that is
// no scale-down, and not its to take back.
func TestScaleDownTakesBackNoRetirementOfAnother(t *testing.T) {
	inScaleDown(t, policy.ScaleDown{IdleConfirmation: 20 * time.Minute}, 1, func(t *testing.T, s *scaleDownScene) {
		h := s.hosts[0]
		s.says(h, false)
		s.sweepDown() // marks it idle
		r := s.record(h.HostKey)
		if r.IdleDetectedAt.IsZero() {
			t.Fatal("not marked")
		}
		r.Retiring = true
		if _, err := s.store.UpdateInstance(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		for _, busy := range []bool{false, true} {
			time.Sleep(5 * time.Minute)
			s.says(h, busy)
			s.sweepDown()
			if r = s.record(h.HostKey); !r.Retiring || r.State != lifecycle.StateRunning {
				t.Errorf("busy %t: it is %s, retiring %t", busy, r.State, r.Retiring)
			}
		}
	})
}

func TestAHeldFleetIsNotMarked(t *testing.T) {
	inScaleDown(t, policy.ScaleDown{IdleConfirmation: 10 * time.Minute}, 2, func(t *testing.T, s *scaleDownScene) {
		s.github.deregister(s.hosts[0].RunnerName) // an orphan it would be
		s.hold(t.Context(), s.fleet, time.Hour)
		s.sweepDown()
		for _, h := range s.hosts {
			if r := s.record(h.HostKey); r.Orphan() || !r.IdleDetectedAt.IsZero() || r.Retiring {
				t.Errorf("%s is marked: orphan %t, idle %t, retiring %t", r.InstanceID, r.Orphan(), !r.IdleDetectedAt.IsZero(), r.Retiring)
			}
		}
		s.agree(2)
	})
}
