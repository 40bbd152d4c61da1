package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func TestSecretDoesNotPrint(t *testing.T) {
	reg := lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: token, URL: "https://github.com/acme/web"}
	values := map[string]any{
		"secret":               reg.Secret,
		"pointer to secret":    &reg.Secret,
		"registration":         reg,
		"registration pointer": &reg,
		"record":               lifecycle.Record{HostKey: hostKey, Registration: &reg},
		"claim":                lifecycle.Claim{HostKey: hostKey, Registration: &reg},
		"list":                 []lifecycle.Secret{reg.Secret},
		"map":                  map[string]any{"a": reg},
		"error":                fmt.Errorf("register with %v: %s", reg, reg.Secret),
	}
	for name, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t", "%08b"} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, token) || strings.Contains(got, fmt.Sprintf("%x", token)) {
				t.Errorf("%s printed with %s: %s", name, verb, got)
			}
		}
	}
	if got := fmt.Sprintf("%+v", lifecycle.Record{HostKey: hostKey}); strings.Contains(got, "PANIC") {
		t.Errorf("a record without a registration: %s", got)
	}
	if got := fmt.Sprint(reg.Secret); got != "[secret]" {
		t.Errorf("printed as %q", got)
	}
	if got := reg.Secret.Reveal(); got != token {
		t.Errorf("Reveal: %q", got)
	}
}

// The store and the agent exchange secrets as JSON: there they must be whole.
func TestRecordJSONRoundTrip(t *testing.T) {
	want := lifecycle.Record{
		HostKey: "AROA:i-1", InstanceID: "i-1", Pool: "default", State: lifecycle.StateClaimed, RunID: "101", RunAttempt: 2,
		Repository: "acme/web", RequestID: "q1", Assignment: 3, Version: 9, Threshold: now, MaxRuntime: time.Hour, RuntimeEndsAt: now,
		ReleasedAt: now, DueAt: now,
		Hardware: lifecycle.Hardware{
			ResourceClass: "large", UsageClass: lifecycle.UsageSpot, InstanceType: "c6i.large", CPU: 2,
			MemoryMiB: 4096, Arch: "x86_64", Zone: "a",
		},
		Labels: []string{"gpu"}, TrustKey: "acme/web", Uses: 2, TemplateVersion: "4",
		Registration: &lifecycle.Registration{Kind: lifecycle.RegistrationJIT, URL: "u", Secret: token, ExpiresAt: now},
		RunnerName:   "remuda-3-i-1", GitHubRunnerID: 12, PooledAt: now, ClaimFailures: 1, Retiring: true, Hold: now, OrphanAt: now,
		InterruptionAt: now, ReplacedBy: "replace-i-1-3", LostJob: "acme/web/101/2",
		IdleDetectedAt: now, ScaleDownAt: now, LostBy: &lifecycle.LostRun{RunID: "101", RequestID: "q", Labels: []string{"gpu"}}, LaunchedAt: now, CreatedAt: now, UpdatedAt: now, ExpiresAt: now, Reason: "because",
	}
	body, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got lifecycle.Record
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An empty value is a removed attribute, never "" (docs/design.md#what-is-stored).
func TestEmptyAttributesAreLeftOut(t *testing.T) {
	facts, _ := scene{host: "pooled", answer: "none", deadline: "ahead"}.facts()
	body, err := json.Marshal(facts.Record)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"runId", "runAttempt", "requestId", "registration", "runnerName", "githubRunnerId", "hold", "retiring", "retiringReason", "releasedAt", "orphanAt", "interruptionAt", "replacedBy", "lostJob"} {
		if strings.Contains(string(body), `"`+name+`"`) {
			t.Errorf("%s is written though it is empty: %s", name, body)
		}
	}
}

func TestRunnerName(t *testing.T) {
	if got := lifecycle.RunnerName(12, "i-0abc"); got != "remuda-12-i-0abc" {
		t.Errorf("RunnerName: %q", got)
	}
}

func TestTrustKey(t *testing.T) {
	tests := []struct {
		reuse            lifecycle.Reuse
		repository, want string
	}{
		{lifecycle.ReuseSameRepository, "Acme/Web", "acme/web"},
		{lifecycle.ReuseSameOwner, "Acme/Web", "acme"},
		{lifecycle.ReuseNone, "Acme/Web", "acme/web"},
		{"", "Acme/Web", "acme/web"}, // unknown: the narrow rule
	}
	for _, tt := range tests {
		if got := tt.reuse.TrustKey(tt.repository); got != tt.want {
			t.Errorf("%q.TrustKey(%q) = %q, want %q", tt.reuse, tt.repository, got, tt.want)
		}
	}
	if lifecycle.ReuseSameOwner.TrustKey("acme/web") == lifecycle.ReuseSameOwner.TrustKey("acme2/web") {
		t.Error("two owners share a trust key")
	}
}

func TestConditionTellsTheHalvesOfIdleApart(t *testing.T) {
	for host, want := range map[string]string{
		"created": "created", "claimed": "claimed", "running": "running", "terminated": "terminated",
		"releasing": "idle (releasing)", "draining": "idle (releasing)", "pooled": "idle (pooled)",
	} {
		facts, _ := scene{host: host, answer: "none"}.facts()
		r := facts.Record
		if r.Condition() != want || r.Releasing() != (want == "idle (releasing)") || r.Pooled() != (want == "idle (pooled)") {
			t.Errorf("%s: condition %q, releasing %t, pooled %t", host, r.Condition(), r.Releasing(), r.Pooled())
		}
	}
}

func TestPageSize(t *testing.T) {
	for limit, want := range map[int]int{0: lifecycle.DefaultPageSize, -1: lifecycle.DefaultPageSize, 1: 1, 500: 500} {
		if got := (lifecycle.PageOf{Limit: limit}).Size(); got != want {
			t.Errorf("limit %d: size %d, want %d", limit, got, want)
		}
	}
}
