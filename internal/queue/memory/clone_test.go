package memory_test

import (
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/queue/memory"
)

func TestCloneIsIndependent(t *testing.T) {
	began := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	name := lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageSpot}
	message := func(id string) lifecycle.Message {
		return lifecycle.Message{InstanceID: id, ResourceClass: name.ResourceClass, UsageClass: name.UsageClass}
	}
	send := func(q *memory.Queue, ids ...string) {
		t.Helper()
		for _, id := range ids {
			if err := q.Send(t.Context(), message(id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	receive := func(q *memory.Queue) []lifecycle.Delivery {
		t.Helper()
		got, err := q.Receive(t.Context(), name, 10)
		if err != nil || len(got) == 0 {
			t.Fatalf("Receive: got %v and error %v", got, err)
		}
		return got
	}
	wantDump := func(what string, q *memory.Queue, want string) {
		t.Helper()
		if got := q.Dump(); got != want {
			t.Errorf("%s: got dump\n%swant\n%s", what, got, want)
		}
	}

	original := memory.New(func() time.Time { return began })
	send(original, "i-1", "i-2", "i-3")
	before := original.Dump()
	if strings.Count(before, "\n") != 3 {
		t.Errorf("dump of three messages:\n%s", before)
	}
	clone := original.Clone()
	wantDump("the clone", clone, before)
	got := receive(clone)
	wantDump("the original after its clone received", original, before)
	if err := clone.Delete(t.Context(), name, got[0].Handle); err != nil {
		t.Fatal(err)
	}
	send(clone, "i-4")
	wantDump("the original after its clone changed", original, before)

	after := clone.Dump()
	receive(original)
	send(original, "i-5")
	wantDump("the clone after its original changed", clone, after)

	twin := memory.New(func() time.Time { return began })
	send(twin, "i-1", "i-2", "i-3")
	wantDump("a queue that went the same way", twin, before)
}
