// Package queuetest is the conformance suite of the queue of idle hosts: what
// the use-cases rely on, whichever service is behind it.
package queuetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Queue is the use-cases' port.
type Queue interface {
	Send(ctx context.Context, messages ...lifecycle.Message) error
	Receive(ctx context.Context, q lifecycle.QueueName, limit int) ([]lifecycle.Delivery, error)
	Delete(ctx context.Context, q lifecycle.QueueName, handles ...string) error
	Return(ctx context.Context, q lifecycle.QueueName, handles ...string) error
}

// Service is one queue service under test, empty at first.
type Service struct {
	Queue Queue
	// SendBody puts a body as it is into a queue. ErrRefused: the service takes
	// no such body, so none can be in a queue of it.
	SendBody func(ctx context.Context, q lifecycle.QueueName, body string) error
	// Loose says that the service is less strict than it might be: two who
	// receive at once may get the same message, and the handle of an earlier
	// delivery may still do something. No use-case relies on the contrary.
	Loose bool
}

// Options say how to open a service.
type Options struct {
	Now        func() time.Time
	Logger     hclog.Logger
	Visibility time.Duration
	Retention  time.Duration
}

// test is one of the suite.
type test struct {
	name string
	test func(t *testing.T, w *world)
	// waits are the times that the test lets pass. All others can be long.
	waits kind
}

type kind int

const (
	forNothing kind = iota
	forVisibility
	forRetention
)

var suite = []test{
	{"a message comes as it was sent", testRoundTrip, forNothing},
	{"an empty queue gives nothing", testEmpty, forNothing},
	{"each class has a queue of its own", testClasses, forNothing},
	{"at most limit messages come at once", testLimit, forNothing},
	{"limits and batches have bounds", testBounds, forNothing},
	{"a received message is hidden for a time", testVisibility, forVisibility},
	{"a message comes until it is deleted", testAtLeastOnce, forVisibility},
	{"a duplicate is a message of its own", testDuplicate, forVisibility},
	{"a returned message is visible at once", testReturn, forVisibility},
	{"a deleted message is gone", testDelete, forVisibility},
	{"an outdated handle does nothing", testStaleHandle, forVisibility},
	{"a foreign handle does nothing", testForeignHandle, forVisibility},
	{"a malformed body is logged and deleted", testMalformed, forVisibility},
	{"other producers may write their own way", testForeignBody, forNothing},
	{"a message is kept for its retention", testRetention, forRetention},
	{"64 receivers share the messages", testReceivers, forNothing},
	{"a caller who has gone is told unavailable", testCancelled, forVisibility},
}

// Times of a service whose clock is the suite's.
const (
	visibility = 30 * time.Second
	retention  = time.Hour
)

// Run runs the suite. open makes a new service, whose clock is o.Now, and ends it with the test.
func Run(t *testing.T, open func(t *testing.T, o Options) Service) {
	for _, test := range suite {
		t.Run(test.name, func(t *testing.T) {
			w := &world{visibility: visibility, retention: retention, now: time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)}
			w.open(t, open)
			test.test(t, w)
		})
	}
}

// Times of a service that keeps its own: long enough for a test to do within
// them what it must. Where a machine is so busy that they are not, what comes
// again or is gone by then is not held against the service (world.mayBeBack).
const (
	realVisibility = 2 * time.Second
	realRetention  = 8 * time.Second
)

// RunInRealTime runs the suite on a service whose clock cannot be set. Its
// tests run all at once, since they wait much and do little.
func RunInRealTime(t *testing.T, open func(t *testing.T, o Options) Service) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, test := range suite {
		w := &world{visibility: visibility, retention: retention, real: true}
		if test.waits != forNothing {
			w.visibility = realVisibility
		}
		if test.waits == forRetention {
			w.retention = realRetention
		}
		wg.Go(func() {
			t.Run(test.name, func(t *testing.T) {
				w.open(t, open)
				test.test(t, w)
			})
		})
	}
}

var large = lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}

func message(id string) lifecycle.Message {
	return lifecycle.Message{
		InstanceID: id, ResourceClass: "large", InstanceType: "c6i.large", CPU: 2, MemoryMiB: 4096,
		UsageClass: lifecycle.UsageOnDemand, HostKey: "role:" + id, Pool: "default", Assignment: 2,
		Threshold: time.Date(2026, 3, 4, 5, 11, 7, 123456789, time.UTC), TrustKey: "acme/site",
	}
}

func (w *world) send(t *testing.T, messages ...lifecycle.Message) {
	t.Helper()
	for _, m := range messages {
		w.sent[m.InstanceID] = time.Now()
	}
	if err := w.Queue.Send(t.Context(), messages...); err != nil {
		t.Fatalf("Send: %v", err)
	}
}

// receive takes what is visible now, ten at a time.
func (w *world) receive(t *testing.T, q lifecycle.QueueName) map[string]lifecycle.Delivery {
	t.Helper()
	found := map[string]lifecycle.Delivery{}
	for {
		began := time.Now()
		deliveries, err := w.Queue.Receive(t.Context(), q, 10)
		if err != nil {
			t.Fatalf("Receive: %v", err)
		}
		if len(deliveries) == 0 {
			return found
		}
		for _, d := range deliveries {
			id := d.Message.InstanceID
			if _, ok := found[id]; ok && !w.mayBeBack(id) {
				t.Fatalf("%s came twice within its visibility", id)
			}
			found[id] = d
			w.received[id] = began
		}
	}
}

// wantIDs receives and checks which messages came.
func (w *world) wantIDs(t *testing.T, what string, q lifecycle.QueueName, want ...string) map[string]lifecycle.Delivery {
	t.Helper()
	return w.wantHidden(t, what, q, nil, want...)
}

// wantHidden is wantIDs while the messages of some ids are hidden.
func (w *world) wantHidden(t *testing.T, what string, q lifecycle.QueueName, hidden []string, want ...string) map[string]lifecycle.Delivery {
	t.Helper()
	received := maps.Clone(w.received)
	got := w.receiveAll(t, q, want)
	wanted, ids := map[string]bool{}, map[string]bool{}
	for _, id := range want {
		if got[id].Handle != "" || !w.mayBeGone(id) {
			wanted[id] = true
		}
	}
	for id := range got {
		if !w.real || !slices.Contains(hidden, id) || !over(received[id], w.visibility) {
			ids[id] = true
		}
	}
	equal(t, what, wanted, ids)
	return got
}

func (w *world) delete(t *testing.T, q lifecycle.QueueName, handles ...string) {
	t.Helper()
	if err := w.Queue.Delete(t.Context(), q, handles...); err != nil {
		t.Fatalf("Delete: %v", err)
	}
}

func (w *world) giveBack(t *testing.T, q lifecycle.QueueName, handles ...string) {
	t.Helper()
	if err := w.Queue.Return(t.Context(), q, handles...); err != nil {
		t.Fatalf("Return: %v", err)
	}
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantUnavailable(t *testing.T, what string, err, cause error) {
	t.Helper()
	if !errors.Is(err, lifecycle.ErrUnavailable) || !errors.Is(err, cause) {
		t.Errorf("%s: got error %v, want %v for %v", what, err, lifecycle.ErrUnavailable, cause)
	}
}

func ids(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("i-%03d", i)
	}
	return ids
}
