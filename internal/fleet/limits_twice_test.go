package fleet_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/policy"
)

// bothClaim lets two callers of run 9's request each claim a host within the same reservation of one.
func (w *world) bothClaim(ctx context.Context, f *fleet.Fleet, count, reserved int) (first, second *fleet.Provision) {
	w.t.Helper()
	d := demandOf(repository, "9", count, 1, 10*time.Minute)
	first, second = w.newProvision(f, d), w.newProvision(f, d)
	before := w.used(ofRepository)
	stepUntil(ctx, w.t, first, func() bool { return w.used(ofRepository) == before+reserved })
	stepUntil(ctx, w.t, second, func() bool { return len(w.serving("9")) == 1 })
	stepUntil(ctx, w.t, first, func() bool { return len(w.serving("9")) == 2 })
	return first, second
}

func (w *world) newProvision(f *fleet.Fleet, d fleet.Demand) *fleet.Provision {
	w.t.Helper()
	p, err := f.NewProvision(d)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// Two callers of one request that have each claimed a host within the same reservation keep one of the two hosts, as does a replica that
// takes the request over. Only the request's row and the ledger tell that one.
func TestTwoCallersKeepWhatIsReserved(t *testing.T) {
	for _, takenOver := range []bool{false, true} {
		limitedWorld(t, policy.Limits{HostsPerRepository: 2}, func(ctx context.Context, w *world) {
			w.useOnce(ctx, 2)
			small := w.newFleet("small", limited(policy.Limits{HostsPerRepository: 1}))
			first, second := w.bothClaim(ctx, small, 2, 1)
			stepUntil(ctx, t, second, func() bool { return len(first.Request().Taken)+len(second.Request().Taken) > 0 })
			if takenOver {
				first = w.newProvision(small, demandOf(repository, "9", 2, 1, 10*time.Minute))
			}
			if err := small.Drive(ctx, first, patience); err != nil {
				t.Fatal(err)
			}
			if n := len(w.serving("9")); n != 1 || len(first.Instances()) != 1 || w.used(ofRepository) != 1 {
				t.Errorf("taken over %t: %d hosts serve the run, %d are in the answer, %d count; want 1 each", takenOver, n, len(first.Instances()), w.used(ofRepository))
			}
		})
	}
}

// What one of two callers has claimed in excess goes back at once, and not only when the request settles: it waits for other hosts, which may
// take long.
func TestExcessGoesBackAtOnce(t *testing.T) {
	limitedWorld(t, policy.Limits{HostsPerRepository: 2}, func(ctx context.Context, w *world) {
		w.useOnce(ctx, 2)
		small := w.newFleet("small", limited(policy.Limits{HostsPerRepository: 1}))
		first, second := w.bothClaim(ctx, small, 3, 1)
		began := time.Now()
		stepUntil(ctx, t, second, func() bool { return len(second.Request().Taken) > 0 })
		stepUntil(ctx, t, first, func() bool { return len(w.serving("9")) == 1 })
		if waited := time.Since(began); waited > 5*time.Second {
			t.Errorf("the host went back after %s", waited)
		}
		for _, r := range w.allRecords() {
			if r.RunID == "" && r.ReasonCode != lifecycle.ReasonRequestExceeded {
				t.Errorf("host %s went back since %s: %s", r.InstanceID, r.ReasonCode, r.Reason)
			}
		}
		if first.Request().Settled() || second.Request().Settled() {
			t.Error("the request has settled")
		}
	})
}

// Hosts that two callers have claimed in excess stay if there is room for them by then.
func TestExcessStaysIfThereIsRoom(t *testing.T) {
	limitedWorld(t, policy.Limits{HostsPerRepository: 3}, func(ctx context.Context, w *world) {
		w.useOnce(ctx, 3)
		small := w.newFleet("small", limited(policy.Limits{HostsPerRepository: 2}))
		if _, err := w.provision(ctx, demandOf(repository, "1", 1, 1, time.Minute)); err != nil {
			t.Fatal(err)
		}
		first, second := w.bothClaim(ctx, small, 2, 1)
		claimed := w.serving("9")
		w.releaseQuietly(ctx, "1")
		w.until("the released host counts no more", time.Minute, func() bool { return w.used(ofRepository) == 1 })
		stepUntil(ctx, t, second, func() bool { return len(second.Request().Taken) == 1 })
		if err := small.Drive(ctx, first, patience); err != nil {
			t.Fatal(err)
		}
		for _, before := range claimed {
			if r := w.record(before.HostKey); r.RunID != "9" || r.Assignment != before.Assignment {
				t.Errorf("host %s went back", r.InstanceID)
			}
		}
		if len(first.Instances()) != 2 || w.used(ofRepository) != 2 {
			t.Errorf("%d hosts are in the answer, %d count; want 2 each", len(first.Instances()), w.used(ofRepository))
		}
	})
}

// A caller that sees no room in the owner's ledger lowers the reservation in the repository's, though the other caller has found room
// since and relies on it. That one raises it again before it settles, or gives back what others have taken by then.
func TestAnotherCallerLowersAReservation(t *testing.T) {
	for name, test := range map[string]struct {
		other bool
		want  int
	}{"the room is there": {false, 2}, "another run took the room": {true, 1}} {
		t.Run(name, func(t *testing.T) {
			limitedWorld(t, policy.Limits{HostsPerRepository: 3, HostsPerOwner: 3}, func(ctx context.Context, w *world) {
				w.useOnce(ctx, 3)
				small := w.newFleet("small", limited(policy.Limits{HostsPerRepository: 2, HostsPerOwner: 3}))
				d := demandOf(repository, "9", 2, 1, 10*time.Minute)
				first, second := w.newProvision(small, d), w.newProvision(small, d)
				stepUntil(ctx, t, second, func() bool { return w.used(ofRepository) == 2 })
				if _, err := w.provision(ctx, demandOf("acme/lib", "1", 2, 2, time.Minute)); err != nil {
					t.Fatal(err)
				}
				stepUntil(ctx, t, second, func() bool { return w.used(ofOwner) == 3 }) // of the two that it asks for, one
				_ = w.fleet.Drive(ctx, w.fleet.NewRelease("acme/lib", "1", 0, false), patience)
				w.until("the other repository's hosts count no more", time.Minute, func() bool { return w.used(ofOwner) == 1 })
				stepUntil(ctx, t, first, func() bool { return w.used(ofOwner) == 2 })
				stepUntil(ctx, t, first, func() bool { return len(w.serving("9")) > 0 })
				stepUntil(ctx, t, second, func() bool { return w.used(ofRepository) == 1 })
				if test.other {
					if err := small.Drive(ctx, w.newProvision(small, demandOf(repository, "10", 1, 1, time.Minute)), patience); err != nil {
						t.Fatal(err)
					}
				}
				if err := small.Drive(ctx, first, patience); err != nil {
					t.Fatal(err)
				}
				if n := len(w.serving("9")); n != test.want || len(first.Instances()) != test.want {
					t.Errorf("%d hosts serve the run, %d are in the answer, want %d each", n, len(first.Instances()), test.want)
				}
				if n := w.used(ofRepository); n != 2 {
					t.Errorf("%d hosts count, want 2", n)
				}
			})
		})
	}
}

// A replica that takes a request over keeps what it has, though its pool is paused: what is reserved is in the ledgers.
func TestATakeoverInAPausedPool(t *testing.T) {
	limits := limited(policy.Limits{HostsPerRepository: 5})
	limitedWorld(t, policy.Limits{HostsPerRepository: 5}, func(ctx context.Context, w *world) {
		w.useOnce(ctx, 1)
		d := demandOf(repository, "9", 2, 1, 10*time.Minute)
		first := w.newProvision(w.fleet, d)
		stepUntil(ctx, t, first, func() bool { return len(first.Request().Taken) == 1 })
		host := w.serving("9")[0]
		w.pause(ctx, "default", true)
		time.Sleep(6 * time.Second) // the other replica knows by then
		second := w.newProvision(w.newFleet("b", limits), d)
		end := time.Now().Add(15 * time.Second)
		stepUntil(ctx, t, second, func() bool { return time.Now().After(end) })
		if r := w.record(host.HostKey); r.RunID != "9" || r.Assignment != host.Assignment {
			t.Errorf("host %s went back: %s", r.InstanceID, r.Reason)
		}
	})
}

// A request that is taken over past its deadline settles with what it has, and claims nothing more.
func TestATakeoverPastTheDeadline(t *testing.T) {
	limits := limited(policy.Limits{HostsPerRepository: 5})
	inBubbleOf(t, limits, func(ctx context.Context, t *testing.T, w *world) {
		w.useOnce(ctx, 2)
		w.mustProvision(ctx, demandOf(repository, "1", 1, 1, time.Minute))
		d := demandOf(repository, "9", 2, 1, time.Minute)
		first := w.newProvision(w.fleet, d)
		stepUntil(ctx, t, first, func() bool { return len(first.Request().Taken) == 1 })
		w.release(ctx, "1", true)
		idle := slices.DeleteFunc(w.allRecords(), func(r lifecycle.Record) bool { return !r.Pooled() })
		if len(idle) != 1 {
			t.Fatalf("%d hosts are idle, want 1", len(idle))
		}
		time.Sleep(time.Until(first.Request().Deadline) + 5*time.Second)
		other := w.newFleet("b", limits)
		_ = other.Drive(ctx, w.newProvision(other, d), patience)
		q, err := w.store.Request(ctx, repository, "9", "a")
		if err != nil || !q.Settled() {
			t.Errorf("outcome %q: %v", q.Outcome, err)
		}
		for _, before := range idle {
			if r := w.record(before.HostKey); r.Assignment != before.Assignment {
				t.Errorf("host %s was claimed past the deadline: %s", r.InstanceID, r.Reason)
			}
		}
	})
}

// Of its hosts a request keeps those that are ready.
func TestExcessIsWhatIsNotReady(t *testing.T) {
	limits := limited(policy.Limits{HostsPerRepository: 3})
	inBubbleOf(t, limits, func(ctx context.Context, t *testing.T, w *world) {
		w.useOnce(ctx, 3)
		d := demandOf(repository, "9", 3, 1, 45*time.Second)
		first := w.newProvision(w.fleet, d)
		stepUntil(ctx, t, first, func() bool { return len(first.Request().Taken) == 3 })
		unready := first.Request().Taken[0].HostKey
		w.set(func() { w.deaf[unready] = true })
		stepUntil(ctx, t, first, func() bool { return len(w.records(lifecycle.StateRunning)) == 2 })
		w.reserve(ctx, "9", 1) // another caller has lowered it, and another run takes the room
		other := w.newFleet("b", limits)
		if err := other.Drive(ctx, w.newProvision(other, demandOf(repository, "10", 2, 2, time.Minute)), patience); err != nil {
			t.Fatal(err)
		}
		second := w.newProvision(other, d)
		if err := other.Drive(ctx, second, patience); err != nil || len(second.Instances()) != 1 {
			t.Errorf("%d hosts are in the answer, want 1 of the two that were ready: %v", len(second.Instances()), err)
		}
	})
}

// Hosts that are in the row and not ready yet are in excess too, and one goes back before it is ready. It stays if there is room for it by then,
// and is not one that was used before.
func TestExcessOfHostsThatStart(t *testing.T) {
	limits := limited(policy.Limits{HostsPerRepository: 3})
	for name, room := range map[string]bool{"the room is taken": false, "the room is there again": true} {
		t.Run(name, func(t *testing.T) {
			heard := &noted{}
			inBubbleOf(t, limits, func(ctx context.Context, t *testing.T, w *world) {
				w.slowBoots(time.Minute)
				d := demandOf(repository, "9", 2, 1, 5*time.Minute)
				first := w.newProvision(w.fleet, d)
				stepUntil(ctx, t, first, func() bool { return len(first.Request().Taken) == 2 })
				w.reserve(ctx, "9", 1) // another caller has lowered it, and another run takes the room
				stepUntil(ctx, t, w.newProvision(w.fleet, demandOf(repository, "10", 2, 2, 5*time.Minute)), func() bool { return w.used(ofRepository) == 3 })
				second := w.newProvision(w.newFleet("b", limits, func(o *fleet.Options) { o.Observer = heard }), d)
				stepUntil(ctx, t, second, func() bool { return len(second.Request().Taken) == 1 })
				if room {
					w.reserve(ctx, "10", 0)
				}
				stepUntil(ctx, t, second, func() bool { return len(w.records(lifecycle.StateRunning)) > 0 })
				want := map[bool]int{false: 1, true: 2}[room]
				if n := len(w.serving("9")); n != want || len(second.Request().Taken) != want {
					t.Errorf("%d hosts serve the run, and its request has %+v; want %d", n, second.Request().Taken, want)
				}
				for _, taken := range second.Request().Taken {
					if taken.Reused {
						t.Errorf("host %s was launched for the request, and counts as one of the pool", taken.InstanceID)
					}
				}
			})
		})
	}
}

// A caller that reserves more after the other one has settled gives that back.
func TestAReservationBehindAnAnswer(t *testing.T) {
	limits := limited(policy.Limits{HostsPerRepository: 3})
	inBubbleOf(t, limits, func(ctx context.Context, t *testing.T, w *world) {
		w.compute.SetCapacity("*", 1)
		d := demandOf(repository, "9", 2, 1, 8*time.Second)
		b, still := w.stillReplica(limits)
		first, second := w.newProvision(w.fleet, d), w.newProvision(b, d)
		stepUntil(ctx, t, first, func() bool { return len(first.Request().Taken) == 1 })
		w.reserve(ctx, "9", 1)
		still.set(func(ledger.Quota) {
			still.set(nil, nil)
			if err := w.fleet.Drive(ctx, first, patience); err != nil || w.used(ofRepository) != 1 {
				t.Errorf("%d hosts count for the one that was got: %v", w.used(ofRepository), err)
			}
		}, nil)
		stepUntil(ctx, t, second, func() bool { return w.used(ofRepository) == 2 })
		_ = w.fleet.Drive(ctx, second, patience)
		if n := w.used(ofRepository); n != 1 {
			t.Errorf("%d hosts count, want 1", n)
		}
	})
}

// A host in excess that an operator holds does not go back. That is tried every ten seconds.
func TestExcessThatIsHeld(t *testing.T) {
	limits := limited(policy.Limits{HostsPerRepository: 3})
	calls := 0
	inBubbleOf(t, limits, func(ctx context.Context, t *testing.T, w *world) {
		w.slowBoots(time.Hour)
		d := demandOf(repository, "9", 1, 1, 5*time.Minute)
		first := w.newProvision(w.fleet, d)
		stepUntil(ctx, t, first, func() bool { return len(first.Request().Taken) == 1 })
		if _, err := w.fleet.Hold(ctx, first.Request().Taken[0].InstanceID, time.Hour, "a look", time.Now()); err != nil {
			t.Fatal(err)
		}
		w.reserve(ctx, "9", 0)
		stepUntil(ctx, t, w.newProvision(w.fleet, demandOf(repository, "10", 3, 3, 5*time.Minute)), func() bool { return w.used(ofRepository) == 3 })
		second := w.newProvision(w.newFleet("b", limits, func(o *fleet.Options) { o.Guards = countedAccounts{o.Guards, &calls} }), d)
		end := time.Now().Add(time.Minute)
		for steps := 0; time.Now().Before(end); steps++ {
			progress, err := second.Step(ctx, time.Now())
			if err != nil || steps > 1000 {
				t.Fatalf("after %d steps: %v", steps, err)
			}
			time.Sleep(progress.Wait)
		}
		if n := len(w.serving("9")); n != 1 || calls < 6 || calls > 20 {
			t.Errorf("%d hosts serve the run, and the ledger was read %d times in a minute", n, calls)
		}
	})
}

// A host that another caller has settled with is in an answer. It does not go back, whatever the ledger says.
func TestExcessThatIsInAnAnswerStays(t *testing.T) {
	limits := limited(policy.Limits{HostsPerRepository: 3})
	inBubbleOf(t, limits, func(ctx context.Context, t *testing.T, w *world) {
		w.useOnce(ctx, 3)
		d := demandOf(repository, "9", 2, 1, time.Minute)
		first, second := w.newProvision(w.fleet, d), w.newProvision(w.newFleet("b", limits), d)
		stepUntil(ctx, t, first, func() bool { return len(first.Request().Taken) == 2 && len(w.records(lifecycle.StateRunning)) == 2 })
		stepUntil(ctx, t, second, func() bool { return len(second.Request().Taken) == 2 }) // and it has read no ledger yet
		w.reserve(ctx, "9", 1)
		if err := w.fleet.Drive(ctx, w.newProvision(w.fleet, demandOf(repository, "10", 2, 2, time.Minute)), patience); err != nil {
			t.Fatal(err)
		}
		stepUntil(ctx, t, first, func() bool { return first.Request().Settled() })
		for range 5 {
			_, _ = second.Step(ctx, time.Now())
		}
		for _, h := range first.Instances() {
			if r := w.record(h.HostKey); r.RunID != "9" || r.Assignment != h.Assignment {
				t.Errorf("host %s is in the answer and went back: %s", r.InstanceID, r.Reason)
			}
		}
		if len(first.Instances()) != 2 {
			t.Errorf("%d hosts are in the answer, want 2", len(first.Instances()))
		}
	})
}

// reserve sets what a run has reserved within the limit of its repository.
func (w *world) reserve(ctx context.Context, run string, hosts int) {
	w.t.Helper()
	l, err := w.store.QuotaLedger(ctx, ofRepository)
	if err != nil {
		w.t.Fatal(err)
	}
	e := l.ReservationOf(lifecycle.Request{Repository: repository, RunID: run, RequestID: "a"}, 0)
	e.Hosts = hosts
	if _, err := w.store.UpdateQuotaLedger(ctx, l.With(e)); err != nil {
		w.t.Fatal(err)
	}
}
