package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

func TestReleaseIsIdempotent(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		if r := w.release(ctx, "unknown", true); len(r.Instances()) != 0 {
			t.Errorf("a run with no hosts released %d", len(r.Instances()))
		}
		for _, host := range w.mustProvision(ctx, demand("1", "a", 2)) {
			w.set(func() { w.busy[host.HostKey] = true })
		}
		time.Sleep(time.Second)
		time.AfterFunc(10*time.Second, func() { w.set(func() { clear(w.busy) }) })
		r := w.release(ctx, "1", true)
		if r.Pooled() != 2 {
			t.Errorf("pooled %d, want 2", r.Pooled())
		}
		for _, host := range r.Instances() {
			if heard := r.Heard()[host.HostKey]; heard.Busy || heard.Signal != lifecycle.SignalRemoveRegOK {
				t.Errorf("the answer has a report of host %s from before it was clean: %+v", host.InstanceID, heard)
			}
		}
		before := w.records()
		if r := w.release(ctx, "1", true); len(r.Instances()) != 0 {
			t.Errorf("the second release freed %d hosts", len(r.Instances()))
		}
		for i, r := range w.records() {
			if r.Assignment != before[i].Assignment {
				t.Errorf("the second release changed host %s", r.InstanceID)
			}
		}
	})
}

func TestReleaseOfABusyHostDrains(t *testing.T) {
	racepass.CoveredBy(t, "TestReleaseWaitsForTheJob")
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.set(func() { w.busy[host.HostKey] = true })
		time.Sleep(time.Second)
		if heard := w.release(ctx, "1", false).Heard(); !heard[host.HostKey].Busy {
			t.Errorf("the answer does not have the report that the host is busy: %+v", heard)
		}
		time.Sleep(time.Hour)
		r := w.record(host.HostKey)
		if !r.Releasing() || !r.Threshold.Equal(r.RuntimeEndsAt) {
			t.Fatalf("after an hour the busy host is %s until %s: %s", r.Condition(), r.Threshold, r.Reason)
		}
		w.set(func() { w.busy[host.HostKey] = false })
		time.Sleep(time.Minute)
		if r := w.record(host.HostKey); !r.Pooled() {
			t.Errorf("a minute after its job the host is %s: %s", r.Condition(), r.Reason)
		}
	})
}

func TestADrainEndsWithTheRuntime(t *testing.T) {
	racepass.CoveredBy(t, "TestReleaseWaitsForTheJob")
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		d := demand("1", "a", 1)
		d.Spec.MaxRuntime = time.Hour
		host := w.mustProvision(ctx, d)[0]
		w.set(func() { w.busy[host.HostKey] = true })
		time.Sleep(time.Second)
		w.release(ctx, "1", false)
		time.Sleep(58 * time.Minute)
		if r := w.record(host.HostKey); !r.Releasing() {
			t.Fatalf("before its runtime was over the host became %s: %s", r.Condition(), r.Reason)
		}
		time.Sleep(5 * time.Minute)
		if r := w.record(host.HostKey); r.State != lifecycle.StateTerminated {
			t.Errorf("after its runtime the host is %s", r.Condition())
		}
	})
}

func TestReleaseWaitsForTheJob(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.set(func() { w.busy[host.HostKey] = true })
		time.Sleep(time.Second)
		go func() {
			time.Sleep(10 * time.Minute)
			w.set(func() { w.busy[host.HostKey] = false })
		}()
		start := time.Now()
		r := w.release(ctx, "1", true)
		if r.Pooled() != 1 || time.Since(start) < 9*time.Minute {
			t.Errorf("pooled %d after %s", r.Pooled(), time.Since(start))
		}
	})
}

// A release that is followed without its caller ends once only busy hosts are left: their jobs may last for hours.
func TestFollowLeavesBusyHosts(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		busy := w.mustProvision(ctx, demand("1", "a", 2))[0]
		w.set(func() { w.busy[busy.HostKey] = true })
		time.Sleep(time.Second)
		w.release(ctx, "1", false)
		follow := w.fleet.NewFollow(repository, "1", 0)
		if err := w.fleet.Drive(ctx, follow, patience); err != nil {
			t.Fatal(err)
		}
		if follow.Pooled() != 1 || len(follow.Instances()) != 2 {
			t.Errorf("followed %d hosts until %d were pooled, want 2 and 1", len(follow.Instances()), follow.Pooled())
		}
		if r := w.record(busy.HostKey); !r.Releasing() {
			t.Errorf("the busy host is %s", r.Condition())
		}
	})
}

func TestARepeatedReleaseWaitsForTheSameHosts(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 2))
		w.set(func() { w.mute = true })
		if r := w.release(ctx, "1", false); len(r.Instances()) != 2 || r.Pooled() != 0 {
			t.Errorf("released %d, pooled %d", len(r.Instances()), r.Pooled())
		}
		w.set(func() { w.mute = false })
		if r := w.release(ctx, "1", true); len(r.Instances()) != 2 || r.Pooled() != 2 {
			t.Errorf("again: released %d, pooled %d; want 2 and 2", len(r.Instances()), r.Pooled())
		}
	})
}

