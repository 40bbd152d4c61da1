package queuetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func testRoundTrip(t *testing.T, w *world) {
	w.send(t, message("i-1"))
	equal(t, "message", message("i-1"), w.receive(t, large)["i-1"].Message)
}

func testEmpty(t *testing.T, w *world) {
	w.send(t)
	w.wantIDs(t, "before anything was sent", large)
	w.send(t, message("i-1"))
	w.delete(t, large, w.receive(t, large)["i-1"].Handle)
	w.wantIDs(t, "after the last was deleted", large)
}

func testClasses(t *testing.T, w *world) {
	spot, small := message("i-spot"), message("i-small")
	spot.UsageClass, small.ResourceClass = lifecycle.UsageSpot, "small"
	w.send(t, message("i-large"), spot, small)
	w.wantIDs(t, "large on demand", large, "i-large")
	w.wantIDs(t, "large spot", lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageSpot}, "i-spot")
	w.wantIDs(t, "small on demand", lifecycle.QueueName{ResourceClass: "small", UsageClass: lifecycle.UsageOnDemand}, "i-small")
	w.wantIDs(t, "small spot", lifecycle.QueueName{ResourceClass: "small", UsageClass: lifecycle.UsageSpot})
}

func testLimit(t *testing.T, w *world) {
	for _, id := range ids(12) {
		w.send(t, message(id))
	}
	seen := map[string]bool{}
	for range 40 { // a service may hand out fewer than it has
		got, err := w.Queue.Receive(t.Context(), large, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 3 {
			t.Fatalf("got %d messages, asked for 3", len(got))
		}
		for _, d := range got {
			seen[d.Message.InstanceID] = true
		}
	}
	equal(t, "messages", ids(12), slices.Sorted(maps.Keys(seen)))
}

func testBounds(t *testing.T, w *world) {
	for _, limit := range []int{-1, 0, 11} {
		if _, err := w.Queue.Receive(t.Context(), large, limit); err == nil {
			t.Errorf("Receive with limit %d: got no error", limit)
		}
	}
	if err := w.Queue.Delete(t.Context(), large, ids(11)...); err == nil {
		t.Error("Delete of 11: got no error")
	}
	if err := w.Queue.Return(t.Context(), large, ids(11)...); err == nil {
		t.Error("Return of 11: got no error")
	}
	w.delete(t, large)
	w.giveBack(t, large)
}

func testVisibility(t *testing.T, w *world) {
	w.send(t, message("i-1"), message("i-2"))
	first := w.wantIDs(t, "at first", large, "i-1", "i-2")
	w.almost(w.visibility)
	w.wantHidden(t, "just before the end", large, []string{"i-1", "i-2"})
	w.rest(w.visibility)
	again := w.wantIDs(t, "at the end", large, "i-1", "i-2")
	if first["i-1"].Handle == again["i-1"].Handle {
		t.Error("two deliveries have one handle")
	}
}

func testAtLeastOnce(t *testing.T, w *world) {
	w.send(t, message("i-1"))
	for range 5 {
		w.wantIDs(t, "not deleted yet", large, "i-1")
		w.pass(w.visibility)
	}
}

func testDuplicate(t *testing.T, w *world) {
	w.send(t, message("i-1"))
	w.send(t, message("i-1"))
	one, err := w.Queue.Receive(t.Context(), large, 1)
	if err != nil || len(one) != 1 {
		t.Fatalf("first: got %v and error %v", one, err)
	}
	other, err := w.Queue.Receive(t.Context(), large, 1)
	if err != nil || len(other) != 1 {
		t.Fatalf("second: got %v and error %v", other, err)
	}
	w.delete(t, large, one[0].Handle)
	w.pass(w.visibility)
	w.wantIDs(t, "after one was deleted", large, "i-1")
}

func testReturn(t *testing.T, w *world) {
	w.send(t, message("i-1"), message("i-2"), message("i-3"))
	got := w.receive(t, large)
	w.pass(time.Second)
	w.giveBack(t, large, got["i-1"].Handle, got["i-3"].Handle)
	again := w.wantHidden(t, "after two were returned", large, []string{"i-2"}, "i-1", "i-3")
	w.delete(t, large, again["i-1"].Handle, again["i-3"].Handle)
	w.pass(w.visibility - time.Second)
	w.wantIDs(t, "the other, in its own time", large, "i-2")
}

func testDelete(t *testing.T, w *world) {
	w.send(t, message("i-1"), message("i-2"), message("i-3"))
	got := w.receive(t, large)
	w.delete(t, large, got["i-1"].Handle, got["i-2"].Handle)
	w.delete(t, large, got["i-1"].Handle)
	w.giveBack(t, large, got["i-2"].Handle)
	w.pass(w.visibility)
	w.wantIDs(t, "after two were deleted", large, "i-3")
}

func testStaleHandle(t *testing.T, w *world) {
	w.send(t, message("i-1"))
	stale := w.receive(t, large)["i-1"].Handle
	w.pass(w.visibility)
	fresh := w.wantIDs(t, "after its visibility", large, "i-1")["i-1"].Handle
	if !w.Loose {
		w.giveBack(t, large, stale)
		w.wantIDs(t, "after a return with the outdated handle", large)
		w.delete(t, large, stale)
		w.pass(w.visibility)
		w.wantIDs(t, "after a delete with the outdated handle", large, "i-1")
		w.delete(t, large, fresh)
		w.pass(w.visibility)
		fresh = w.wantIDs(t, "after a delete with the handle before the last", large, "i-1")["i-1"].Handle
	}
	w.delete(t, large, fresh)
	w.giveBack(t, large, stale, fresh)
	w.delete(t, large, stale)
	w.pass(w.visibility)
	w.wantIDs(t, "after a delete with the last handle, and outdated ones", large)
}

func testForeignHandle(t *testing.T, w *world) {
	w.send(t, message("i-1"))
	handle := w.receive(t, large)["i-1"].Handle
	spot := lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageSpot}
	w.delete(t, spot, handle)
	w.giveBack(t, spot, handle)
	w.delete(t, large, "", "nonsense", "9999.1", "-1", handle+"0")
	w.giveBack(t, large, "", "nonsense", "9999.1", "-1", handle+"0")
	w.wantHidden(t, "while hidden", large, []string{"i-1"})
	w.pass(w.visibility)
	w.wantIDs(t, "after its visibility", large, "i-1")
}

