package fleet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/lifecycle/notice"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/policy"
)

// This file has what the record of a host says of how it came to its run, which its agent writes into the log of each job.

// held checks what kept the request of a host that serves a run.
func (w *world) held(run string, code lifecycle.ReasonCode, text string) lifecycle.Record {
	w.t.Helper()
	serving := w.serving(run)
	if len(serving) != 1 || serving[0].Arrival == nil {
		w.t.Fatalf("run %s: not one host with an arrival: %+v", run, serving)
	}
	if a := serving[0].Arrival; a.HeldBy != string(code) || !strings.Contains(a.Held, text) || (code == "") != (a.Held == "") {
		w.t.Errorf("run %s: kept by %q: %q, want %q: %q", run, a.HeldBy, a.Held, code, text)
	}
	return serving[0]
}

// beginProvision drives a Provision in the background, however long GitHub is away. It has some time to fail to get a host.
func (w *world) beginProvision(ctx context.Context, d fleet.Demand) <-chan error {
	w.t.Helper()
	d.Spec.Timeout = 20 * time.Minute
	p, err := w.fleet.NewProvision(d)
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- w.fleet.Drive(ctx, p, time.Hour) }()
	time.Sleep(30 * time.Second)
	select {
	case err := <-done:
		w.t.Fatalf("run %s did not wait: %v", d.RunID, err)
	default:
	}
	return done
}

// ends waits for a Provision.
func (w *world) ends(done <-chan error) {
	w.t.Helper()
	if err := <-done; err != nil {
		w.t.Fatal(err)
	}
}

// A run that never waited says so. One that waited says for what, though that is over once it has its host.
func TestWhatKeptARun(t *testing.T) {
	for name, c := range map[string]struct {
		options func(*fleet.Options)
		// before keeps run 2 from hosts, and after mends that.
		before, after func(ctx context.Context, w *world)
		code          lifecycle.ReasonCode
		text          string
	}{
		"a limit": {
			options: limited(policy.Limits{HostsPerRepository: 1}), after: func(ctx context.Context, w *world) { w.release(ctx, "1", true) },
			code: lifecycle.ReasonQuota, text: "limits.hosts_per_repository allows acme/app 1 host at once, and none is left: run 1 has 1",
		},
		"a pool's maximum": {
			options: atMost(1), after: func(ctx context.Context, w *world) { w.release(ctx, "1", true) },
			code: lifecycle.ReasonQuota, text: "pools.default.maximum allows default 1 host at once, and none is left: for run 1 1 were launched",
		},
		"no capacity": {
			before: func(_ context.Context, w *world) { w.compute.SetCapacity("*", 0) },
			after:  func(_ context.Context, w *world) { w.compute.SetCapacity("*", 9) },
			code:   lifecycle.ReasonShortage, text: "the last launch was short: ",
		},
		"no capacity, and a host is given back": {
			before: func(_ context.Context, w *world) { w.compute.SetCapacity("*", 0) },
			after:  func(ctx context.Context, w *world) { w.release(ctx, "1", true) },
			code:   lifecycle.ReasonShortage, text: "the last launch was short: ",
		},
		"a pause": {
			before: func(ctx context.Context, w *world) { w.pause(ctx, "default", true) },
			after:  func(ctx context.Context, w *world) { w.pause(ctx, "default", false) },
			code:   lifecycle.ReasonPoolPaused, text: "pool default is paused since 2000-01-01T00:00:",
		},
		"GitHub": {
			before: func(_ context.Context, w *world) { w.github.setDownFor(repository) },
			after:  func(_ context.Context, w *world) { w.github.setDownFor("") },
			code:   lifecycle.ReasonGitHubUnavailable, text: "GitHub does not answer, so no host can register",
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := c.options
			if options == nil {
				options = func(*fleet.Options) {}
			}
			inBubbleOf(t, options, func(ctx context.Context, t *testing.T, w *world) {
				go sweepOnceItWaits(ctx, w.fleet)
				w.mustProvision(ctx, demand("1", "a", 1))
				w.held("1", "", "")
				if c.before != nil {
					c.before(ctx, w)
				}
				asked := time.Now()
				done := w.beginProvision(ctx, demand("2", "a", 1))
				c.after(ctx, w)
				w.ends(done)
				r := w.held("2", c.code, c.text)
				if waited := r.Arrival.At.Sub(asked); waited < 30*time.Second || !r.Arrival.QueuedAt.IsZero() {
					t.Errorf("got %s after run 2 asked, for a job that was queued at %s", waited, r.Arrival.QueuedAt)
				}
			})
		})
	}
}

