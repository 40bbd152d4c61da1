package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// claimOf is a claim that holds for the pooled host of the scenes.
func claimOf(r lifecycle.Record) lifecycle.Claim {
	return lifecycle.Claim{
		HostKey: r.HostKey, Assignment: r.Assignment, TrustKey: r.TrustKey, Now: now, Margin: 30 * time.Second,
		BindTo: "acme/web", RunID: "102", RunAttempt: 3, Repository: "Acme/Web", RequestID: "q2", MaxRuntime: time.Hour, Labels: []string{"gpu"},
		Registration: &lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: token}, Threshold: now.Add(2 * time.Minute),
	}
}

func pooledRecord() lifecycle.Record {
	facts, _ := scene{host: "pooled", answer: "none", deadline: "ahead"}.facts()
	return facts.Record
}

func TestClaimHolds(t *testing.T) {
	tests := []struct {
		name   string
		change func(*lifecycle.Record, *lifecycle.Claim)
		want   bool
	}{
		{"pooled", func(*lifecycle.Record, *lifecycle.Claim) {}, true},
		{"releasing", func(r *lifecycle.Record, _ *lifecycle.Claim) { r.PooledAt = time.Time{} }, false},
		{"claimed by another", func(r *lifecycle.Record, _ *lifecycle.Claim) { r.State = lifecycle.StateClaimed }, false},
		{"terminated", func(r *lifecycle.Record, _ *lifecycle.Claim) { r.State = lifecycle.StateTerminated }, false},
		{"message of an earlier assignment", func(_ *lifecycle.Record, c *lifecycle.Claim) { c.Assignment-- }, false},
		{"message of a later assignment", func(_ *lifecycle.Record, c *lifecycle.Claim) { c.Assignment++ }, false},
		{"another trust key", func(_ *lifecycle.Record, c *lifecycle.Claim) { c.TrustKey = "acme/other" }, false},
		{"retiring", func(r *lifecycle.Record, _ *lifecycle.Claim) { r.Retiring = true }, false},
		{"interrupted", func(r *lifecycle.Record, _ *lifecycle.Claim) { r.InterruptionAt = now.Add(-time.Hour) }, false},
		{"held", func(r *lifecycle.Record, _ *lifecycle.Claim) { r.Hold = now.Add(1) }, false},
		{"hold is over", func(r *lifecycle.Record, _ *lifecycle.Claim) { r.Hold = now }, true},
		{"threshold in 30 s", func(r *lifecycle.Record, _ *lifecycle.Claim) { r.Threshold = now.Add(30 * time.Second) }, false},
		{"threshold in more than 30 s", func(r *lifecycle.Record, _ *lifecycle.Claim) { r.Threshold = now.Add(30*time.Second + 1) }, true},
		{"threshold passed", func(r *lifecycle.Record, _ *lifecycle.Claim) { r.Threshold = now.Add(-1) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := pooledRecord()
			c := claimOf(r)
			tt.change(&r, &c)
			if got := c.Holds(r); got != tt.want {
				t.Errorf("Holds = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestClaimed(t *testing.T) {
	r := pooledRecord()
	r.RunnerName, r.ClaimFailures = "", 1
	c := claimOf(r)
	got, err := r.Claimed(c)
	if err != nil {
		t.Fatal(err)
	}
	want := r
	want.State, want.PooledAt = lifecycle.StateClaimed, time.Time{}
	want.RunID, want.RunAttempt, want.Repository, want.RequestID = "102", 3, "Acme/Web", "q2"
	want.Assignment, want.Uses, want.MaxRuntime, want.Labels = assignment+1, 4, time.Hour, []string{"gpu"}
	want.Registration, want.RunnerName = c.Registration, "remuda-8-i-1"
	want.Threshold, want.DueAt, want.UpdatedAt = c.Threshold, c.Threshold, now
	want.Reason, want.ReasonCode = "claimed for run 102", lifecycle.CodeOf(lifecycle.ActionClaim)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.Holds(got) {
		t.Error("the claim holds a second time")
	}
}

// The first run that claims a fresh host binds it, and no later claim does.
func TestClaimBindsAFreshHost(t *testing.T) {
	r := pooledRecord()
	r.TrustKey, r.Uses, r.Repository = "", 0, ""
	c := claimOf(r)
	c.BindTo = ""
	if _, err := r.Claimed(c); !errors.Is(err, lifecycle.ErrUnbound) {
		t.Errorf("a claim that binds the host to no trust key: %v", err)
	}
	c.BindTo = "acme/web"
	got, err := r.Claimed(c)
	if err != nil {
		t.Fatal(err)
	}
	if got.TrustKey != "acme/web" || got.Uses != 1 || got.Unused() || !r.Unused() {
		t.Errorf("claimed: trust key %q, %d uses, fresh %t", got.TrustKey, got.Uses, got.Unused())
	}
	bound := pooledRecord()
	c = claimOf(bound)
	c.BindTo = "acme/other"
	if got, err = bound.Claimed(c); err != nil || got.TrustKey != bound.TrustKey {
		t.Errorf("a bound host is claimed: trust key %q, %v; want %q still", got.TrustKey, err, bound.TrustKey)
	}
	c.TrustKey = ""
	if c.Holds(bound) {
		t.Error("the claim of a fresh host holds for one that is bound")
	}
}

// A fresh host begins without a run, becomes clean like any other, and waits for
// longer in the pool, though never beyond its maximum age.
func TestWarmed(t *testing.T) {
	p := lifecycle.DefaultPolicy()
	m := lifecycle.Machine{InstanceID: hostKey, HostKey: hostKey,
		Hardware:   lifecycle.Hardware{ResourceClass: "large", UsageClass: lifecycle.UsageSpot},
		LaunchedAt: start}
	q := lifecycle.Request{RequestID: "warm", Spec: lifecycle.Spec{Pool: "default"}}
	r := lifecycle.LaunchedWarm(m, q, start, p)
	want := lifecycle.Record{
		HostKey: hostKey, InstanceID: hostKey, Pool: "default", State: lifecycle.StateIdle, RequestID: "warm", Assignment: 1,
		Hardware:  lifecycle.Hardware{ResourceClass: "large", UsageClass: lifecycle.UsageSpot},
		Threshold: start.Add(p.CreationTimeout), ReleasedAt: start,
		DueAt: start.Add(p.ReleasePoll), LaunchedAt: start, CreatedAt: start, UpdatedAt: start,
		Reason: "launched ahead of need, for the first run that claims it", ReasonCode: lifecycle.CodeOf(lifecycle.ActionLaunch),
		Meter: meter.Begin(start),
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		name   string
		maxAge time.Duration
		want   time.Duration
	}{{"any age", 0, time.Hour + time.Minute}, {"30m of age", 30 * time.Minute, 30 * time.Minute}} {
		p.MaxAge = tt.maxAge
		pooled, err := lifecycle.Apply(r, lifecycle.Decision{Action: lifecycle.ActionPool}, start.Add(time.Minute), p)
		if err != nil {
			t.Fatal(err)
		}
		if got := pooled.Threshold.Sub(start); got != tt.want || !pooled.Unused() || pooled.RequestID != "" {
			t.Errorf("%s: waits until %s after its launch, want %s: %+v", tt.name, got, tt.want, pooled)
		}
	}
}

func TestClaimedOnlyFromThePool(t *testing.T) {
	for _, host := range hostNames() {
		facts, _ := scene{host: host, answer: "none", deadline: "ahead"}.facts()
		r := facts.Record
		got, err := r.Claimed(claimOf(r))
		if r.Pooled() {
			if err != nil {
				t.Errorf("%s: %v", host, err)
			}
			continue
		}
		var refused *lifecycle.TransitionError
		if !errors.As(err, &refused) || refused.Action != lifecycle.ActionClaim || refused.From != r.Condition() {
			t.Errorf("%s: %v, want a TransitionError", host, err)
		}
		if diff := cmp.Diff(r, got); diff != "" {
			t.Errorf("%s: refused and changed:\n%s", host, diff)
		}
		if claimOf(r).Holds(r) {
			t.Errorf("%s: a claim holds that the table forbids", host)
		}
	}
}
