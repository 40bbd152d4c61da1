package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const (
	repository = "acme/site"
	runID      = "4711"
	// secret is in the registration of every pooled and running record here.
	secret = "do-not-print-me"
)

// fullRecord has a value in every attribute.
func fullRecord(hostKey string) lifecycle.Record {
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	return lifecycle.Record{
		HostKey: hostKey, InstanceID: "i-" + hostKey, Pool: "default", State: lifecycle.StateRunning,
		RunID: runID, RunAttempt: 2, Repository: repository, RequestID: "request-1", JobsOf: "acme",
		Assignment: 3, Version: 1, Threshold: at(1), MaxRuntime: 6 * time.Hour, RuntimeEndsAt: at(2), ReleasedAt: at(3), DueAt: at(4),
		Hardware: lifecycle.Hardware{
			ResourceClass: "large", UsageClass: lifecycle.UsageSpot, InstanceType: "c6i.large", CPU: 2,
			MemoryMiB: 4096, Arch: "x64", Zone: "local-a",
		},
		Labels: []string{"gpu", "fast"}, TrustKey: repository, Uses: 4, TemplateVersion: "7",
		Registration: &lifecycle.Registration{
			Kind: lifecycle.RegistrationToken, URL: "https://github.com/" + repository, Secret: secret, ExpiresAt: at(5),
		},
		RunnerName: "remuda-3-i-" + hostKey, GitHubRunnerID: 99,
		PooledAt: at(6), ClaimFailures: 1, Retiring: true, RetiringReason: "surplus", Hold: at(7), FleetHeld: true, OrphanAt: at(8), IdleDetectedAt: at(9), ScaleDownAt: at(14),
		InterruptionAt: at(13), ReplacedBy: "replace-i-1", LostJob: "acme/site/4711/2",
		LostBy:     &lifecycle.LostRun{RunID: "4711", RequestID: "req-4711", Labels: []string{"gpu"}},
		LaunchedAt: at(10), CreatedAt: at(11), UpdatedAt: at(12), ExpiresAt: at(600), Reason: "because it's \"so\" — 100%",
	}
}

// pooledRecord is a host that waits in the pool of large on-demand hosts.
func pooledRecord(hostKey string) lifecycle.Record {
	return lifecycle.Record{
		HostKey: hostKey, InstanceID: "i-" + hostKey, Pool: "default", State: lifecycle.StateIdle, Version: 1,
		Repository: repository, Assignment: 2, Threshold: start.Add(5 * time.Minute), DueAt: start.Add(5 * time.Minute),
		Hardware: lifecycle.Hardware{
			ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceType: "c6i.large",
			CPU: 2, MemoryMiB: 4096,
		},
		TrustKey: repository, Uses: 1, PooledAt: start, CreatedAt: start,
	}
}

// claimOf is a claim whose condition holds for pooledRecord.
func claimOf(hostKey string) lifecycle.Claim {
	return lifecycle.Claim{
		HostKey: hostKey, Assignment: 2, TrustKey: repository, Now: start, Margin: 30 * time.Second,
		RunID: runID, RunAttempt: 1, Repository: repository, RequestID: "request-1", MaxRuntime: time.Hour,
		Labels: []string{"fast"}, Threshold: start.Add(2 * time.Minute),
		Registration: &lifecycle.Registration{Kind: lifecycle.RegistrationToken, URL: "https://github.com/" + repository, Secret: secret},
	}
}

// fullRequest has a value in every attribute.
func fullRequest(requestID string) lifecycle.Request {
	return lifecycle.Request{
		Repository: repository, RunID: runID, RequestID: requestID, Version: 1,
		Spec: lifecycle.Spec{
			RunAttempt: 1, Count: 3, MinimumCount: 2, Pool: "default", ResourceClass: "large", UsageClass: lifecycle.UsageSpot,
			InstanceTypes: []string{"c*", "m6i.*"}, MaxRuntime: time.Hour, Timeout: 10 * time.Minute, Labels: []string{"fast"}, AllowOnDemand: true,
			JobsOf: "acme", ReplaceInterrupted: true,
		},
		ReplacementOf: &lifecycle.ReplacementOf{RequestID: "request-0", InstanceID: "i-c", Generation: 2},
		CreatedAt:     start, Deadline: start.Add(10 * time.Minute),
		Taken: []lifecycle.Taken{{HostKey: "a", InstanceID: "i-a", Reused: true}, {HostKey: "b", InstanceID: "i-b"}},
		Launch: &lifecycle.LaunchOrder{
			Token: "token", RequestID: requestID, Number: 1, Count: 1, Pool: "default", Repository: repository, RunID: runID,
			ResourceClass: "large", CPU: 2, MemoryMiB: 4096, UsageClass: lifecycle.UsageSpot, InstanceTypes: []string{"c6i.large"}, PoolTypes: []string{"c*"}, TemplateVersion: "7",
			Exclude: []lifecycle.Offering{{InstanceType: "c6i.large", Place: "local-a"}, {Place: "subnet-1"}},
		},
		Launches: 2, OnDemand: true, Shortage: "no c6i.large in zone local-a", QuotaReason: "all 10 are taken", Failures: 3, NotBefore: start.Add(3 * time.Minute),
		ReleasedAt: start.Add(time.Minute), Outcome: lifecycle.OutcomeReady, Reason: "all there", Unattended: true, MaxHosts: 7,
		DueAt: start.Add(2 * time.Minute), ExpiresAt: start.Add(10 * time.Hour),
	}
}