// Between the row of a launch and its reservation another request takes the last host of the pool: the launch is given up, and its run says what kept it.
func TestWhatKeptARunWhoseLaunchWasGivenUp(t *testing.T) {
	inBubbleOf(t, atMost(1), func(ctx context.Context, t *testing.T, w *world) {
		late, err := w.fleet.NewProvision(demand("2", "a", 1))
		if err != nil {
			t.Fatal(err)
		}
		written := func() bool {
			q, err := w.store.Request(ctx, repository, "2", "a")
			return err == nil && q.Launch != nil
		}
		for steps := 0; !written(); steps++ {
			if _, err := late.Step(ctx, time.Now()); err != nil || steps > 100 {
				t.Fatalf("its launch is not written: %v", err)
			}
		}
		w.mustProvision(ctx, demand("1", "a", 1))
		done := make(chan error, 1)
		go func() { done <- w.fleet.Drive(ctx, late, patience) }()
		w.until("the launch is given up", time.Minute, func() bool { return !written() })
		full := "pools.default.maximum allows default 1 host at once, and none is left: for run 1 1 were launched"
		if q := w.requestOf(ctx, "2"); !strings.HasPrefix(q.QuotaReason, full) || q.QuotaSince.IsZero() {
			t.Errorf("the row says %q since %s", q.QuotaReason, q.QuotaSince)
		}
		w.compute.SetCapacity("*", 9)
		host := w.serving("1")[0]
		w.release(ctx, "1", true)
		if _, err := w.fleet.Terminate(ctx, host.InstanceID, "", time.Now()); err != nil {
			t.Fatal(err)
		}
		go w.fleet.Sweep(ctx)
		w.ends(done)
		w.held("2", lifecycle.ReasonQuota, full)
		if q := w.requestOf(ctx, "2"); q.QuotaReason != "" || !q.QuotaSince.IsZero() {
			t.Errorf("its launch was made, and the row says %q since %s", q.QuotaReason, q.QuotaSince)
		}
	})
}

// What kept a request is in its row, so another replica that goes on with it says it too.
func TestAnotherReplicaSaysWhatKeptARun(t *testing.T) {
	inBubbleOf(t, limited(policy.Limits{HostsPerRepository: 1}), func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 1))
		dying, die := context.WithCancel(ctx)
		done := w.beginProvision(dying, demand("2", "a", 1))
		die()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		w.release(ctx, "1", true)
		other := w.newFleet("other", limited(policy.Limits{HostsPerRepository: 1}))
		go other.Sweep(ctx)
		w.until("run 2 has its host", 10*time.Minute, func() bool { return len(w.serving("2")) == 1 })
		w.held("2", lifecycle.ReasonQuota, "limits.hosts_per_repository allows acme/app 1 host")
	})
}

// GitHub goes away after the launch: the host could not register, and says so.
func TestGitHubKeepsALaunchedHost(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		mute := func(is bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.mute = is
		}
		mute(true) // while they cannot register
		done := w.beginProvision(ctx, demand("2", "a", 1))
		launched := w.held("2", "", "")
		w.setDown(true)
		other := w.beginProvision(ctx, demand("3", "a", 1)) // by which controld knows
		if r := w.held("2", lifecycle.ReasonGitHubUnavailable, "GitHub does not answer, so no host can register"); r.Version != launched.Version+1 || !r.UpdatedAt.Equal(launched.UpdatedAt) {
			t.Errorf("its record was written %d times: %+v", r.Version-launched.Version, r)
		}
		if said := w.whyRun("2"); !strings.Contains(said, "GitHub does not answer, so no host can register, since 00:00:30Z.") {
			t.Errorf("since when is not in\n%s", said)
		}
		w.setDown(false)
		time.Sleep(30 * time.Second)
		w.setDown(true)
		again := w.beginProvision(ctx, demand("4", "a", 1))
		if said, since := w.whyRun("2"), ", since 00:00:30Z"; strings.Contains(said, since) || !strings.Contains(said, "no host can register, since 00:01:3") {
			t.Errorf("of another outage:\n%s", said)
		}
		w.setDown(false)
		mute(false)
		w.ends(done)
		w.ends(other)
		w.ends(again)
		for _, run := range []string{"2", "3"} {
			w.held(run, lifecycle.ReasonGitHubUnavailable, "GitHub does not answer, so no host can register")
		}
	})
}

