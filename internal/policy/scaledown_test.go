package policy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// What a snapshot cannot say: that GitHub gave no answer.
func TestOrphanWhenGitHubCannotBeAsked(t *testing.T) {
	busy := true
	tests := map[string]struct {
		host policy.Candidate
		want policy.HostVerdict
	}{
		"with an id": {policy.Candidate{InstanceID: "i-1", RunnerID: 7},
			policy.HostVerdict{InstanceID: "i-1", Action: lifecycle.ActionKeep, Code: lifecycle.ReasonGitHubUnavailable, Reason: "an orphan, and GitHub could not be asked for its runner 7: the next sweep asks again"}},
		"without an id": {policy.Candidate{InstanceID: "i-1"},
			policy.HostVerdict{InstanceID: "i-1", Action: lifecycle.ActionTerminate, Code: lifecycle.ReasonOrphan, Reason: "an orphan that has no runner id"}},
		"with the tag": {policy.Candidate{InstanceID: "i-1", RunnerID: 7, Bypass: true},
			policy.HostVerdict{InstanceID: "i-1", Action: lifecycle.ActionKeep, Code: lifecycle.ReasonBypassed, Reason: "hold: it is tagged remuda:bypass-removal=true"}},
		"busy by its agent": {policy.Candidate{InstanceID: "i-1", AgentBusy: &busy},
			policy.HostVerdict{InstanceID: "i-1", Action: lifecycle.ActionKeep, Code: lifecycle.ReasonAgentBusy, Reason: "an orphan for GitHub, but its agent says that it runs a job"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, policy.ScaleDown{}.DecideOrphan(test.host, policy.RunnerLookup{}, nil)); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

// All registrations of a host that goes are deleted, and none of another.
func TestRegistrationsOfWhoGoes(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	host := func(id string) policy.Candidate {
		return policy.Candidate{InstanceID: id, LaunchedAt: now.Add(-time.Hour), Owner: "acme", Scope: "org", OS: "linux"}
	}
	listed := []policy.Runner{
		{ID: 3, Name: "remuda-2-i-1", Owner: "acme", Status: "online"},
		{ID: 4, Name: "remuda-1-i-2", Owner: "acme", Status: "online", Busy: true},
		{ID: 1, Name: "remuda-1-i-1", Owner: "acme", Status: "offline"},
		{ID: 5, Name: "i", Owner: "acme", Status: "online"},
	}
	orphan := host("i-3")
	orphan.Orphan = true
	got := policy.ScaleDown{}.DecideOwner([]policy.Candidate{orphan, host("i-2"), host("i-1"), host("i-4")}, listed, policy.Period{}, now)
	want := []policy.HostVerdict{
		{InstanceID: "i-1", Action: policy.ActionDeregisterAndTerminate, Code: lifecycle.ReasonIdle, Reason: "idle, beyond the 0 that are kept so for its owner", RunnerIDs: []int64{3, 1}},
		{InstanceID: "i-2", Action: lifecycle.ActionKeep, Code: lifecycle.ReasonRunnerBusy, Reason: "GitHub says that runner 4 is online and busy"},
		{InstanceID: "i-4", Action: lifecycle.ActionMarkOrphan, Code: lifecycle.ReasonNotListed, Reason: "GitHub does not list it: it has had 1h0m0s, and the boot time is 5m0s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// The last word of an agent was that its job runs. GitHub has no job on it, so that word is not taken back by a runner that is offline.
func TestABusyAgentThatIsSilent(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	yes, long := true, now.Add(-time.Hour)
	host := policy.Candidate{InstanceID: "i-1", LaunchedAt: long, Owner: "acme", Scope: "org", OS: "linux", AgentBusy: &yes, AgentSeenAt: long}
	for _, tt := range []struct {
		busy bool
		want lifecycle.Action
	}{{false, lifecycle.ActionKeep}, {true, lifecycle.ActionMarkOrphan}} {
		listed := []policy.Runner{{ID: 1, Name: "remuda-1-i-1", Owner: "acme", Status: "offline", OfflineSince: long, Busy: tt.busy}}
		got := policy.ScaleDown{}.DecideOwner([]policy.Candidate{host}, listed, policy.Period{}, now)
		if got[0].Action != tt.want {
			t.Errorf("a runner that is offline, busy %t: %s (%s), want %s", tt.busy, got[0].Action, got[0].Reason, tt.want)
		}
	}
}

// A runner may be called as its host is, and nothing else.
func TestARunnerWithTheNameOfItsHost(t *testing.T) {
	got := policy.ByHost([]policy.Candidate{{InstanceID: "i-1"}}, []policy.Runner{{ID: 1, Name: "i-1"}, {ID: 2, Name: "-1"}, {ID: 3, Name: "i-12"}})
	if want := map[string][]policy.Runner{"i-1": {{ID: 1, Name: "i-1"}}}; !cmp.Equal(want, got) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Ten thousand hosts of one owner are no more than a moment's work.
func BenchmarkOwner(b *testing.B) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	hosts, listed := manyHosts(10_000, now)
	for b.Loop() {
		policy.ScaleDown{}.DecideOwner(hosts, listed, policy.Period{}, now)
	}
}
