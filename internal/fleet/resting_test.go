package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// longIdle has the hosts of a pool wait for hours, and so many of a group stay awake.
func longIdle(awake int) func(*fleet.Options) {
	return func(o *fleet.Options) {
		p := o.Pools["default"]
		p.Policy.IdleTime, p.Policy.Awake = 4*time.Hour, awake
		o.Pools["default"] = p
	}
}

// waitInPool puts hosts into the pool, the first the longest pooled, and has them wait for so long. It returns their keys.
func (w *world) waitInPool(ctx context.Context, hosts int, long time.Duration) (keys []string) {
	w.t.Helper()
	for range hosts {
		w.pooled(ctx, repository, true)
	}
	for _, r := range w.records(lifecycle.StateIdle) {
		r.Threshold, r.DueAt = r.PooledAt.Add(4*time.Hour), r.PooledAt.Add(5*time.Minute)
		if _, err := w.store.UpdateInstance(ctx, r); err != nil {
			w.t.Fatal(err)
		}
	}
	page, err := w.store.PooledInstances(ctx, "default", largeOnDemand, repository, lifecycle.PageOf{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range page.Items {
		keys = append(keys, r.HostKey)
	}
	w.drainQueue(ctx)
	for _, r := range page.Items {
		r.Threshold = r.PooledAt.Add(4 * time.Hour)
		if err := w.queue.Send(ctx, r.Message()); err != nil {
			w.t.Fatal(err)
		}
	}
	time.Sleep(long)
	return keys
}

var largeOnDemand = lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}

// resting are the keys of hosts that rest, of those given.
func (w *world) resting(keys []string) (resting []string) {
	for _, key := range keys {
		if w.record(key).Resting() {
			resting = append(resting, key)
		}
	}
	return resting
}

// messages are the hosts whose messages the queue gives, each as often as it does.
func (w *world) messages(ctx context.Context) map[string]int {
	w.t.Helper()
	found := map[string]int{}
	var handles []string
	for {
		got, err := w.queue.Receive(ctx, largeOnDemand, 10)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(got) == 0 {
			break
		}
		for _, d := range got {
			found[d.Message.HostKey]++
			handles = append(handles, d.Handle)
		}
	}
	for _, handle := range handles {
		if err := w.queue.Return(ctx, largeOnDemand, handle); err != nil {
			w.t.Fatal(err)
		}
	}
	return found
}

func awakeOnly(keys, resting []string) map[string]int {
	want := map[string]int{}
	for _, key := range keys {
		want[key] = 1
	}
	for _, key := range resting {
		delete(want, key)
	}
	return want
}

// TestSpareHostsRest: once hosts have waited for long, all but the newest rest, and the queue has the messages of those alone.
func TestSpareHostsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t, longIdle(3)), t.Context()
		keys := w.waitInPool(ctx, 25, 5*time.Minute-time.Second)
		w.sweepOnce(ctx, w.fleet.NewDueSweep())
		if got := w.resting(keys); len(got) > 0 {
			t.Errorf("%d hosts rest before their time", len(got))
		}
		time.Sleep(2 * time.Second)
		w.sweepOnce(ctx, w.fleet.NewDueSweep())
		if diff := cmp.Diff(keys[:22], w.resting(keys)); diff != "" {
			t.Errorf("the hosts that rest (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(awakeOnly(keys, keys[:22]), w.messages(ctx)); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
	})
}

// TestHostsOfShortIdleTimeDoNotRest: nor do those that listen, or where nothing is to rest.
func TestHostsThatNeverRest(t *testing.T) {
	for name, change := range map[string]func(*lifecycle.Policy){
		"idle time as long as the wait": func(p *lifecycle.Policy) { p.IdleTime = p.RestAfter },
		"hot hosts":                     func(p *lifecycle.Policy) { p.Standby = lifecycle.StandbyListening },
		"switched off":                  func(p *lifecycle.Policy) { p.RestAfter = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, ctx := newWorld(t, longIdle(1), func(o *fleet.Options) {
					p := o.Pools["default"]
					change(&p.Policy)
					o.Pools["default"] = p
				}), t.Context()
				keys := w.waitInPool(ctx, 5, 6*time.Minute)
				w.sweepOnce(ctx, w.fleet.NewDueSweep())
				if got := w.resting(keys); len(got) > 0 {
					t.Errorf("%d hosts rest", len(got))
				}
			})
		})
	}
}

// rested is a world in which all hosts but so many have gone to rest.
func rested(t *testing.T, hosts, awake int, change ...func(*fleet.Options)) (*world, []string) {
	t.Helper()
	w := newWorld(t, append([]func(*fleet.Options){longIdle(awake)}, change...)...)
	keys := w.waitInPool(t.Context(), hosts, 6*time.Minute)
	w.sweepOnce(t.Context(), w.fleet.NewDueSweep())
	if n := len(w.resting(keys)); n != hosts-awake {
		t.Fatalf("%d hosts rest, want %d", n, hosts-awake)
	}
	return w, keys
}