// whyRun is what is said of a run.
func (w *world) whyRun(run string) string {
	w.t.Helper()
	e, err := w.fleet.Explain(w.t.Context(), repository, run, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Join(e.Sentences, "\n")
}

// A run whose spot hosts are paused gets on-demand ones, and says why.
func TestWhatKeptARunFromSpotHosts(t *testing.T) {
	breakerWorld(t, func(ctx context.Context, w *world, a *announced) {
		spot := func(run string) fleet.Demand {
			d := demand(run, "a", 1)
			d.Spec.UsageClass, d.Spec.AllowOnDemand = lifecycle.UsageSpot, true
			return d
		}
		for _, run := range []string{"1", "2"} {
			r := w.mustProvision(ctx, spot(run))[0]
			a.say(notice.Interruption, r.InstanceID, time.Now())
			time.Sleep(time.Minute)
		}
		w.mustProvision(ctx, spot("3"))
		if r := w.held("3", lifecycle.ReasonSpotPaused, "EC2 interrupted 2 spot hosts or more of pool default within 10m0s: on-demand hosts are launched until"); r.UsageClass != lifecycle.UsageOnDemand {
			w.t.Errorf("launched %s", r.UsageClass)
		}
		alone := spot("4")
		alone.Spec.AllowOnDemand = false
		w.mustProvision(ctx, alone)
		if r := w.held("4", "", ""); r.UsageClass != lifecycle.UsageSpot {
			w.t.Errorf("launched %s for a run that wants spot hosts alone, and is not kept from them", r.UsageClass)
		}
	})
}

// A host that is reused names the run that had it before.
func TestAReusedHostNamesTheRunBefore(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		for i, run := range []string{"1", "2", "3"} {
			r := w.mustProvision(ctx, demand(run, "a", 1))[0]
			of, before := r.RunBefore()
			if want := []string{"", "1", "2"}[i]; before != want || (of == repository) != (i > 0) || r.Uses != i+1 {
				t.Errorf("run %s: the run before is %q of %q, and it is the %d. one; want %q", run, before, of, r.Uses, want)
			}
			w.release(ctx, run, true)
		}
	})
}

// A host that was launched says why there was no idle one, as far as the selection has found hosts at all.
func TestWhyAHostIsCold(t *testing.T) {
	for name, c := range map[string]struct {
		options func(*fleet.Options)
		// before is done with the idle host of run 1 of the repository.
		before func(ctx context.Context, w *world, idle lifecycle.Record)
		change func(*fleet.Demand)
		want   []arrival.Miss
	}{
		"another repository": {
			change: func(d *fleet.Demand) { d.Repository = "acme/lib" },
			want:   []arrival.Miss{arrival.MissTrust},
		},
		"another pool": {
			options: func(o *fleet.Options) { o.Pools["second"] = pool(lifecycle.ReuseSameRepository) },
			change:  func(d *fleet.Demand) { d.Spec.Pool = "second" },
			want:    []arrival.Miss{arrival.MissPool},
		},
		"another type": {
			change: func(d *fleet.Demand) { d.Spec.InstanceTypes = []string{"m*"} },
			want:   []arrival.Miss{arrival.MissType},
		},
		"a larger class": {change: func(d *fleet.Demand) { d.Spec.ResourceClass = "xlarge" }}, // whose hosts alone are looked at
		"held": {
			before: func(ctx context.Context, w *world, idle lifecycle.Record) {
				if _, err := w.fleet.Hold(ctx, idle.InstanceID, time.Hour, "a look", time.Now()); err != nil {
					w.t.Fatal(err)
				}
			},
			want: []arrival.Miss{arrival.MissHeld, arrival.MissLost},
		},
		"gone": {
			before: func(ctx context.Context, w *world, idle lifecycle.Record) {
				if _, err := w.fleet.Terminate(ctx, idle.InstanceID, "a test", time.Now()); err != nil {
					w.t.Fatal(err)
				}
			},
			want: []arrival.Miss{arrival.MissLost},
		},
		"a class that has grown": {
			before: func(_ context.Context, w *world, _ lifecycle.Record) {
				w.fleet = w.newFleet("b", func(o *fleet.Options) { o.Classes["large"] = o.Classes["xlarge"] })
			},
			want: []arrival.Miss{arrival.MissSize},
		},
		"about to end": {
			before: func(_ context.Context, w *world, idle lifecycle.Record) {
				time.Sleep(time.Until(w.record(idle.HostKey).Threshold) - time.Second)
			},
			want: []arrival.Miss{arrival.MissLeaving},
		},
		"taken by a run": {
			before: func(ctx context.Context, w *world, _ lifecycle.Record) { w.mustProvision(ctx, demand("9", "a", 1)) },
		},
		"no reuse": {
			options: func(o *fleet.Options) { o.Pools["default"] = pool(lifecycle.ReuseNone) },
			want:    []arrival.Miss{arrival.MissOneRun},
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := c.options
			if options == nil {
				options = func(*fleet.Options) {}
			}
			inBubbleOf(t, options, func(ctx context.Context, t *testing.T, w *world) {
				idle := w.mustProvision(ctx, demand("1", "a", 1))[0]
				if missed := w.held("1", "", "").Arrival.Missed; missed != nil && name != "no reuse" {
					t.Errorf("of the first host: %v", missed)
				}
				w.release(ctx, "1", true)
				if c.before != nil {
					c.before(ctx, w, idle)
				}
				d := demand("2", "a", 1)
				if c.change != nil {
					c.change(&d)
				}
				r := w.mustProvision(ctx, d)[0]
				if diff := cmp.Diff(c.want, r.Arrival.Missed); diff != "" || r.Assignment != 1 {
					t.Errorf("assignment %d, missed (-want +got):\n%s", r.Assignment, diff)
				}
				q, err := w.store.Request(ctx, r.Repository, "2", "a")
				if err != nil || q.Missed != nil {
					t.Errorf("after the launch the request has %v, %v", q.Missed, err)
				}
			})
		})
	}
}

