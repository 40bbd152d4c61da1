package policy_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// A plan for the night: the period of the day keeps one idle host and at night there is none, so what is idle now goes then, also a host that is
// young now or that no sweep has seen idle yet. A busy host stays, since its agent goes on reporting.
func TestLater(t *testing.T) {
	noon := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	day, err := policy.ParsePeriod("* 8-19 * * *", "UTC", 1, policy.EvictOldest)
	if err != nil {
		t.Fatal(err)
	}
	host := func(id string, busy bool, up time.Duration) policy.SnapshotInstance {
		return policy.SnapshotInstance{State: "running", Candidate: policy.Candidate{
			InstanceID: id, Owner: "acme", Scope: "organization", OS: "linux", LaunchedAt: noon.Add(-up), AgentBusy: &busy, AgentSeenAt: noon.Add(-10 * time.Second),
		}}
	}
	s := policy.Snapshot{
		Now: noon, Policy: policy.ScaleDown{Idle: []policy.Period{day}, IdleConfirmation: 10 * time.Minute},
		Instances: []policy.SnapshotInstance{host("i-old", false, 3*time.Hour), host("i-mid", false, 2*time.Hour), host("i-young", false, time.Minute), host("i-busy", true, time.Hour)},
	}
	for i, h := range s.Instances {
		// GitHub has lost sight of the busy one, which its agent still reports.
		status := map[bool]string{false: "online", true: "offline"}[*h.AgentBusy]
		s.Runners = append(s.Runners, policy.SnapshotRunner{Listed: true, Runner: policy.Runner{
			ID: int64(i + 1), Name: "remuda-1-" + h.InstanceID, Owner: "acme", Status: status, Busy: *h.AgentBusy, OfflineSince: noon,
		}})
	}
	const keep, mark, end = lifecycle.ActionKeep, lifecycle.ActionMarkIdle, policy.ActionDeregisterAndTerminate
	for name, tt := range map[string]struct {
		at   time.Time
		want map[string]lifecycle.Action
	}{
		"now":                    {noon, map[string]lifecycle.Action{"i-old": mark, "i-mid": keep, "i-young": keep, "i-busy": keep}},
		"a time that is over":    {noon.Add(-time.Hour), map[string]lifecycle.Action{"i-old": mark, "i-mid": keep, "i-young": keep, "i-busy": keep}},
		"before it is confirmed": {noon.Add(5 * time.Minute), map[string]lifecycle.Action{"i-old": mark, "i-mid": mark, "i-young": keep, "i-busy": keep}},
		"once it is confirmed":   {noon.Add(11 * time.Minute), map[string]lifecycle.Action{"i-old": end, "i-mid": mark, "i-young": keep, "i-busy": keep}},
		"at night":               {noon.Add(14 * time.Hour), map[string]lifecycle.Action{"i-old": end, "i-mid": end, "i-young": end, "i-busy": keep}},
	} {
		for _, v := range s.Later(tt.at).Plan() {
			if v.Action != tt.want[v.InstanceID] {
				t.Errorf("%s: %s: %s (%s), want %s", name, v.InstanceID, v.Action, v.Reason, tt.want[v.InstanceID])
			}
		}
	}
	if !s.Now.Equal(noon) || s.Instances[0].IdleDetectedAt != (time.Time{}) || !s.Instances[0].AgentSeenAt.Equal(noon.Add(-10*time.Second)) {
		t.Errorf("the snapshot itself has changed: %+v", s.Instances[0])
	}
}

// A host whose owner is not known may be on any list of runners, so its runner is looked for on all of them.
func TestAHostWithoutAnOwner(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s := policy.Snapshot{
		Now:       noon,
		Instances: []policy.SnapshotInstance{{State: "running", Candidate: policy.Candidate{InstanceID: "i-1", Orphan: true, LaunchedAt: noon.Add(-time.Hour)}}},
		Runners:   []policy.SnapshotRunner{{Listed: true, Runner: policy.Runner{ID: 7, Name: "remuda-1-i-1", Owner: "acme", Status: "online", Busy: true}}},
	}
	if got := s.Plan(); len(got) != 1 || got[0].Action == lifecycle.ActionTerminate || got[0].Action == policy.ActionDeregisterAndTerminate {
		t.Errorf("it is busy by a list, and ends: %+v", got)
	}
}
