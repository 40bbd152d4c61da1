package fleet_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// sendingQueue counts the calls that send messages, and may fail them.
type sendingQueue struct {
	fleet.Queue
	fail error

	mu             sync.Mutex
	sent, messages int
}

func (q *sendingQueue) Send(ctx context.Context, messages ...lifecycle.Message) error {
	q.mu.Lock()
	q.sent, q.messages = q.sent+1, q.messages+len(messages)
	q.mu.Unlock()
	if q.fail != nil {
		return q.fail
	}
	return q.Queue.Send(ctx, messages...)
}

// The messages of hosts that are released together are sent ten at a time, by the caller that waits as by a sweep. Those that are lost
// cost nothing but a look at the index.
func TestMessagesOfAReleaseAreSentTogether(t *testing.T) {
	const hosts = 45
	for _, test := range []struct {
		name string
		wait bool
		fail error
	}{{"by the caller", true, nil}, {"by a sweep", false, nil}, {"all lost", true, errors.New("the queue is away")}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				q := &sendingQueue{Queue: w.queue, fail: test.fail}
				w.fleet = w.newFleet("a", func(o *fleet.Options) { o.Queue = q })
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				go w.agents(ctx)
				w.mustProvision(ctx, demand("1", "r", hosts))
				if !test.wait {
					go w.fleet.Sweep(ctx)
				}
				w.release(ctx, "1", test.wait)
				pooled := func() bool {
					n := 0
					for _, r := range w.records() {
						if r.Pooled() {
							n++
						}
					}
					return n == hosts
				}
				w.until("all hosts are pooled", 3*time.Minute, pooled)
				time.Sleep(time.Second)
				if most := (hosts+9)/10 + 2; q.messages != hosts || q.sent > most {
					t.Errorf("%d messages in %d calls, want %d in at most %d", q.messages, q.sent, hosts, most)
				}
				if again := w.mustProvision(ctx, demand("2", "r", hosts)); len(again) != hosts || w.machines() != hosts {
					t.Errorf("%d hosts for the next run, of %d machines", len(again), w.machines())
				}
			})
		})
	}
}

// A sweep that stops has sent the messages of the hosts that it has pooled until then.
func TestASweepThatStopsSendsItsMessages(t *testing.T) {
	writes := &awayAfterOne{}
	q := &sendingQueue{}
	inBubbleOf(t, func(o *fleet.Options) {
		writes.Store, q.Queue = o.Store, o.Queue
		o.Store, o.Queue = writes, q
	}, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "r", 2))
		w.release(ctx, "1", false)
		time.Sleep(20 * time.Second)
		writes.on = true
		if err := w.fleet.Drive(ctx, w.fleet.NewDueSweep(), 0); !errors.Is(err, lifecycle.ErrUnavailable) {
			t.Errorf("the sweep ended with error %v, want %v", err, lifecycle.ErrUnavailable)
		}
		pooled := slices.DeleteFunc(w.records(), func(r lifecycle.Record) bool { return !r.Pooled() })
		if len(pooled) != 1 || q.messages != 1 {
			t.Errorf("%d messages of %d pooled hosts, want that of one", q.messages, len(pooled))
		}
	})
}

// awayAfterOne answers to one more write of a host once it is on.
type awayAfterOne struct {
	fleet.Store
	on   bool
	done int
}

func (s *awayAfterOne) UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	if s.on {
		if s.done++; s.done > 1 {
			return lifecycle.Record{}, lifecycle.ErrUnavailable
		}
	}
	return s.Store.UpdateInstance(ctx, r)
}