// Runs of one workflow name their requests alike. A repeated release of one does not wait for the job of another that had the host since.
func TestARepeatedReleaseWaitsForNoOtherRun(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.release(ctx, "1", true)
		if again := w.mustProvision(ctx, demand("2", "a", 1)); again[0].HostKey != host.HostKey {
			t.Fatalf("run 2 has host %s, want %s", again[0].InstanceID, host.InstanceID)
		}
		w.set(func() { w.busy[host.HostKey] = true })
		time.Sleep(time.Second)
		w.release(ctx, "2", false)
		began := time.Now()
		if r := w.release(ctx, "1", true); len(r.Instances()) != 0 || time.Since(began) > time.Second {
			t.Errorf("run 1 waited %s for %+v", time.Since(began), r.Instances())
		}
	})
}

// The host of a job leaves the request of its slot, whatever run a webhook has named. A repeated release knows it, and it uses the room of its repository
// until its job is over.
func TestTheHostOfAJobLeavesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 4)
		w.fleet = w.newFleet("b", func(o *fleet.Options) { withJobs(o, w.hub, 4) }, limited(policy.Limits{HostsPerRepository: 1}))
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.agents(ctx)
		d := demand("job:x:1", "job:x:1", 1)
		d.Spec.JobsOf = repository
		host := w.mustProvision(ctx, d)[0]
		w.set(func() {
			w.forge[host.HostKey] = func(p *lifecycle.Report) { p.Busy, p.Jobs, p.Signal = true, 1, lifecycle.SignalRegOK }
		})
		time.Sleep(time.Second)
		r := w.fleet.NewRelease(repository, "job:x:1", 0, false)
		r.ChargeTo(meter.User{Repository: repository, RunID: "77", Attempt: 1})
		if err := w.fleet.Drive(ctx, r, patience); err != nil {
			t.Fatal(err)
		}
		if r := w.record(host.HostKey); !r.Draining() || r.LastRun != "77" {
			t.Fatalf("the host is %s, and its run was %q", r.Condition(), r.LastRun)
		}
		if again := w.release(ctx, "job:x:1", false); len(again.Instances()) != 1 {
			t.Errorf("the repeated release knows %d hosts", len(again.Instances()))
		}
		room := func() int {
			w.sweepOnce(ctx, w.fleet.NewDueSweep())
			l, err := w.store.QuotaLedger(ctx, ofRepository)
			if err != nil {
				t.Fatal(err)
			}
			return len(l.Reservations)
		}
		for range 3 {
			time.Sleep(30 * time.Second)
			if got := room(); got != 1 {
				t.Errorf("while its job runs it has %d reservations", got)
			}
		}
		w.set(func() { delete(w.forge, host.HostKey) })
		for range 3 {
			time.Sleep(30 * time.Second)
			room()
		}
		if got := room(); got != 0 {
			t.Errorf("after its job it has %d reservations", got)
		}
	})
}

// The registration of a job's host is deleted at its release, also if the host reports nothing that can be believed, or what it did before.
func TestTheRegistrationOfAJobsHostIsDeleted(t *testing.T) {
	for name, forge := range map[string]func(*lifecycle.Report){
		"a report":           func(*lifecycle.Report) {},
		"a malformed report": malformed["an unknown signal"],
		"an older report":    func(p *lifecycle.Report) { p.Assignment, p.Jobs = p.Assignment-1, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := jobWorld(t, 1)
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				go w.agents(ctx)
				d := demand("1", "a", 1)
				d.Spec.Pool, d.Spec.JobsOf, d.Spec.Labels = jobPool, repository, []string{"remuda-small"}
				host := w.mustProvision(ctx, d)[0]
				w.set(func() { w.forge["*"] = forge })
				time.Sleep(time.Second)
				if !w.github.knows(host.RunnerName) {
					t.Fatal("its runner is not registered")
				}
				w.release(ctx, "1", false)
				if w.github.knows(host.RunnerName) {
					t.Errorf("its runner is still registered; the host is %s: %s", w.only().Condition(), w.only().Reason)
				}
			})
		})
	}
}

func TestReleaseOfAnOlderAttemptLeavesTheNewerAlone(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		d := demand("1", "a", 1)
		d.Spec.RunAttempt = 2
		w.mustProvision(ctx, d)
		late := w.fleet.NewRelease(repository, "1", 1, true)
		if err := w.fleet.Drive(ctx, late, patience); err != nil || len(late.Instances()) != 0 {
			t.Errorf("attempt 1 released %d hosts of attempt 2 (%v)", len(late.Instances()), err)
		}
	})
}