func testMalformed(t *testing.T, w *world) {
	bodies := []string{
		"{", "null", "[]", `"i-1"`, `{"id":7}`, `{"resourceClass":"large"}`, `{"id":"i-1","assignment":-1}`,
		`{"id":"i-1","threshold":"soon"}`, `{"id":"` + strings.Repeat("x", 9<<10) + `"}`,
	}
	for _, body := range bodies {
		if err := w.SendBody(t.Context(), large, body); err != nil {
			t.Fatalf("SendBody(%.20q): %v", body, err)
		}
	}
	for _, body := range []string{"", "\x00\xff"} {
		switch err := w.SendBody(t.Context(), large, body); {
		case errors.Is(err, lifecycle.ErrRefused):
		case err != nil:
			t.Fatalf("SendBody(%.20q): %v", body, err)
		default:
			bodies = append(bodies, body)
		}
	}
	w.send(t, message("i-good"))
	got := map[string]bool{}
	for range len(bodies) + 1 { // a service may hand out fewer than it has
		deliveries, err := w.Queue.Receive(t.Context(), large, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range deliveries {
			got[d.Message.InstanceID] = true
		}
	}
	equal(t, "messages", map[string]bool{"i-good": true}, got)
	if n := strings.Count(w.logged(), "cannot be parsed"); n != len(bodies) {
		t.Errorf("logged %d malformed messages, want %d:\n%s", n, len(bodies), w.logged())
	}
	w.pass(w.visibility)
	w.wantIDs(t, "after the malformed ones were deleted", large, "i-good")
	if n := strings.Count(w.logged(), "cannot be parsed"); n != len(bodies) {
		t.Errorf("a malformed message came again:\n%s", w.logged())
	}
}

func testForeignBody(t *testing.T, w *world) {
	if err := w.SendBody(t.Context(), large, `{"instanceId":"i-1","cpu":2,"colour":"blue"}`); err != nil {
		t.Fatal(err)
	}
	want := lifecycle.Message{InstanceID: "i-1", HostKey: "i-1", CPU: 2}
	equal(t, "message", want, w.receive(t, large)["i-1"].Message)
}

func testRetention(t *testing.T, w *world) {
	w.send(t, message("i-old"))
	w.pass(w.retention / 2)
	w.send(t, message("i-new"))
	w.almost(w.retention / 2)
	w.wantIDs(t, "just before the first expires", large, "i-old", "i-new")
	w.rest(w.retention / 2)
	w.pass(w.visibility - time.Nanosecond)
	w.wantIDs(t, "after the first expired", large, "i-new")
}

// testReceivers: within their visibility no two receivers have one message.
func testReceivers(t *testing.T, w *world) {
	const receivers = 64
	for _, id := range ids(100) {
		w.send(t, message(id))
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for i := range receivers {
		wg.Go(func() {
			deliveries, err := w.Queue.Receive(t.Context(), large, 1+i%3)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, d := range deliveries {
				seen[d.Message.InstanceID]++
			}
		})
	}
	wg.Wait()
	for id := range w.receive(t, large) {
		seen[id]++
	}
	want := map[string]int{}
	for _, id := range ids(100) {
		want[id] = 1
		if w.Loose {
			want[id] = max(1, seen[id])
		}
	}
	equal(t, "how often each message came", want, seen)
}

func testCancelled(t *testing.T, w *world) {
	w.send(t, message("i-1"))
	handle := w.receive(t, large)["i-1"].Handle
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("gone"))
	wantUnavailable(t, "Send", w.Queue.Send(ctx, message("i-2")), context.Canceled)
	_, err := w.Queue.Receive(ctx, large, 1)
	wantUnavailable(t, "Receive", err, context.Canceled)
	wantUnavailable(t, "Delete", w.Queue.Delete(ctx, large, handle), context.Canceled)
	wantUnavailable(t, "Return", w.Queue.Return(ctx, large, handle), context.Canceled)
	w.wantHidden(t, "while hidden", large, []string{"i-1"})
	w.pass(w.visibility)
	w.wantIDs(t, "what is there", large, "i-1")
}
