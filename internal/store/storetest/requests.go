package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/lifecycle/batch"
	"github.com/remuda-ci/remuda/internal/store"
)

var requests = kind[lifecycle.Request]{
	KindOf: store.Requests, noun: "a request",
	keys:    []store.Key{{"a/a", "1", "x"}, {"a/a", "1", "y"}, {"a/a", "2", "x"}, {"b/b", "1", "x"}, {"b/b", "1", "z"}, {"b/b", "3", "x"}},
	strange: []store.Key{{"a/a", "1", "unknown"}, {"acme/other", "1", "x"}, {"a/a", "3", "x"}},
	full: func(key store.Key) lifecycle.Request {
		q := fullRequest(key[2])
		q.Repository, q.RunID = key[0], key[1]
		return q
	},
	bare: func(key store.Key) lifecycle.Request {
		return lifecycle.Request{Repository: key[0], RunID: key[1], RequestID: key[2]}
	},
	create: store.Store.CreateRequest, update: store.Store.UpdateRequest, due: store.Store.DueRequests,
	get: func(s store.Store, ctx context.Context, key store.Key) (lifecycle.Request, error) {
		return s.Request(ctx, key[0], key[1], key[2])
	},
	lists: map[string]func(context.Context, store.Store) ([]lifecycle.Request, error){
		"of its run": func(ctx context.Context, s store.Store) ([]lifecycle.Request, error) {
			return s.RequestsOfRun(ctx, "a/a", "1")
		},
	},
}

var _ = add(group{name: "requests", tests: append(requests.cases(),
	suiteTest{"the requests of a run come by id", testRequestsOfRun},
)})

// fullRequest has a value in every attribute.
func fullRequest(requestID string) lifecycle.Request {
	return lifecycle.Request{
		Repository: repository, RunID: runID, RequestID: requestID, Kind: lifecycle.RequestReplacement, Workflow: "CI", Version: 1,
		Spec: lifecycle.Spec{
			RunAttempt: 1, Count: 3, MinimumCount: 2, Pool: "default", ResourceClass: "large", UsageClass: lifecycle.UsageSpot,
			InstanceTypes: []string{"c*", "m6i.*"}, MaxRuntime: time.Hour, Timeout: 10 * time.Minute, Labels: []string{"fast"}, AllowOnDemand: true,
			JobsOf: "acme", Forks: true, ReplaceInterrupted: true,
		},
		ReplacementOf: &lifecycle.ReplacementOf{RequestID: "request-0", InstanceID: "i-c", Generation: 2},
		CreatedAt:     start, Deadline: start.Add(10 * time.Minute),
		Taken: []lifecycle.Taken{{HostKey: "a", InstanceID: "i-a", Reused: true}, {HostKey: "b", InstanceID: "i-b"}},
		Launch: &lifecycle.LaunchOrder{
			Token: "token", RequestID: requestID, Number: 1, Count: 1, Pool: "default", Repository: repository, RunID: runID,
			ResourceClass: "large", CPU: 2, MemoryMiB: 4096, MaxCPU: 8, MaxMemoryMiB: 65536, UsageClass: lifecycle.UsageSpot, InstanceTypes: []string{"c6i.large"}, PoolTypes: []string{"c*"}, TemplateVersion: "7",
			Exclude: []lifecycle.Offering{{InstanceType: "c6i.large", Place: "local-a"}, {Place: "subnet-1"}}, Batch: "batch-1",
		},
		Members:  []batch.Member{{Repository: "acme/a", RunID: "1", RequestID: "x", Launch: 2, Count: 3}},
		Launches: 2, OnDemand: true, Shortage: "no c6i.large in zone local-a", Refused: true, QuotaReason: "all 10 are taken", ReservedIn: []string{"repository", "owner"}, ShortSince: start.Add(4 * time.Minute), QuotaSince: start.Add(5 * time.Minute), Failures: 3, NotBefore: start.Add(3 * time.Minute),
		Wait: arrival.Wait{QueuedAt: start.Add(-time.Minute), Held: "all 10 are taken", HeldBy: "quota"}, Missed: []arrival.Miss{arrival.MissPool, arrival.MissLost},
		ReleasedAt: start.Add(time.Minute), Outcome: lifecycle.OutcomeReady, Reason: "all there", Unattended: true, MaxHosts: 7,
		DueAt: start.Add(2 * time.Minute), ExpiresAt: start.Add(10 * time.Hour),
	}
}

func testRequestsOfRun(t *testing.T, w world) {
	other := fullRequest("d")
	other.Repository = "acme/other"
	requests.put(t, w, fullRequest("c"), fullRequest("a"), fullRequest("b"), other)
	got := must(w.Store.RequestsOfRun(t.Context(), repository, runID))(t)
	equal(t, "requests", []lifecycle.Request{fullRequest("a"), fullRequest("b"), fullRequest("c")}, got)
	got, err := w.Store.RequestsOfRun(t.Context(), repository, "another")
	if err != nil || len(got) != 0 {
		t.Errorf("requests of an unknown run: got %d and error %v, want none of either", len(got), err)
	}
}
