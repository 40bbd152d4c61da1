package dynamo_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// sizeOf is what DynamoDB counts of an item or value. Source: "DynamoDB item
// sizes and formats" in its developer guide.
func sizeOf(v any) int {
	switch v := v.(type) {
	case map[string]types.AttributeValue:
		n := 0
		for name, value := range v {
			n += len(name) + sizeOf(value)
		}
		return n
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + sizeOf(v.Value)
	case *types.AttributeValueMemberL:
		n := 3 + len(v.Value)
		for _, element := range v.Value {
			n += sizeOf(element)
		}
		return n
	case *types.AttributeValueMemberN:
		return len(v.Value)/2 + 2
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	}
	return 1
}

// TestSizes: a write costs a unit for each KB, so the rows that are written all
// the time must stay below one, and the largest well below the 400 KB that a
// row may have.
func TestSizes(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	const kib = 1 << 10
	check := func(name string, table string, key map[string]string, limit int) {
		t.Helper()
		size := sizeOf(w.item(t, table, key))
		t.Logf("%s: %d bytes", name, size)
		if size == 0 || size > limit {
			t.Errorf("%s: %d bytes, want at most %d", name, size, limit)
		}
	}

	w.create(t, pooledRecord(hostKeyOf(0)), pooledRecord(hostKeyOf(1)))
	check("a pooled host", "remuda-instances", hostRow(0), kib)
	if _, err := w.ClaimInstance(t.Context(), claimOf(hostKeyOf(1), "12345678901")); err != nil {
		t.Fatal(err)
	}
	check("a claimed host with its registration token", "remuda-instances", hostRow(1), kib)
	r, err := w.Instance(t.Context(), hostKeyOf(1))
	if err != nil {
		t.Fatal(err)
	}
	r.State, r.Registration, r.RuntimeEndsAt = lifecycle.StateRunning, nil, r.Threshold
	if _, err := w.UpdateInstance(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	check("a running host", "remuda-instances", hostRow(1), kib)

	p := lifecycle.Report{
		HeartbeatAt: began, BootID: "c6c5b3f0-6d0e-4d3b-8a55-5b0e1a6f2a11", AgentVersion: "1.2.3", Assignment: 3,
		Signal: lifecycle.SignalRegOK, Busy: true, RegisteredAt: began, Jobs: 5, RunnerVersion: "2.330.0",
	}
	if err := w.ForHost(hostKeyOf(0)).PutReport(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	check("a report", "remuda-reports", hostRow(0), 300) // 10,000 in 300 eventually consistent read units need 240

	q := newRequest("4f9c2b6e-7a51-4f0e-9c55-2b1d5e3f8a70")
	key := map[string]string{"runKey": repository + "/" + runID, "requestId": q.RequestID}
	q.Taken = []lifecycle.Taken{{HostKey: hostKeyOf(0), InstanceID: "i-0123456789abcdef0", Reused: true}}
	if err := w.CreateRequest(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	check("a request for one host", "remuda-requests", key, kib)

	long := strings.Repeat("x", 256)
	q.Spec.Labels, q.Spec.InstanceTypes = slices.Repeat([]string{long}, 20), slices.Repeat([]string{"c6i.*"}, 100)
	q.Launch = &lifecycle.LaunchOrder{Token: long, RequestID: q.RequestID, InstanceTypes: q.Spec.InstanceTypes, PoolTypes: q.Spec.InstanceTypes}
	q.Shortage, q.Reason = strings.Repeat(long, 4), strings.Repeat(long, 4)
	q.Taken = nil
	for n := range 200 {
		q.Taken = append(q.Taken, lifecycle.Taken{HostKey: hostKeyOf(n), InstanceID: "i-0123456789abcdef0", Reused: true})
	}
	if _, err := w.UpdateRequest(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	check("a request for 200 hosts", "remuda-requests", key, 40*kib)

	if err := w.AddEvents(t.Context(), []lifecycle.Event{newEvent("registered, and its heartbeat is fresh")}); err != nil {
		t.Fatal(err)
	}
	page, err := w.EventsSince(t.Context(), lifecycle.PageOf{})
	if err != nil {
		t.Fatal(err)
	}
	check("an event", "remuda-events", map[string]string{"subject": "fleet", "id": page.Items[0].ID[:16]}, kib)
}

// TestSizesOfJobs: what is written for every job, and the turns of a pool, which
// are written whole for each of its jobs, more than once.
func TestSizesOfJobs(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	const kib = 1 << 10
	check := func(name, key string, limit int) {
		t.Helper()
		size := sizeOf(w.item(t, "remuda-jobs", jobsRow(key)))
		t.Logf("%s: %d bytes", name, size)
		if size == 0 || size > limit {
			t.Errorf("%s: %d bytes, want at most %d", name, size, limit)
		}
	}
	if err := w.CreateWebhook(t.Context(), newWebhook("0b989ba4-242f-11e5-81e1-c7b6966d2516")); err != nil {
		t.Fatal(err)
	}
	check("a webhook of a job", "webhook/0b989ba4-242f-11e5-81e1-c7b6966d2516", kib)
	j := newJob(51234567890)
	j.State, j.RunnerName, j.StartedAt = lifecycle.JobRunning, "remuda-3-i-0123456789abcdef0", began
	if err := w.CreateJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	check("a job", "job/0000000051234567890", kib)

	turns := slots.Table{Pool: jobPool, Assigned: 100_000}
	for _, step := range []struct{ open, limit int }{{20, 2 * kib}, {100, 8 * kib}, {1000, 64 * kib}} {
		for n := len(turns.Open); n < step.open; n++ {
			host := fmt.Sprintf("i-%017x", rand.New(rand.NewPCG(uint64(n), 0)).Uint64())
			turns.Open = append(turns.Open, slots.Slot{
				Number: int64(99_000 + n), JobID: 51234567890 + 7919*int64(n), Repository: fmt.Sprintf("acme/service-%d", n%40),
				Scope: fmt.Sprintf("acme/service-%d", n%40), AssignedAt: began.Add(time.Duration(n) * 317 * time.Microsecond),
				HostKey: "AROAEXAMPLEEXAMPLE123:" + host, Runner: lifecycle.RunnerName(int64(n%9), host), Started: n%7 > 0,
			})
		}
		var err error
		if turns, err = w.UpdateSlotTable(t.Context(), turns); err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprintf("the turns of a pool, %d open", step.open), "turns/"+jobPool, step.limit)
	}
}

// TestPagesOfAMegabyte: an answer of DynamoDB has at most 1 MB, however few
// rows that is.
func TestPagesOfAMegabyte(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("x", 60<<10)
	const rows = 40
	for n := range rows {
		q := newRequest(fmt.Sprintf("request-%02d", n))
		q.Reason, q.DueAt = long, began
		if err := w.CreateRequest(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if err := w.ForHost(hostKeyOf(n)).PutReport(t.Context(), lifecycle.Report{Detail: long}); err != nil {
			t.Fatal(err)
		}
		if err := w.AddEvents(t.Context(), []lifecycle.Event{newEvent(fmt.Sprintf("%02d", n) + long)}); err != nil {
			t.Fatal(err)
		}
	}
	of := lifecycle.PageOf{Limit: 1000}
	requests, err := w.RequestsOfRun(t.Context(), repository, runID)
	if err != nil || len(requests) != rows {
		t.Errorf("requests of the run: got %d and error %v, want %d", len(requests), err, rows)
	}
	for i, q := range requests {
		if want := fmt.Sprintf("request-%02d", i); q.RequestID != want {
			t.Errorf("request %d of the run is %s", i, q.RequestID)
		}
	}
	due, err := w.DueRequests(t.Context(), began, of)
	if err != nil || len(due.Items) != rows {
		t.Errorf("due requests: got %d and error %v, want %d", len(due.Items), err, rows)
	}
	reports := map[string]bool{}
	for list := of; ; {
		page, err := w.AllReports(t.Context(), list)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page.Items {
			reports[p.HostKey] = true
		}
		if list.After = page.Next; list.After == "" {
			break
		}
	}
	if len(reports) != rows {
		t.Errorf("all reports: got %d, want %d", len(reports), rows)
	}
	history, _ := everyEvent(t, w.EventsSince, of)
	ofRun, _ := everyEvent(t, func(ctx context.Context, of lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
		return w.EventsOfRun(ctx, repository, runID, of)
	}, of)
	for name, found := range map[string][]lifecycle.Event{"all events": history, "events of the run": ofRun} {
		if len(found) != rows {
			t.Errorf("%s: got %d, want %d", name, len(found), rows)
		}
		for i, e := range found {
			if want := fmt.Sprintf("%02d", i); e.Reason[:2] != want {
				t.Errorf("%s: number %d is %s", name, i, e.Reason[:2])
			}
		}
	}
}

// TestManyRowsOfOneTime: DynamoDB gives rows whose times are equal in any
// order, and 200 hosts that were launched together are due together.
func TestManyRowsOfOneTime(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	var want []string
	for n := range 60 {
		r := pooledRecord(hostKeyOf(n))
		r.DueAt = began
		if n >= 50 {
			r.DueAt = began.Add(time.Nanosecond)
		}
		w.create(t, r)
		want = append(want, r.HostKey)
	}
	for _, limit := range []int{1, 7, 49, 50, 51, 60} {
		var got []string
		for of := (lifecycle.PageOf{Limit: limit}); ; {
			page, err := w.DueInstances(t.Context(), began.Add(time.Nanosecond), of)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Items {
				got = append(got, r.HostKey)
			}
			if of.After = page.Next; of.After == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d a page (-want +got):\n%s", limit, diff)
		}
	}
}

// TestRowsThatAreInAnIndexNoMore: an index lags behind its table, and its rows
// are read again. Here the row is changed behind the index's back.
func TestRowsThatAreInAnIndexNoMore(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	for n := range 3 {
		r := pooledRecord(hostKeyOf(n))
		r.DueAt, r.RunID = began, runID
		w.create(t, r)
	}
	// What the index has of them stays: it is by other attributes.
	w.set(t, "remuda-instances", hostRow(0), "trustKey", text("acme/other"))
	large := lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}
	page, err := w.PooledInstances(t.Context(), "default", large, repository, lifecycle.PageOf{Limit: 1})
	if err != nil || len(page.Items) != 1 || page.Items[0].HostKey != hostKeyOf(1) {
		t.Errorf("pooled: got %+v and error %v, want the second", page.Items, err)
	}
}