// fullReport has a value in every attribute.
func fullReport(hostKey string) lifecycle.Report {
	return lifecycle.Report{
		HostKey: hostKey, HeartbeatAt: start, BootID: "boot", AgentVersion: "1.2.3", Assignment: 3,
		Signal: lifecycle.SignalRegFailed, Cause: lifecycle.CauseGitHub, Detail: "line 1\nline 2\t\"quoted\"",
		Busy: true, RegisteredAt: start.Add(time.Second), Jobs: 5, RunnerVersion: "2.330.0", InterruptionAt: start.Add(2 * time.Minute), RebalanceAt: start.Add(time.Minute),
	}
}

func (w world) create(t *testing.T, records ...lifecycle.Record) {
	t.Helper()
	for _, r := range records {
		if err := w.Store.CreateInstance(t.Context(), r); err != nil {
			t.Fatalf("CreateInstance(%s): %v", r.HostKey, err)
		}
	}
}

func (w world) update(t *testing.T, r lifecycle.Record) lifecycle.Record {
	t.Helper()
	r, err := w.Store.UpdateInstance(t.Context(), r)
	if err != nil {
		t.Fatalf("UpdateInstance(%s): %v", r.HostKey, err)
	}
	return r
}

func (w world) instance(t *testing.T, hostKey string) lifecycle.Record {
	t.Helper()
	r, err := w.Store.Instance(t.Context(), hostKey)
	if err != nil {
		t.Fatalf("Instance(%s): %v", hostKey, err)
	}
	return r
}

func (w world) createRequests(t *testing.T, requests ...lifecycle.Request) {
	t.Helper()
	for _, q := range requests {
		if err := w.Store.CreateRequest(t.Context(), q); err != nil {
			t.Fatalf("CreateRequest(%s): %v", q.RequestID, err)
		}
	}
}

func (w world) report(t *testing.T, p lifecycle.Report) {
	t.Helper()
	if err := w.ForHost(p.HostKey).PutReport(t.Context(), p); err != nil {
		t.Fatalf("PutReport(%s): %v", p.HostKey, err)
	}
}

func (w world) addEvents(t *testing.T, events ...lifecycle.Event) {
	t.Helper()
	if err := w.Store.AddEvents(t.Context(), events); err != nil {
		t.Fatalf("AddEvents: %v", err)
	}
}

// isUTC is for times, which must come back in UTC and not only as the same
// moment.
func isUTC(t *testing.T, what string, at time.Time) {
	t.Helper()
	if !at.IsZero() && at.Location() != time.UTC {
		t.Errorf("%s is in %s, want UTC", what, at.Location())
	}
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// isFull is for rows that are to show that each attribute is kept: one that was
// added to the words and forgotten here would show nothing.
func isFull(t *testing.T, row any) {
	t.Helper()
	fields := reflect.ValueOf(row)
	for _, field := range reflect.VisibleFields(fields.Type()) {
		if fields.FieldByIndex(field.Index).IsZero() {
			t.Errorf("the full %s has no %s", fields.Type().Name(), field.Name)
		}
	}
}

func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

// hostKeys are n keys in order.
func hostKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("host-%04d", i)
	}
	return keys
}

func keysOf(records []lifecycle.Record) []string {
	var keys []string
	for _, r := range records {
		keys = append(keys, r.HostKey)
	}
	return keys
}

// all goes through the pages of a listing.
func all[T any](t *testing.T, limit int, list func(lifecycle.PageOf) (lifecycle.Page[T], error)) []T {
	t.Helper()
	var items []T
	of := lifecycle.PageOf{Limit: limit}
	for range 10_000 {
		page, err := list(of)
		if err != nil {
			t.Fatalf("page after %q: %v", of.After, err)
		}
		if len(page.Items) > of.Size() {
			t.Fatalf("page after %q: %d items, at most %d asked for", of.After, len(page.Items), of.Size())
		}
		items = append(items, page.Items...)
		if page.Next == "" {
			return items
		}
		of.After = page.Next
	}
	t.Fatal("the pages do not end")
	return nil
}
