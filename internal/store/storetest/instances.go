package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/storetest/rowtest"
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
		RunID: runID, RunAttempt: 2, Repository: repository, RequestID: "request-1", Workflow: "CI, nightly", JobsOf: "acme", Forks: true,
		Meter:      meter.Meter(fullCycle(1000).String()),
		Assignment: 3, Version: 1, Threshold: at(1), MaxRuntime: 6 * time.Hour, RuntimeEndsAt: at(2), ReleasedAt: at(3), DueAt: at(4),
		Hardware: lifecycle.Hardware{
			ResourceClass: "large", UsageClass: lifecycle.UsageSpot, InstanceType: "c6i.large", CPU: 2,
			MemoryMiB: 4096, Arch: "x64", Zone: "local-a",
		},
		Labels: []string{"gpu", "fast"}, TrustKey: repository, Uses: 4, TemplateVersion: "7",
		LastRun: "40", KeepCaches: []string{"go", "npm"}, Unjudged: true, Mirror: &lifecycle.Mirror{URL: "https://github.com/acme/app.git", Branch: "main", Token: secret, ExpiresAt: at(5)},
		DropCaches: "00000000000000bb:17:1772000000", ThrowCaches: []string{"00000000000000cc"}, Caches: "00000000000000aa:17:1772000000",
		Arrival: &arrival.Arrival{
			Wait: arrival.Wait{QueuedAt: at(15), Held: "acme has 3 of 3 hosts", HeldBy: "quota"}, AskedAt: at(16), At: at(17), Missed: []arrival.Miss{arrival.MissTrust},
			Chosen: "it had the run's cache, 1.2 GiB",
		},
		Registration: &lifecycle.Registration{
			Kind: lifecycle.RegistrationToken, URL: "https://github.com/" + repository, RunnerGroup: "builders", Secret: secret, ExpiresAt: at(5),
		},
		RunnerName: "remuda-3-i-" + hostKey, GitHubRunnerID: 99, Standby: &lifecycle.Standby{Assignment: 2, Label: secret, RunnerID: 98, URL: "https://github.com/acme/app", Discarded: true}, StandbyFailed: true,
		AgentKey: "key", PooledAt: at(6), RestingAt: at(15), ToStop: true, Stop: &lifecycle.Stop{At: at(15), StoppedAt: at(16), StartAt: at(17), RetryAt: at(18)}, RootVolume: &lifecycle.RootVolume{At: at(15), Task: "replacevol-1", ReplacedAt: at(16)}, ClaimFailures: 1, ReasonCode: lifecycle.ReasonClean, Retiring: true, RetiringReason: "surplus", RestoredAt: at(21), Hold: at(7), FleetHeld: true, OrphanAt: at(8), IdleDetectedAt: at(9), ScaleDownAt: at(14),
		InterruptionAt: at(13), ReplacedBy: "replace-i-1", LostJob: "acme/site/4711/2",
		LostBy:     &lifecycle.LostRun{RunID: "4711", RequestID: "req-4711", Labels: []string{"gpu"}},
		LaunchedAt: at(10), CreatedAt: at(11), UpdatedAt: at(12), ExpiresAt: at(600), Reason: "because it's \"so\" — 100%",
	}
}

