package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

const crashMaximum = 2

// Whatever effect a replica dies after, another one goes on: every job runs
// once, and the accounts come to rest.
func TestACrashAfterAnyEffect(t *testing.T) {
	strikeEach(t, func(t *testing.T, at int) *fate { return crashAt(t, at, (*world).runAllOnce) })
}

// The same for a run that is provisioned by its webhooks and released by the
// last one.
func TestACrashWhileARunIsProvided(t *testing.T) {
	strikeEach(t, func(t *testing.T, at int) *fate { return crashAt(t, at, (*world).provideOnce) })
}

// Whatever write takes effect and is answered with "unavailable", nothing is
// done twice and nothing is left undone.
func TestALostAnswerOfAnyEffect(t *testing.T) {
	strikeEach(t, func(t *testing.T, at int) *fate { return loseAnswerAt(t, at, (*world).runAllOnce) })
}

func TestALostAnswerWhileARunIsProvided(t *testing.T) {
	strikeEach(t, func(t *testing.T, at int) *fate { return loseAnswerAt(t, at, (*world).provideOnce) })
}

// The same for hosts that listen before a run claims them.
func TestACrashWhileHotHostsServe(t *testing.T) {
	strikeEach(t, func(t *testing.T, at int) *fate { return crashAt(t, at, (*world).provideHot, listening) })
}

func TestALostAnswerWhileHotHostsServe(t *testing.T) {
	strikeEach(t, func(t *testing.T, at int) *fate { return loseAnswerAt(t, at, (*world).provideHot, listening) })
}

// The same for the hosts of a run that are claimed, made ready and given back at once, so that the effect that is struck is one of several at a time.
func TestACrashWhileManyHostsServe(t *testing.T) {
	strikeEach(t, func(t *testing.T, at int) *fate { return crashAt(t, at, (*world).serveMany) })
}

func TestALostAnswerWhileManyHostsServe(t *testing.T) {
	strikeEach(t, func(t *testing.T, at int) *fate { return loseAnswerAt(t, at, (*world).serveMany) })
}

// struckUnderRace: in make test, one effect of so many is struck under the race detector, from the first on.
const struckUnderRace = 25

// strikeEach lets each effect be struck in a world of its own, until there is
// none left to strike.
func strikeEach(t *testing.T, live func(t *testing.T, at int) *fate) {
	step := racepass.Every(t, struckUnderRace)
	for at := 1; ; at += step {
		over := false
		t.Run(fmt.Sprintf("effect %d", at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := live(t, at)
				over = f.struck() == ""
				if t.Failed() {
					t.Logf("struck: %s", f.struck())
				}
			})
		})
		if over || t.Failed() {
			return
		}
	}
}

// crashAt lets the first replica die, and another one live on.
func crashAt(t *testing.T, at int, scene func(*world, context.Context), change ...func(*fleet.Options)) *fate {
	return crashOf(t, at, crashMaximum, scene, change...)
}

// crashOf is crashAt with a job pool that may have so many hosts.
func crashOf(t *testing.T, at, maximum int, scene func(*world, context.Context), change ...func(*fleet.Options)) *fate {
	w := jobWorld(t, maximum, anyRun)
	w.fleet = w.newFleet("second", append([]func(*fleet.Options){func(o *fleet.Options) { withJobs(o, w.hub, maximum, anyRun) }}, change...)...)
	ctx, cancel := context.WithCancel(t.Context())
	defer synctest.Wait()
	defer cancel()
	mortal, die := context.WithCancel(ctx)
	f := &fate{at: at, kill: die}
	first, second := w.newFleet("first", append([]func(*fleet.Options){w.mortal(f, maximum, anyRun)}, change...)...), w.fleet
	w.mortalOne = first
	w.hub.hear = func(ctx context.Context, webhook lifecycle.Webhook) error {
		if !f.isDead() {
			if err := first.TakeWebhook(ctx, webhook, time.Now()); err == nil || !f.isDead() {
				return err
			}
		}
		w.hub.mu.Lock() // it was not acknowledged
		defer w.hub.mu.Unlock()
		w.hub.missed = append(w.hub.missed, webhook)
		return nil
	}
	go w.agents(ctx)
	go w.hub.live(ctx)
	go first.ServeJobs(mortal)
	go first.Sweep(mortal)
	go func() {
		<-mortal.Done()
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		w.hub.hearBy(func(ctx context.Context, webhook lifecycle.Webhook) error {
			return second.TakeWebhook(ctx, webhook, time.Now())
		})
		go second.ServeJobs(ctx)
		second.Sweep(ctx)
	}()
	synctest.Wait()
	scene(w, ctx)
	return f
}

