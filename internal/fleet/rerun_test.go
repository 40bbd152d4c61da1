package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// rerunning has the runs of the default pool started again.
func rerunning(o *fleet.Options) {
	p := o.Pools["default"]
	p.RerunInterrupted = true
	o.Pools["default"] = p
}

// rerunWorld has webhooks and the pool default, with change.
func rerunWorld(t *testing.T, change func(*fleet.Options)) *world {
	w := jobWorld(t, crashMaximum, anyRun)
	w.fleet = w.newFleet("second", func(o *fleet.Options) {
		withJobs(o, w.hub, crashMaximum, anyRun)
		change(o)
	})
	return w
}

// loseHost gives run 5 a host in an attempt, and lets EC2 take it, busy or not,
// announced or not.
func (w *world) loseHost(ctx context.Context, attempt int, announced, busy bool) {
	w.t.Helper()
	w.setRun(lifecycle.WorkflowRun{RunAttempt: attempt, Status: lifecycle.StatusInProgress})
	d := demand("5", fmt.Sprint("q", attempt), 1)
	d.Spec.RunAttempt = attempt
	h := w.mustProvision(ctx, d)[0]
	time.Sleep(6 * time.Minute) // EC2's word on a new machine is not sure
	w.set(func() {
		w.busy[h.HostKey] = busy
		w.forge[h.HostKey] = func(p *lifecycle.Report) {
			if announced {
				p.InterruptionAt = time.Now().Add(2 * time.Minute)
			}
		}
	})
	time.Sleep(time.Second)
	w.set(func() { w.deaf[h.HostKey] = true })
	w.compute.Kill(h.InstanceID)
	w.until("the host is known to be lost", 10*time.Minute, func() bool { return w.record(h.HostKey).State == lifecycle.StateTerminated })
}

func (w *world) setRun(run lifecycle.WorkflowRun) lifecycle.WorkflowRun {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	run.RunID, run.Repository, run.RepositoryID, run.OwnerID, run.HeadRepositoryID = "5", repository, repositoryID, ownerID, repositoryID
	w.hub.runs["5"] = run
	return run
}

func (w *world) attempt() int {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	return w.hub.runs["5"].RunAttempt
}

func TestARunThatLostAJobIsStartedAgain(t *testing.T) {
	racepass.CoveredBy(t, "TestACrashWhileARunIsStartedAgain")
	for name, test := range map[string]struct {
		off, spent      bool
		attempt         int
		announced, busy bool
		conclusion      string
		want            int
		says            string
	}{
		"a job was lost":            {attempt: 1, announced: true, busy: true, conclusion: "failure", want: 1, says: "are started again"},
		"in the second attempt":     {attempt: 2, announced: true, busy: true, conclusion: "failure", says: "released 0 hosts"},
		"no job ran on the host":    {attempt: 1, announced: true, conclusion: "failure", says: "released 0 hosts"},
		"nothing was announced":     {attempt: 1, busy: true, conclusion: "failure", says: "released 0 hosts"},
		"the run succeeded":         {attempt: 1, announced: true, busy: true, conclusion: "success", says: "released 0 hosts"},
		"a user cancelled it":       {attempt: 1, announced: true, busy: true, conclusion: "cancelled", says: "released 0 hosts"},
		"its budget is used up":     {spent: true, attempt: 1, announced: true, busy: true, conclusion: "failure", says: "its failed jobs are not started again: limits.budgets allows"},
		"its pool does not want it": {off: true, attempt: 1, announced: true, busy: true, conclusion: "failure", says: "released 0 hosts"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := rerunWorld(t, func(o *fleet.Options) {
					if !test.off {
						rerunning(o)
					}
					budgeted(o)
				})
				w.live(t, func(ctx context.Context) {
					w.loseHost(ctx, test.attempt, test.announced, test.busy)
					if test.spent {
						w.spend(ctx, repository, "9", 10)
						time.Sleep(10 * time.Minute)
					}
					over := w.setRun(lifecycle.WorkflowRun{RunAttempt: test.attempt, Status: lifecycle.StatusCompleted, Conclusion: test.conclusion})
					w.hub.sayRun(ctx, over)
					time.Sleep(10 * time.Second)
					if heard := w.heard(t); !strings.Contains(heard, test.says) {
						t.Errorf("heard %q, want %q", heard, test.says)
					}
					w.hub.sayRun(ctx, over) // by another delivery
					time.Sleep(10 * time.Second)
					if n := w.hub.calls("RerunFailedJobs"); n != test.want {
						t.Errorf("started again %d times, want %d", n, test.want)
					}
					if test.want == 0 {
						return
					}
					w.hub.queue(ctx, runJob(50, "5", test.attempt+1), time.Hour)
					w.until("the re-run has a host", 5*time.Minute, func() bool { return len(w.serving("5")) == 1 })
				})
			})
		})
	}
}

// TestARunIsStartedAgainThoughGitHubIsAway, for longer than any caller waits.
func TestARunIsStartedAgainThoughGitHubIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rerunWorld(t, rerunning)
		w.live(t, func(ctx context.Context) {
			w.loseHost(ctx, 1, true, true)
			down := func(is bool) {
				w.github.mu.Lock()
				defer w.github.mu.Unlock()
				w.github.down = is
			}
			down(true)
			w.hub.sayRun(ctx, w.setRun(lifecycle.WorkflowRun{RunAttempt: 1, Status: lifecycle.StatusCompleted, Conclusion: "failure"}))
			time.Sleep(5 * time.Minute)
			down(false)
			w.until("it was started again", 2*time.Minute, func() bool { return w.attempt() == 2 })
		})
	})
}

