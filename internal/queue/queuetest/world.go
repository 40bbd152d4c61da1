package queuetest

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// world is a service with its clock and its log.
type world struct {
	Service
	visibility, retention time.Duration
	// real: the service's clock is that of the machine.
	real bool

	mu  sync.Mutex
	now time.Time // if not real

	logMu sync.Mutex
	log   bytes.Buffer

	// When each message was sent, and when the receive began that brought it last, by the machine's clock.
	sent, received map[string]time.Time
}

func (w *world) open(t *testing.T, open func(t *testing.T, o Options) Service) {
	t.Helper()
	w.sent, w.received = map[string]time.Time{}, map[string]time.Time{}
	logger := hclog.New(&hclog.LoggerOptions{Output: &w.log, Mutex: &w.logMu})
	w.Service = open(t, Options{Now: w.clock, Logger: logger, Visibility: w.visibility, Retention: w.retention})
}

func (w *world) clock() time.Time {
	if w.real {
		return time.Now()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// moment is more than two clocks on one machine, or the rounding of one, differ.
const moment = 50 * time.Millisecond

// pass lets d pass.
func (w *world) pass(d time.Duration) {
	if w.real {
		time.Sleep(d + moment) // the service's clock cannot be set
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// almost lets d pass except for its last moment. In real time it waits for nothing, or
// all of d might pass on a busy machine.
func (w *world) almost(d time.Duration) {
	if !w.real {
		w.pass(d - time.Nanosecond)
	}
}

// rest lets the rest of d pass after almost.
func (w *world) rest(d time.Duration) {
	if w.real {
		w.pass(d)
		return
	}
	w.pass(time.Nanosecond)
}

func (w *world) logged() string {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.log.String()
}

// patience is how long a message in real time may be late: on a busy machine
// everything is. It is less than the visibility that services have by default,
// so a service that ignores the visibility it was given is found out.
const patience = 20 * time.Second

// receiveAll receives; in real time until all that are wanted have come, since a service may be late.
func (w *world) receiveAll(t *testing.T, q lifecycle.QueueName, want []string) map[string]lifecycle.Delivery {
	t.Helper()
	got := w.receive(t, q)
	for began := time.Now(); w.real && time.Since(began) < patience && w.lacks(got, want); {
		time.Sleep(moment)
		for id, d := range w.receive(t, q) {
			got[id] = d
		}
	}
	return got
}

func (w *world) lacks(got map[string]lifecycle.Delivery, want []string) bool {
	for _, id := range want {
		if _, ok := got[id]; !ok && !w.mayBeGone(id) {
			return true
		}
	}
	return false
}

// mayBeBack: so much time has passed since the message was received that it may be visible again. Only a
// stalled machine makes it so where a test expects it to be hidden.
func (w *world) mayBeBack(id string) bool { return w.real && over(w.received[id], w.visibility) }

// mayBeGone: so much time has passed since the message was sent that it may have expired.
func (w *world) mayBeGone(id string) bool { return w.real && over(w.sent[id], w.retention) }

func over(since time.Time, d time.Duration) bool { return !since.IsZero() && time.Since(since) >= d }