// The host of a job says when GitHub queued the job that it was asked for, and what kept that.
func TestWhatKeptAJob(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(ctx context.Context, w *world)
		code          lifecycle.ReasonCode
		text          string
	}{
		"nothing": {},
		"a full pool": {
			before: func(ctx context.Context, w *world) {
				w.hub.queue(ctx, poolJob(1, time.Now()), 30*time.Minute)
				w.until("the first job runs", time.Minute, w.ran(1))
			},
			after: func(context.Context, *world) { time.Sleep(30 * time.Minute) },
			code:  lifecycle.ReasonPoolFull, text: "pool jobs has 1 of 1 host, its maximum, and it is at work",
		},
		"a pause": {
			before: func(ctx context.Context, w *world) { w.pause(ctx, jobPool, true) },
			after:  func(ctx context.Context, w *world) { time.Sleep(10 * time.Minute); w.pause(ctx, jobPool, false) },
			code:   lifecycle.ReasonPoolPaused, text: "pool jobs was paused from 2000-01-01T00:00:00Z to 2000-01-01T00:10:00Z",
		},
		"no capacity": { // a later cause than that of the job itself
			before: func(_ context.Context, w *world) { w.compute.SetCapacity("*", 0) },
			after:  func(_ context.Context, w *world) { time.Sleep(time.Minute); w.compute.SetCapacity("*", 9) },
			code:   lifecycle.ReasonShortage, text: "the last launch was short: ",
		},
		"GitHub, which is asked before a launch": {
			before: func(_ context.Context, w *world) { w.github.setDownFor(repository) },
			after:  func(_ context.Context, w *world) { time.Sleep(5 * time.Minute); w.github.setDownFor("") },
			code:   lifecycle.ReasonGitHubUnavailable, text: "GitHub does not answer, so no host can register",
		},
		"GitHub, which registers the host": {
			before: func(_ context.Context, w *world) { w.hub.setMute(true) },
			after:  func(_ context.Context, w *world) { time.Sleep(5 * time.Minute); w.hub.setMute(false) },
			code:   lifecycle.ReasonGitHubUnavailable, text: "GitHub does not answer, so no host can register",
		},
		"GitHub, for longer than the request waits": {
			before: func(_ context.Context, w *world) { w.hub.setMute(true) },
			after:  func(_ context.Context, w *world) { time.Sleep(25 * time.Minute); w.hub.setMute(false) },
			code:   lifecycle.ReasonGitHubUnavailable, text: "GitHub does not answer, so no host can register",
		},
		"GitHub, which knows whether its run is of a fork": {
			before: func(_ context.Context, w *world) { w.setDown(true) },
			after:  func(_ context.Context, w *world) { time.Sleep(10 * time.Minute); w.setDown(false) },
			code:   lifecycle.ReasonGitHubUnavailable, text: "GitHub does not answer whether run 1 is of a fork",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := jobWorld(t, 1)
				w.live(t, func(ctx context.Context) {
					if c.before != nil {
						c.before(ctx, w)
					}
					queued := time.Now().UTC()
					w.hub.queue(ctx, poolJob(2, queued), 10*time.Minute)
					if c.after != nil {
						c.after(ctx, w)
					}
					w.until("the job runs", 5*time.Minute, w.ran(2))
					r := w.ofJob(2)
					if a := r.Arrival; !a.QueuedAt.Equal(queued) || a.HeldBy != string(c.code) || !strings.Contains(a.Held, c.text) || a.AskedAt.Before(queued) {
						t.Errorf("queued at %s: %+v", queued, a)
					}
				})
			})
		})
	}
}