// TestACrashWhileARunIsStartedAgain: whatever effect a replica dies after, or
// whose answer is lost, GitHub is asked to good effect once.
func TestACrashWhileARunIsStartedAgain(t *testing.T) {
	for _, dies := range []bool{true, false} {
		t.Run(fmt.Sprintf("dies %v", dies), func(t *testing.T) {
			strikeEach(t, func(t *testing.T, at int) *fate { return rerunOnce(t, at, dies) })
		})
	}
}

func rerunOnce(t *testing.T, at int, dies bool) *fate {
	w := rerunWorld(t, rerunning)
	second := w.fleet
	ctx, cancel := context.WithCancel(t.Context())
	defer synctest.Wait()
	defer cancel()
	mortal, die := context.WithCancel(ctx)
	defer die()
	go w.agents(ctx)
	before, over := context.WithCancel(ctx)
	go second.Sweep(before)
	w.loseHost(ctx, 1, true, true)
	over()

	f := &fate{at: at}
	if dies {
		f.kill = die
	}
	w.fleet = w.mortalFleet("first", f, crashMaximum, anyRun)
	first := w.fleet
	serve := func(ctx context.Context, one *fleet.Fleet) {
		go one.ServeJobs(ctx)
		go one.Sweep(ctx)
	}
	serve(mortal, first)
	go func() {
		<-mortal.Done()
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
			serve(ctx, second)
		}
	}()
	synctest.Wait()
	w.hub.hearBy(func(ctx context.Context, webhook lifecycle.Webhook) error {
		err := lifecycle.ErrUnavailable
		if !f.isDead() {
			err = first.TakeWebhook(ctx, webhook, time.Now())
		}
		if err != nil && !isExists(err) { // it was not acknowledged
			w.hub.mu.Lock()
			defer w.hub.mu.Unlock()
			w.hub.missed = append(w.hub.missed, webhook)
		}
		return err
	})
	w.hub.sayRun(ctx, w.setRun(lifecycle.WorkflowRun{RunAttempt: 1, Status: lifecycle.StatusCompleted, Conclusion: "failure"}))
	time.Sleep(20 * time.Minute)
	if n := w.attempt(); n != 2 {
		t.Errorf("the run is in attempt %d, want 2", n)
	}
	return f
}

// GitHub may say that the run is over before the end of its lost host is known. What its agent reported last counts, if the host still served the run.
func TestARunIsStartedAgainBeforeTheEndOfItsHostIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		then func(ctx context.Context, w *world, h lifecycle.Record)
		want int
	}{
		"the host serves the run": {func(context.Context, *world, lifecycle.Record) {}, 1},
		"another run with a request of that name": {func(ctx context.Context, w *world, h lifecycle.Record) {
			w.release(ctx, "5", true)
			if again := w.mustProvision(ctx, demand("6", "q", 1)); again[0].HostKey != h.HostKey {
				w.t.Fatalf("run 6 has host %s, want %s, which run 5 had", again[0].InstanceID, h.InstanceID)
			}
		}, 0},
		"another run with a request of that name, which released it with its job": {func(ctx context.Context, w *world, h lifecycle.Record) {
			w.release(ctx, "5", true)
			w.mustProvision(ctx, demand("6", "q", 1))
			w.set(func() { w.busy[h.HostKey] = true })
			time.Sleep(time.Second)
			w.release(ctx, "6", false)
			if r := w.record(h.HostKey); !r.Draining() {
				w.t.Fatalf("the host is %s, want that the job of run 6 runs on", r.Condition())
			}
		}, 0},
		"a run of another repository": {func(ctx context.Context, w *world, h lifecycle.Record) {
			h = w.record(h.HostKey)
			h.Repository = "acme/lib"
			if _, err := w.store.UpdateInstance(ctx, h); err != nil {
				w.t.Fatal(err)
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := rerunWorld(t, rerunning)
				w.live(t, func(ctx context.Context) {
					w.setRun(lifecycle.WorkflowRun{RunAttempt: 1, Status: lifecycle.StatusInProgress})
					d := demand("5", "q", 1)
					d.Spec.RunAttempt = 1
					h := w.mustProvision(ctx, d)[0]
					c.then(ctx, w, h)
					w.set(func() {
						w.busy[h.HostKey] = true
						w.forge[h.HostKey] = func(p *lifecycle.Report) { p.InterruptionAt = time.Now().Add(2 * time.Minute) }
					})
					time.Sleep(time.Second)
					w.hub.sayRun(ctx, w.setRun(lifecycle.WorkflowRun{RunAttempt: 1, Status: lifecycle.StatusCompleted, Conclusion: "failure"}))
					time.Sleep(10 * time.Second)
					if n := w.hub.calls("RerunFailedJobs"); n != c.want {
						t.Errorf("started again %d times, want %d", n, c.want)
					}
				})
			})
		})
	}
}
