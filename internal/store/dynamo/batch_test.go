package dynamo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// partly answers a batch as a table does that is short of capacity: with at
// most so many rows, the rest unprocessed. DynamoDB Local always does all.
func (w world) partly(t *testing.T, operation string, rows int) (calls *atomic.Int64) {
	calls = new(atomic.Int64)
	w.proxy.Handle("dynamodb", operation, func(rw http.ResponseWriter, r *http.Request, ask forward) {
		calls.Add(1)
		var request map[string]map[string]json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		left := map[string]any{}
		for table, batch := range request["RequestItems"] {
			request["RequestItems"][table], left[table] = split(t, operation, batch, rows)
		}
		body, _ := json.Marshal(request) // it was JSON
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := ask(r)
		var answered map[string]any
		if err := json.Unmarshal(answer.Body, &answered); err != nil {
			t.Error(err)
		}
		for table, rest := range left {
			if rest == nil {
				delete(left, table)
			}
		}
		if operation == "BatchGetItem" {
			answered["UnprocessedKeys"] = left
		} else {
			answered["UnprocessedItems"] = left
		}
		answer.Body, _ = json.Marshal(answered)
		answer.Write(rw)
	})
	return calls
}

// split is what of a batch is done, and what is not; nil for nothing.
func split(t *testing.T, operation string, batch json.RawMessage, rows int) (done json.RawMessage, left any) {
	var list []json.RawMessage
	read := map[string]json.RawMessage{}
	if operation == "BatchGetItem" {
		if err := json.Unmarshal(batch, &read); err != nil {
			t.Error(err)
		}
		batch = read["Keys"]
	}
	if err := json.Unmarshal(batch, &list); err != nil {
		t.Error(err)
	}
	n := min(rows, len(list))
	done, _ = json.Marshal(list[:n])
	rest, _ := json.Marshal(list[n:])
	if operation != "BatchGetItem" {
		if n < len(list) {
			left = json.RawMessage(rest)
		}
		return done, left
	}
	if n < len(list) {
		left = map[string]json.RawMessage{"Keys": rest, "ConsistentRead": read["ConsistentRead"]}
	}
	read["Keys"] = done
	done, _ = json.Marshal(read)
	return done, left
}

func TestUnprocessedRowsAreAskedForAgain(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	var keys []string
	for n := range 130 {
		w.create(t, pooledRecord(hostKeyOf(n)))
		keys = append(keys, hostKeyOf(n))
	}
	calls := w.partly(t, "BatchGetItem", 30)
	got, err := w.Instances(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range got {
		seen[r.HostKey] = true
	}
	if len(got) != len(keys) || len(seen) != len(keys) {
		t.Errorf("got %d records of %d hosts, want %d of each", len(got), len(seen), len(keys))
	}
	if got := calls.Load(); got != 5 { // 30+30+30+10, 30
		t.Errorf("%d calls, want 5", got)
	}
}

func TestUnprocessedWritesAreSentAgain(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	calls := w.partly(t, "BatchWriteItem", 10)
	var added []lifecycle.Event
	for n := range 30 {
		e := newEvent("why")
		e.RunID = fmt.Sprint(n)
		added = append(added, e)
	}
	if err := w.AddEvents(t.Context(), added); err != nil {
		t.Fatal(err)
	}
	for n := range 30 {
		page, err := w.EventsOfRun(t.Context(), repository, fmt.Sprint(n), lifecycle.PageOf{})
		if err != nil || len(page.Items) != 1 {
			t.Errorf("run %d: got %v and error %v, want one event", n, page.Items, err)
		}
	}
	if got := calls.Load(); got != 4 { // 10+10+5, 5
		t.Errorf("%d calls, want 4", got)
	}
}

func TestATableThatTakesNothingIsUnavailable(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	w.proxy.Handle("dynamodb", "BatchGetItem", func(rw http.ResponseWriter, r *http.Request, _ forward) {
		var request map[string]json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		_, _ = fmt.Fprintf(rw, `{"Responses":{},"UnprocessedKeys":%s}`, request["RequestItems"])
	})
	_, err := w.Reports(t.Context(), []string{"a", "b"})
	if !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("got error %v, want %v", err, lifecycle.ErrUnavailable)
	}
}