// fullCycle has a value in every attribute.
func fullCycle(from meter.Milli) meter.Cycle {
	return meter.Cycle{
		From: from, Launched: true, PooledAt: from + 1, ClaimedAt: from + 2, ReadyAt: from + 20, ReleasedAt: from + 300, EndedAt: from + 4000,
		User: meter.User{Repository: repository, Workflow: "CI, nightly", RunID: runID, Attempt: 2},
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
		RunID: runID, RunAttempt: 1, Repository: repository, RequestID: "request-1", Workflow: "CI", MaxRuntime: time.Hour,
		Labels: []string{"fast"}, Threshold: start.Add(2 * time.Minute), Arrival: arrival.Of(start.Add(-time.Second), start, arrival.Wait{Held: "no spot", HeldBy: "shortage"}, nil),
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

var _ = add(group{name: "claim", tests: []suiteTest{
	{"takes the host", testClaim},
	{"binds a fresh host", testClaimFresh},
	{"for a job names its registration", testClaimForJob},
	{"needs every fact", testClaimCondition},
	{"is allowed up to the edges", testClaimEdges},
	{"an unknown host is lost", testClaimUnknown},
}})

// claimed takes a host, and holds what the store returns and has then against Record.Claimed.
func (w world) claimed(t *testing.T, before lifecycle.Record, c lifecycle.Claim) lifecycle.Record {
	t.Helper()
	got, want := must(w.Store.ClaimInstance(t.Context(), c))(t), must(before.Claimed(c))(t)
	want.Version = 2
	equal(t, "what claim returns", want, got)
	equal(t, "record", want, instances.stored(t, w, c.HostKey))
	return got
}

func (w world) refused(t *testing.T, what string, c lifecycle.Claim, want error) {
	t.Helper()
	_, err := w.Store.ClaimInstance(t.Context(), c)
	wantError(t, what, err, want)
}

// pooled are the keys of the idle hosts of a pool.
func (w world) pooled(t *testing.T, pool, class string, usage lifecycle.UsageClass, trustKey string) []string {
	t.Helper()
	return listed(t, func(of lifecycle.PageOf) (recordPage, error) {
		return w.Store.PooledInstances(t.Context(), pool, lifecycle.QueueName{ResourceClass: class, UsageClass: usage}, trustKey, of)
	})
}

func testClaim(t *testing.T, w world) {
	instances.put(t, w, pooledRecord("a"))
	claim := claimOf("a")
	claim.Labels = append(claim.Labels, "more")
	got := w.claimed(t, pooledRecord("a"), claim)
	stored := instances.stored(t, w, "a")
	rowtest.Scribble(claim)
	rowtest.Scribble(got)
	equal(t, "record after both sides changed their own", stored, instances.stored(t, w, "a"))
	w.refused(t, "second claim", claimOf("a"), lifecycle.ErrConflict)
}

// testClaimFresh: a host that no run has used is bound by the claim, found in the
// index before it and under its key after it, and never bound again.
func testClaimFresh(t *testing.T, w world) {
	fresh := pooledRecord("a")
	fresh.TrustKey, fresh.Uses, fresh.Repository = "", 0, ""
	instances.put(t, w, fresh)
	pooled := func(trustKey string) []string {
		return w.pooled(t, "default", "large", lifecycle.UsageOnDemand, trustKey)
	}
	equal(t, "fresh hosts", []string{"a"}, pooled(""))
	equal(t, "hosts of the repository", []string(nil), pooled(repository))

	w.refused(t, "the claim of a bound host", claimOf("a"), lifecycle.ErrConflict)
	claim := claimOf("a")
	claim.TrustKey = ""
	w.refused(t, "a claim that binds to no repository", claim, lifecycle.ErrUnbound)
	equal(t, "record after both", fresh, instances.stored(t, w, "a"))

	claim.BindTo = repository
	w.claimed(t, fresh, claim)
	equal(t, "fresh hosts after the claim", []string(nil), pooled(""))

	instances.put(t, w, pooledRecord("b"))
	claim.HostKey = "b"
	w.refused(t, "the claim of a fresh host on a bound one", claim, lifecycle.ErrConflict)
	bound := claimOf("b")
	bound.BindTo = "acme/other"
	got := must(w.Store.ClaimInstance(t.Context(), bound))(t)
	equal(t, "trust key of a bound host after a claim", repository, got.TrustKey)
}

// testClaimForJob also claims for a run a host that still has what a claim for a job set: that must go.
func testClaimForJob(t *testing.T, w world) {
	claim := claimOf("a")
	claim.RunID, claim.JobsOf, claim.Forks, claim.GitHubRunnerID = "job:9007199254740993", "acme", true, 1<<53+1
	used := pooledRecord("b")
	used.JobsOf, used.Forks, used.GitHubRunnerID = "acme", true, 7
	for _, test := range []struct {
		record lifecycle.Record
		claim  lifecycle.Claim
	}{{pooledRecord("a"), claim}, {used, claimOf("b")}} {
		instances.put(t, w, test.record)
		if got := w.claimed(t, test.record, test.claim); got.JobsOf != test.claim.JobsOf || got.Forks != test.claim.Forks || got.GitHubRunnerID != test.claim.GitHubRunnerID {
			t.Errorf("the record says JobsOf %q, forks %t and runner %d, the claim %q, %t and %d",
				got.JobsOf, got.Forks, got.GitHubRunnerID, test.claim.JobsOf, test.claim.Forks, test.claim.GitHubRunnerID)
		}
	}
}

// testClaimCondition breaks one fact of the condition at a time.
func testClaimCondition(t *testing.T, w world) {
	tests := []struct {
		name   string
		record func(*lifecycle.Record)
		claim  func(*lifecycle.Claim)
	}{
		{name: "created", record: func(r *lifecycle.Record) { r.State = lifecycle.StateCreated }},
		{name: "running", record: func(r *lifecycle.Record) { r.State = lifecycle.StateRunning }},
		{name: "claimed", record: func(r *lifecycle.Record) { r.State = lifecycle.StateClaimed }},
		{name: "terminated", record: func(r *lifecycle.Record) { r.State = lifecycle.StateTerminated }},
		{name: "stopped", record: func(r *lifecycle.Record) { r.Stop = &lifecycle.Stop{At: start, StoppedAt: start} }},
		{name: "releasing", record: func(r *lifecycle.Record) { r.PooledAt = time.Time{} }},
		{name: "a later assignment", record: func(r *lifecycle.Record) { r.Assignment++ }},
		{name: "an earlier assignment", record: func(r *lifecycle.Record) { r.Assignment-- }},
		{name: "another trust key", record: func(r *lifecycle.Record) { r.TrustKey = "acme/other" }},
		{name: "no trust key", record: func(r *lifecycle.Record) { r.TrustKey = "" }},
		{name: "retiring", record: func(r *lifecycle.Record) { r.Retiring = true }},
		{name: "interrupted", record: func(r *lifecycle.Record) { r.InterruptionAt = start.Add(-time.Hour) }},
		{name: "held", record: func(r *lifecycle.Record) { r.Hold = start.Add(time.Nanosecond) }},
		{name: "threshold at the margin", record: func(r *lifecycle.Record) { r.Threshold = start.Add(30 * time.Second) }},
		{name: "threshold passed", record: func(r *lifecycle.Record) { r.Threshold = start.Add(-time.Second) }},
		{name: "no threshold", record: func(r *lifecycle.Record) { r.Threshold = time.Time{} }},
		{name: "a claim of another assignment", claim: func(c *lifecycle.Claim) { c.Assignment = 0 }},
		{name: "a claim with another trust key", claim: func(c *lifecycle.Claim) { c.TrustKey = "ACME/site" }},
		{name: "a claim with a longer margin", claim: func(c *lifecycle.Claim) { c.Margin = 5 * time.Minute }},
		{name: "a claim for one job of a hot host", record: func(r *lifecycle.Record) { r.Standby = &lifecycle.Standby{Assignment: 2} }, claim: func(c *lifecycle.Claim) { c.JobsOf = "acme" }},
		{name: "a claim of a host that is awake", record: func(r *lifecycle.Record) { r.RestingAt = start }, claim: func(c *lifecycle.Claim) { c.Awake = true }},
		{name: "a claim later on", claim: func(c *lifecycle.Claim) { c.Now = start.Add(5 * time.Minute) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, claim := pooledRecord(test.name), claimOf(test.name)
			if test.record != nil {
				test.record(&r)
			}
			if test.claim != nil {
				test.claim(&claim)
			}
			instances.put(t, w, r)
			w.refused(t, "claim", claim, lifecycle.ErrConflict)
			equal(t, "record", r, instances.stored(t, w, test.name))
		})
	}
}

func testClaimEdges(t *testing.T, w world) {
	tests := []struct {
		name   string
		record func(*lifecycle.Record)
	}{
		{"threshold just beyond the margin", func(r *lifecycle.Record) { r.Threshold = start.Add(30*time.Second + time.Nanosecond) }},
		{"released to keep its caches", func(r *lifecycle.Record) { r.KeepCaches, r.Caches = []string{"go"}, "00000000000000aa:17:1772000000" }},
		{"hold that ends now", func(r *lifecycle.Record) { r.Hold = start }},
		{"pooled in the future", func(r *lifecycle.Record) { r.PooledAt = start.Add(time.Hour) }},
		{"earlier claims failed", func(r *lifecycle.Record) { r.ClaimFailures = 1 }},
		{"resting", func(r *lifecycle.Record) { r.RestingAt = start.Add(-time.Minute) }},
		{"on a new root volume", func(r *lifecycle.Record) {
			r.RootVolume = &lifecycle.RootVolume{At: start.Add(-time.Hour), Task: "replacevol-1", ReplacedAt: start.Add(-time.Minute)}
		}},
		{"warming", func(r *lifecycle.Record) {
			r.RunnerName, r.Standby = "remuda-2-warming", &lifecycle.Standby{Assignment: 2}
		}},
		{"hot", func(r *lifecycle.Record) {
			r.RunnerName, r.Standby = "remuda-2-hot", &lifecycle.Standby{Assignment: 2, RunnerID: 99, URL: "https://github.com/acme/app"}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := pooledRecord(test.name)
			test.record(&r)
			instances.put(t, w, r)
			w.claimed(t, r, claimOf(test.name))
		})
	}
}

func testClaimUnknown(t *testing.T, w world) {
	w.refused(t, "claim", claimOf("unknown"), lifecycle.ErrConflict)
	_, err := w.Store.Instance(t.Context(), "unknown")
	wantError(t, "read after the claim", err, lifecycle.ErrNotFound)
}