func TestReleaseGoesOnWithGitHubDown(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("1", "a", 1))[0]
		w.github.setDown(true)
		w.release(ctx, "1", false)
		if r := w.record(host.HostKey); !r.Releasing() || r.Registration != nil {
			t.Fatalf("host is %s with registration %v", r.Condition(), r.Registration)
		}
		time.Sleep(time.Minute)
		w.github.setDown(false)
		time.Sleep(20 * time.Second)
		if r := w.record(host.HostKey); !r.Pooled() {
			t.Errorf("with GitHub back the host is %s: %s", r.Condition(), r.Reason)
		}
	})
}

func (g *fakeGitHub) setDown(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = down
}

// forgetful loses the answer to the first write of a release that takes effect.
type forgetful struct {
	fleet.Store
	lost atomic.Bool
}

func (f *forgetful) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	stored, err := f.Store.UpdateInstance(ctx, r)
	if err == nil && stored.Releasing() && f.lost.CompareAndSwap(false, true) {
		return lifecycle.Record{}, &lifecycle.UnavailableError{What: "update instance", Err: context.DeadlineExceeded}
	}
	return stored, err
}

func TestAReleaseWaitsForWhatALostAnswerFreed(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 2))
		store := &forgetful{Store: w.store}
		w.fleet = w.newFleet("b", func(o *fleet.Options) { o.Store = store })
		if r := w.release(ctx, "1", true); !store.lost.Load() || len(r.Instances()) != 2 || r.Pooled() != 2 {
			t.Errorf("an answer lost: %v; freed %d and pooled %d hosts, want 2", store.lost.Load(), len(r.Instances()), r.Pooled())
		}
	})
}

// A host counts as failed if its cleanup failed, and not if it was ended before it was ready.
func TestReleaseCountsWhatFailed(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.mustProvision(ctx, demand("1", "a", 2))
		w.set(func() {
			w.forge[hosts[0].HostKey] = func(p *lifecycle.Report) {
				if p.Signal == lifecycle.SignalRemoveRegOK {
					p.Signal, p.Cause = lifecycle.SignalRemoveRegFailed, lifecycle.CauseHost
				}
			}
		})
		w.slowBoots(time.Hour)
		go w.provisionQuietly(ctx, demand("1", "b", 2))
		w.until("two machines boot", time.Minute, func() bool { return len(w.records(lifecycle.StateCreated)) == 2 })
		if r := w.release(ctx, "1", true); r.Pooled() != 1 || r.Failed() != 1 || len(r.Instances()) != 4 {
			t.Errorf("%d of %d hosts were pooled and %d failed, want 1 of 4 and 1", r.Pooled(), len(r.Instances()), r.Failed())
		}
	})
}

// damagedRecord is a store in which one record cannot be written.
type damagedRecord struct {
	fleet.Store
	key atomic.Value
}

func (s *damagedRecord) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	if r.HostKey == s.key.Load() {
		return r, lifecycle.ErrUnavailable
	}
	return s.Store.UpdateInstance(ctx, r)
}

// A host that is clean is offered at once, though the record of another one of the release cannot be written.
func TestAReleaseOffersWhatItCan(t *testing.T) {
	damaged := &damagedRecord{}
	inBubbleOf(t, func(o *fleet.Options) { damaged.Store, o.Store = o.Store, damaged }, func(ctx context.Context, t *testing.T, w *world) {
		hosts := w.mustProvision(ctx, demand("1", "a", 2))
		r := w.fleet.NewRelease(repository, "1", 0, true)
		stepUntil(ctx, t, r, func() bool {
			return !slices.ContainsFunc(w.records(), func(r lifecycle.Record) bool { return !r.Releasing() })
		})
		damaged.key.Store(hosts[0].HostKey)
		if err := w.fleet.Drive(ctx, r, patience); err == nil {
			t.Fatal("the release is done")
		}
		got, err := w.queue.Receive(ctx, lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}, 10)
		if err != nil || len(got) != 1 || got[0].Message.HostKey != hosts[1].HostKey {
			t.Errorf("hosts are offered by %+v, %v; want the one that could be written", got, err)
		}
	})
}

// Two releases that have come equally far say the same of their state, and each step of one makes a difference.
func TestTheStateOfARelease(t *testing.T) {
	inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "a", 1))
		r, other := w.fleet.NewRelease(repository, "1", 0, true), w.fleet.NewRelease(repository, "1", 0, true)
		for n := 0; len(w.serving("1")) > 0; n++ {
			before := fmt.Sprint(r.State()...)
			if n == 0 && before != fmt.Sprint(other.State()...) {
				t.Errorf("two releases that begin are %s and %v", before, other.State())
			}
			if _, err := r.Step(ctx, time.Now()); err != nil {
				t.Fatal(err)
			}
			if before == fmt.Sprint(r.State()...) {
				t.Errorf("step %d leaves it as it was: %s", n, before)
			}
		}
	})
}