// TestAClaimTakesHostsThatAreAwake and wakes the next ones in their place, which have a message again.
func TestAClaimTakesHostsThatAreAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, keys := rested(t, 9, 3)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.agents(ctx)
		got := map[string]bool{}
		for _, r := range w.mustProvision(ctx, demand("1", "a", 2)) {
			got[r.HostKey] = true
		}
		for _, key := range keys[:6] {
			if got[key] {
				t.Errorf("host %s was taken, which rested while others were awake", key)
			}
		}
		if diff := cmp.Diff(keys[:4], w.resting(keys)); diff != "" {
			t.Errorf("the hosts that rest (-want +got):\n%s", diff)
		}
		want := awakeOnly(keys, keys[:4])
		for key := range got {
			delete(want, key)
		}
		if diff := cmp.Diff(want, w.messages(ctx)); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
	})
}

// TestABurstTakesHostsThatRest: nothing is launched while one is there, in one request or in many.
func TestABurstTakesHostsThatRest(t *testing.T) {
	for name, requests := range map[string]int{"one request": 1, "many requests": 24} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := rested(t, 24, 3)
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				go w.agents(ctx)
				done := make(chan error)
				for n := range requests {
					go func() {
						_, err := w.provision(ctx, demand(fmt.Sprint(n), "a", 24/requests))
						done <- err
					}()
				}
				for range requests {
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
				if n := w.machines(); n != 24 {
					t.Errorf("%d machines live, want the 24 that waited", n)
				}
				if n := len(w.records(lifecycle.StateRunning)); n != 24 {
					t.Errorf("%d hosts are ready, want 24", n)
				}
			})
		})
	}
}

// TestTheNextLookWakes: what a crash left asleep is awake again at the next look, and has its message.
func TestTheNextLookWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, keys := rested(t, 4, 2)
		ctx := t.Context()
		for _, key := range keys[2:] { // another replica took them, and crashed before it woke others
			r := w.record(key)
			claim := lifecycle.Claim{
				HostKey: key, Assignment: r.Assignment, TrustKey: r.TrustKey, Now: time.Now(), Margin: time.Second, Awake: true,
				RunID: "9", Repository: repository, RequestID: "z", Threshold: time.Now().Add(2 * time.Hour),
				Registration: &lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: "token"},
			}
			if _, err := w.store.ClaimInstance(ctx, claim); err != nil {
				t.Fatal(err)
			}
		}
		w.drainQueue(ctx)
		time.Sleep(7 * time.Minute)
		w.sweepOnce(ctx, w.fleet.NewDueSweep())
		if got := w.resting(keys); len(got) > 0 {
			t.Errorf("%v rest, want none", got)
		}
		if diff := cmp.Diff(map[string]int{keys[0]: 1, keys[1]: 1}, w.messages(ctx)); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
	})
}

// TestTwoReplicasRest: two that sweep at once leave as many awake as one.
func TestTwoReplicasRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t, longIdle(3)), t.Context()
		other := w.newFleet("b", longIdle(3))
		keys := w.waitInPool(ctx, 12, 6*time.Minute)
		sweeps := []fleet.Op{w.fleet.NewDueSweep(), other.NewDueSweep()}
		for len(sweeps) > 0 { // step by step, in turns
			p, err := sweeps[0].Step(ctx, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if sweeps = append(sweeps[1:], sweeps[0]); p.Done {
				sweeps = sweeps[:len(sweeps)-1]
			}
		}
		if diff := cmp.Diff(keys[:9], w.resting(keys)); diff != "" {
			t.Errorf("the hosts that rest (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(awakeOnly(keys, keys[:9]), w.messages(ctx)); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
	})
}

// halfQueue is a queue that receives or deletes nothing while it is set so.
type halfQueue struct {
	fleet.Queue
	receives, deletes error
}

func (q *halfQueue) Receive(ctx context.Context, name lifecycle.QueueName, limit int) ([]lifecycle.Delivery, error) {
	if q.receives != nil {
		return nil, q.receives
	}
	return q.Queue.Receive(ctx, name, limit)
}

func (q *halfQueue) Delete(ctx context.Context, name lifecycle.QueueName, handles ...string) error {
	if q.deletes != nil {
		return q.deletes
	}
	return q.Queue.Delete(ctx, name, handles...)
}

// TestMessagesThatStayInTheirQueue: hosts go to rest though the queue does not answer. Their messages stay, those of the others too, and the log says so once.
func TestMessagesThatStayInTheirQueue(t *testing.T) {
	for name, q := range map[string]*halfQueue{"not received": {receives: errDamaged}, "not deleted": {deletes: errDamaged}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logs := &lockedBuffer{}
				w, keys := rested(t, 6, 3, func(o *fleet.Options) {
					q.Queue, o.Queue, o.Log = o.Queue, q, hclog.New(&hclog.LoggerOptions{Output: logs})
				})
				if n := strings.Count(logs.String(), "messages of hosts that rest may be left in their queue"); n != 1 {
					t.Errorf("the log has %d lines about it, want 1:\n%s", n, logs)
				}
				time.Sleep(10 * time.Minute) // what was read is visible again
				if diff := cmp.Diff(awakeOnly(keys, nil), w.messages(t.Context())); diff != "" {
					t.Errorf("messages (-want +got):\n%s", diff)
				}
			})
		})
	}
}