// A replica ends between the slot for a job and its request. The host that the job then gets says since when the job was queued.
func TestTheHostOfALostRequestSaysWhenItsJobWasQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		queued := time.Now().UTC()
		j := poolJob(1, queued)
		w.hub.queue(t.Context(), j, 10*time.Minute)
		row := lifecycle.Job{
			ID: 1, Repository: repository, RunID: "1", Pool: jobPool, Scope: repository, Labels: j.Labels, State: lifecycle.JobWaiting, QueuedAt: queued,
			DueAt: queued.Add(time.Hour), Version: 1,
		}
		if err := w.store.CreateJob(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		slot := slots.Slot{Number: 1, JobID: 1, Repository: repository, Scope: repository, AssignedAt: queued}
		if _, err := w.store.UpdateSlotTable(t.Context(), slots.Table{Pool: jobPool, Assigned: 1, Open: []slots.Slot{slot}}); err != nil {
			t.Fatal(err)
		}
		w.live(t, func(context.Context) {
			w.until("the job runs", 2*time.Minute, w.ran(1))
			if r := w.ofJob(1); !r.Arrival.QueuedAt.Equal(queued) || w.turns().Assigned != 1 {
				t.Errorf("queued at %s: %+v in %+v", queued, r.Arrival, w.turns())
			}
		})
	})
}

// ofJob is the host on which a job of the pool runs.
func (w *world) ofJob(id int64) lifecycle.Record {
	w.t.Helper()
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	for _, r := range w.records(lifecycle.StateRunning, lifecycle.StateCreated, lifecycle.StateClaimed) {
		if runner := w.hub.runners[r.RunnerName]; runner != nil && runner.job != nil && runner.job.ID == id && r.Arrival != nil {
			return r
		}
	}
	w.t.Fatalf("no host runs job %d", id)
	return lifecycle.Record{}
}

// A job that waited for the next month says that its budget was used up.
func TestABudgetThatKeptAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		w.fleet = w.newFleet("b", func(o *fleet.Options) { withJobs(o, w.hub, 1) }, budgeted)
		time.Sleep(time.Until(time.Date(2000, 1, 31, 13, 30, 0, 0, time.UTC)))
		w.spend(t.Context(), repository, "9", 10)
		time.Sleep(10 * time.Hour)
		w.live(t, func(ctx context.Context) {
			w.hub.queue(ctx, poolJob(1, time.Now()), 10*time.Minute)
			w.until("it runs in the next month", time.Hour, w.ran(1))
			if a := w.ofJob(1).Arrival; a.HeldBy != string(lifecycle.ReasonBudgetUsedUp) || !strings.HasPrefix(a.Held, usedUpWords) {
				t.Errorf("%+v", a)
			}
		})
	})
}

// The host of a job of a run says when the job was queued, if the job's webhook made the request.
func TestARunByWebhookKnowsItsQueueTime(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		queued := time.Now().UTC()
		w.hub.queue(ctx, lifecycle.WorkflowJob{ID: 1, RunID: "5", Labels: []string{"5"}, QueuedAt: queued}, time.Minute)
		w.until("the run has a host", time.Minute, func() bool { return len(w.serving("5")) == 1 })
		if a := w.held("5", "", "").Arrival; !a.QueuedAt.Equal(queued) {
			t.Errorf("%+v", a)
		}
	}, byWebhook(policy.Rule{MaxHosts: 1}))
}
