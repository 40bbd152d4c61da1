// Package queuetest is the conformance suite of the queue of idle hosts: what
// the use-cases rely on, whichever service is behind it.
package queuetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	// SendBody puts a body as it is into a queue.
	SendBody func(ctx context.Context, q lifecycle.QueueName, body string) error
}

// Options say how to open a service.
type Options struct {
	Now        func() time.Time
	Logger     hclog.Logger
	Visibility time.Duration
	Retention  time.Duration
}

const (
	visibility = 30 * time.Second
	retention  = time.Hour
)

// Run runs the suite. open makes a new service and ends it with the test.
func Run(t *testing.T, open func(t *testing.T, o Options) Service) {
	tests := []struct {
		name string
		test func(t *testing.T, w *world)
	}{
		{"a message comes as it was sent", testRoundTrip},
		{"an empty queue gives nothing", testEmpty},
		{"each class has a queue of its own", testClasses},
		{"at most limit messages come at once", testLimit},
		{"limits and batches have bounds", testBounds},
		{"a received message is hidden for a time", testVisibility},
		{"a message comes until it is deleted", testAtLeastOnce},
		{"a duplicate is a message of its own", testDuplicate},
		{"a returned message is visible at once", testReturn},
		{"a deleted message is gone", testDelete},
		{"an outdated handle does nothing", testStaleHandle},
		{"a foreign handle does nothing", testForeignHandle},
		{"a malformed body is logged and deleted", testMalformed},
		{"other producers may write their own way", testForeignBody},
		{"a message is kept for its retention", testRetention},
		{"64 receivers share the messages", testReceivers},
		{"a caller who has gone is told unavailable", testCancelled},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := &world{now: time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)}
			logger := hclog.New(&hclog.LoggerOptions{Output: &w.log, Mutex: &w.logMu})
			w.Service = open(t, Options{Now: w.clock, Logger: logger, Visibility: visibility, Retention: retention})
			test.test(t, w)
		})
	}
}

// world is a service with its clock and its log.
type world struct {
	Service
	mu    sync.Mutex
	now   time.Time
	logMu sync.Mutex
	log   bytes.Buffer
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) logged() string {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.log.String()
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
	if err := w.Queue.Send(t.Context(), messages...); err != nil {
		t.Fatalf("Send: %v", err)
	}
}

// receive takes what is visible now, ten at a time.
func (w *world) receive(t *testing.T, q lifecycle.QueueName) map[string]lifecycle.Delivery {
	t.Helper()
	found := map[string]lifecycle.Delivery{}
	for {
		deliveries, err := w.Queue.Receive(t.Context(), q, 10)
		if err != nil {
			t.Fatalf("Receive: %v", err)
		}
		if len(deliveries) == 0 {
			return found
		}
		for _, d := range deliveries {
			if _, ok := found[d.Message.InstanceID]; ok {
				t.Fatalf("%s came twice within its visibility", d.Message.InstanceID)
			}
			found[d.Message.InstanceID] = d
		}
	}
}

// wantIDs receives and checks which messages came.
func (w *world) wantIDs(t *testing.T, what string, q lifecycle.QueueName, want ...string) map[string]lifecycle.Delivery {
	t.Helper()
	got := w.receive(t, q)
	wanted, ids := map[string]bool{}, map[string]bool{}
	for _, id := range want {
		wanted[id] = true
	}
	for id := range got {
		ids[id] = true
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