// loseAnswerAt has one replica, one of whose answers is lost.
func loseAnswerAt(t *testing.T, at int, scene func(*world, context.Context), change ...func(*fleet.Options)) *fate {
	return loseAnswerOf(t, at, crashMaximum, scene, change...)
}

// loseAnswerOf is loseAnswerAt with a job pool that may have so many hosts.
func loseAnswerOf(t *testing.T, at, maximum int, scene func(*world, context.Context), change ...func(*fleet.Options)) *fate {
	w := jobWorld(t, maximum, anyRun)
	f := &fate{at: at}
	w.fleet = w.newFleet("first", append([]func(*fleet.Options){w.mortal(f, maximum, anyRun)}, change...)...)
	w.hub.hear = func(ctx context.Context, webhook lifecycle.Webhook) error {
		err := w.fleet.TakeWebhook(ctx, webhook, time.Now())
		if err != nil && !isExists(err) && !isNotOurs(err) {
			w.hub.mu.Lock()
			defer w.hub.mu.Unlock()
			w.hub.missed = append(w.hub.missed, webhook)
		}
		return err
	}
	w.live(t, func(ctx context.Context) { scene(w, ctx) })
	return f
}

// runAllOnce has five jobs run on a pool, and checks on the way what must always
// hold and at the end what must be left.
func (w *world) runAllOnce(ctx context.Context) {
	w.t.Helper()
	ids := []int64{1, 2, 3, 4, 5}
	for _, id := range ids {
		w.hub.queue(ctx, poolJob(id, time.Now()), 3*time.Second)
	}
	w.until("all jobs over", 30*time.Minute, func() bool {
		w.checkLimits()
		return w.allOver()
	})
	w.until("the pool at rest", 30*time.Minute, func() bool {
		w.checkLimits()
		return w.atRest()
	})
	given := slices.Sorted(slices.Values(w.hub.given))
	if !slices.Equal(given, ids) {
		w.t.Errorf("jobs that ran: %v", given)
	}
	w.until("no registration is left", 15*time.Minute, func() bool { return len(w.github.names()) == 0 })
	for _, id := range ids {
		if j, err := w.store.Job(ctx, id); err == nil && j.State == lifecycle.JobWaiting {
			w.t.Errorf("job %d waits still, by its row: %s", id, j.Reason)
		}
	}
}

// anyRun may be provisioned by webhook.
var anyRun = byWebhook(policy.Rule{MaxHosts: 5})

// provideOnce has a run whose two jobs are queued without a call of Provision: it
// gets two hosts, and they go back when it is over.
func (w *world) provideOnce(ctx context.Context) {
	w.t.Helper()
	for id := range int64(2) {
		w.hub.queue(ctx, runJob(id+1, "5", 1), time.Hour)
	}
	hosts := func(want int) func() bool {
		return func() bool {
			n := len(w.records(lifecycle.StateCreated, lifecycle.StateClaimed, lifecycle.StateRunning))
			if n > 2 {
				w.t.Fatalf("%d hosts for a run of two jobs", n)
			}
			return n == want
		}
	}
	w.until("two hosts serve the run", 20*time.Minute, hosts(2))
	over := ended("5", 1)
	w.hub.mu.Lock()
	w.hub.runs["5"] = over
	w.hub.mu.Unlock()
	w.hub.sayRun(ctx, over)
	w.until("they went back", 20*time.Minute, hosts(0))
	w.until("no registration is left", 15*time.Minute, func() bool { return len(w.github.names()) == 0 })
}

