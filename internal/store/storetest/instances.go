package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
)

var instances = kind[lifecycle.Record]{
	KindOf: store.Instances, noun: "a record",
	keys:    []store.Key{{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"f"}},
	strange: []store.Key{{""}, {"A"}, {"a "}, {"aa"}, {"%"}},
	full:    func(key store.Key) lifecycle.Record { return fullRecord(key[0]) },
	bare: func(key store.Key) lifecycle.Record {
		return lifecycle.Record{HostKey: key[0], InstanceID: "i-" + key[0], Pool: "default", State: lifecycle.StateTerminated}
	},
	create: store.Store.CreateInstance, update: store.Store.UpdateInstance, due: store.Store.DueInstances,
	get: func(s store.Store, ctx context.Context, key store.Key) (lifecycle.Record, error) {
		return s.Instance(ctx, key[0])
	},
	lists: map[string]func(context.Context, store.Store) ([]lifecycle.Record, error){
		"of its run": func(ctx context.Context, s store.Store) ([]lifecycle.Record, error) {
			page, err := s.InstancesOfRun(ctx, runID, lifecycle.PageOf{})
			return page.Items, err
		},
	},
}

var _ = add(group{name: "instances", tests: append(instances.cases(),
	suiteTest{"a batch leaves out what is missing", testInstanceBatch},
)})

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
			Kind: lifecycle.RegistrationToken, URL: "https://github.com/" + repository, RunnerGroup: "builders", Secret: secret, ExpiresAt: at(5),
		},
		RunnerName: "remuda-3-i-" + hostKey, GitHubRunnerID: 99,
		PooledAt: at(6), ClaimFailures: 1, ReasonCode: lifecycle.ReasonClean, Retiring: true, RetiringReason: "surplus", Hold: at(7), FleetHeld: true, OrphanAt: at(8), IdleDetectedAt: at(9), ScaleDownAt: at(14),
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

// testInstanceBatch asks for more keys than a DynamoDB batch takes (100).
func testInstanceBatch(t *testing.T, w world) {
	present := hostKeys(250)
	for _, key := range present {
		instances.put(t, w, pooledRecord(key))
	}
	asked := slices.Concat([]string{"missing-1", "missing-1"}, present, []string{"missing-2"})
	got := must(w.Store.Instances(t.Context(), asked))(t)
	keys := keysOf(got)
	slices.Sort(keys)
	equal(t, "host keys", present, keys)

	for name, asked := range map[string][]string{"none": nil, "only missing ones": {"missing-1"}} {
		got, err := w.Store.Instances(t.Context(), asked)
		if err != nil || len(got) != 0 {
			t.Errorf("%s: got %d records and error %v, want none of either", name, len(got), err)
		}
	}
}