// serveMany has two runs of four hosts, one after the other, so that the second has the hosts of the first. What a replica did not get done before it
// died is asked of the other.
func (w *world) serveMany(ctx context.Context) {
	w.t.Helper()
	const many = 4
	var first []string
	for _, run := range []string{"5", "6"} {
		var p *fleet.Provision
		w.either(ctx, func(f *fleet.Fleet) fleet.Op {
			var err error
			if p, err = f.NewProvision(demand(run, "request", many)); err != nil {
				w.t.Fatal(err)
			}
			return p
		})
		var keys []string
		for _, r := range w.serving(run) {
			if r.State != lifecycle.StateRunning {
				w.t.Errorf("%s is %s for run %s", r.InstanceID, r.Condition(), run)
			}
			keys = append(keys, r.HostKey)
		}
		slices.Sort(keys)
		switch taken := p.Request().Taken; {
		case len(keys) != many, len(taken) != many, len(p.Instances()) != many:
			w.t.Errorf("run %s has %d hosts, and its request %d of %d", run, len(keys), len(taken), len(p.Instances()))
		case first != nil && !slices.Equal(keys, first):
			w.t.Errorf("run %s has %v, and the run before left %v", run, keys, first)
		}
		first = keys
		w.either(ctx, func(f *fleet.Fleet) fleet.Op { return f.NewRelease(repository, run, 0, true) })
		for _, key := range keys {
			if r := w.record(key); !r.Pooled() {
				w.t.Errorf("after run %s %s is %s: %s", run, r.InstanceID, r.Condition(), r.Reason)
			}
		}
	}
}

// either has the mortal replica, if there is one and it lives, or else the other do an operation.
func (w *world) either(ctx context.Context, begin func(*fleet.Fleet) fleet.Op) {
	w.t.Helper()
	if w.mortalOne != nil && w.mortalOne.Drive(ctx, begin(w.mortalOne), patience) == nil {
		return
	}
	if err := w.fleet.Drive(ctx, begin(w.fleet), patience); err != nil {
		w.t.Fatal(err)
	}
}

// provideHot has a run leave hot hosts behind. The next run claims them, and they become hot again.
func (w *world) provideHot(ctx context.Context) {
	w.t.Helper()
	for job, run := range []string{"5", "6"} {
		w.hub.queue(ctx, runJob(int64(job+1), run, 1), time.Hour)
		w.until("a host serves run "+run, 20*time.Minute, func() bool { return len(w.serving(run)) == 1 && w.serving(run)[0].State == lifecycle.StateRunning })
		r := w.serving(run)[0]
		if labels := w.labelsOf(r); r.Standby != nil && !slices.Equal(labels, append([]string{run}, r.Labels...)) {
			w.t.Fatalf("%s is ready for run %s with the labels %v", r.InstanceID, run, labels)
		}
		over := ended(run, 1)
		w.hub.mu.Lock()
		w.hub.runs[run] = over
		w.hub.mu.Unlock()
		w.hub.sayRun(ctx, over)
		w.until("it became hot", 3*time.Minute, func() bool { return len(w.serving(run)) == 0 && slices.ContainsFunc(w.records(), lifecycle.Record.Hot) })
	}
	w.until("no registration is left", 25*time.Minute, func() bool { return len(w.github.names()) == 0 })
}

// checkLimits: no more turns, nor hosts at work for them, than the pool may have,
// and no host that is taken from its job.
func (w *world) checkLimits() { w.checkMaximum(crashMaximum) }

func (w *world) checkMaximum(maximum int) {
	w.t.Helper()
	if open := len(w.turns().Open); open > maximum {
		w.t.Fatalf("%d turns are open, and %d may be", open, maximum)
	}
	serving := 0
	for _, r := range w.records() {
		busy := w.hub.busy(r.RunnerName)
		if busy && (r.State == lifecycle.StateTerminated || r.Pooled()) {
			w.t.Fatalf("%s was taken from its job: %s", r.RunnerName, r.Reason)
		}
		if r.JobsOf != "" && r.State != lifecycle.StateTerminated && !r.Releasing() {
			serving++
		}
	}
	if serving > maximum {
		w.t.Fatalf("%d hosts serve the pool, and %d may", serving, maximum)
	}
}

// busy reports whether the runner of a name has a job.
func (h *hub) busy(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.runners[name]
	return r != nil && r.job != nil
}
