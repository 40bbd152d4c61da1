package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

func manyHosts(n int, now time.Time) (hosts []policy.Candidate, listed []policy.Runner) {
	for i := range n {
		id := fmt.Sprintf("i-%017x", i)
		hosts = append(hosts, policy.Candidate{InstanceID: id, LaunchedAt: now.Add(-time.Hour - time.Duration(i)), Owner: "acme", Scope: "org", OS: "linux"})
		listed = append(listed, policy.Runner{ID: int64(i + 1), Name: "remuda-1-" + id, Owner: "acme", Status: "online"})
	}
	return hosts, listed
}

// drawAgo is a time before noon or one that is not known, often at a limit.
func drawAgo(t *rapid.T, name string) time.Time {
	minutes := rapid.SampledFrom([]int{-1, 0, 4, 5, 6, 10, 60, 60, 60}).Draw(t, name)
	if minutes < 0 {
		return time.Time{}
	}
	return noon.Add(-time.Duration(minutes) * time.Minute)
}

// oneOf is true once in n times. A range of numbers would be drawn from its
// beginning most of the time.
func oneOf(t *rapid.T, name string, n int) bool {
	return rapid.SampledFrom(append(make([]bool, n-1), true)).Draw(t, name)
}

func drawSnapshot(t *rapid.T) policy.Snapshot {
	s := policy.Snapshot{Now: noon, Policy: policy.ScaleDown{
		BootTime:         rapid.SampledFrom([]policy.ByOS{nil, {"linux": 10 * time.Minute}}).Draw(t, "boot"),
		IdleConfirmation: rapid.SampledFrom([]time.Duration{0, 5 * time.Minute, 5 * time.Minute, 10 * time.Minute}).Draw(t, "confirmation"),
	}}
	for range rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "periods") {
		p, err := policy.ParsePeriod(rapid.SampledFrom([]string{"* * * * *", "* 3 * * *"}).Draw(t, "cron"), "UTC",
			rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "count"), rapid.SampledFrom(policy.Evictions).Draw(t, "eviction"))
		if err != nil {
			t.Fatal(err)
		}
		s.Policy.Idle = append(s.Policy.Idle, p)
	}
	for n := range rapid.SampledFrom([]int{0, 16, 24, 32}).Draw(t, "hosts") {
		i := policy.SnapshotInstance{State: rapid.SampledFrom([]string{"running", "running", "running", "pending", "stopped"}).Draw(t, "state")}
		i.InstanceID = fmt.Sprintf("i-%d", n)
		i.LaunchedAt = drawAgo(t, "launched")
		i.Owner = rapid.SampledFrom([]string{"acme", "acme", "acme", "other/x", ""}).Draw(t, "owner")
		i.Scope = rapid.SampledFrom([]string{"org", "org", "org", ""}).Draw(t, "scope")
		i.OS = rapid.SampledFrom([]string{"linux", "windows"}).Draw(t, "os")
		i.Orphan = oneOf(t, "orphan", 4)
		i.RunnerID = rapid.SampledFrom([]int64{0, 0, 1, 2, 3, 4, 5, 99}).Draw(t, "runnerID")
		i.Bypass = oneOf(t, "bypass", 6)
		if oneOf(t, "idle", 2) {
			i.IdleDetectedAt = drawAgo(t, "idleDetected")
		}
		i.UnreadableIdle = i.IdleDetectedAt.IsZero() && oneOf(t, "unreadable", 4)
		yes, no := true, false
		i.AgentBusy = rapid.SampledFrom([]*bool{nil, nil, nil, &no, &no, &yes}).Draw(t, "agentBusy")
		i.AgentSeenAt = drawAgo(t, "agentSeen")
		s.Instances = append(s.Instances, i)
	}
	for _, i := range s.Instances {
		for range rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(t, "runners") {
			s.Runners = append(s.Runners, drawRunner(t, len(s.Runners)+1, i))
		}
	}
	return s
}

func drawRunner(t *rapid.T, id int, i policy.SnapshotInstance) policy.SnapshotRunner {
	r := policy.SnapshotRunner{Listed: !oneOf(t, "not listed", 5)}
	r.ID, r.Name, r.Owner = int64(id), fmt.Sprintf("remuda-%d-%s", id, i.InstanceID), i.Owner
	if r.Owner == "" || oneOf(t, "another's", 8) {
		r.Owner = "acme"
	}
	r.Status = rapid.SampledFrom([]string{"online", "online", "offline"}).Draw(t, "status")
	r.Busy = oneOf(t, "busy", 4)
	r.OfflineSince = drawAgo(t, "offlineSince")
	return r
}

func byID(s policy.Snapshot) map[string]policy.SnapshotInstance {
	m := map[string]policy.SnapshotInstance{}
	for _, i := range s.Instances {
		m[i.InstanceID] = i
	}
	return m
}

func ends(v policy.HostVerdict) bool {
	return v.Action == lifecycle.ActionTerminate || v.Action == policy.ActionDeregisterAndTerminate
}

// scaleDownRules are what no verdict breaks, by what they say.
var scaleDownRules = map[string]func(policy.Snapshot, policy.SnapshotInstance, policy.HostVerdict) bool{
	"a tagged host is kept": func(_ policy.Snapshot, i policy.SnapshotInstance, v policy.HostVerdict) bool {
		return !i.Bypass || v.Action == lifecycle.ActionKeep
	},
	"a host whose agent says busy does not end": func(_ policy.Snapshot, i policy.SnapshotInstance, v policy.HostVerdict) bool {
		return i.AgentBusy == nil || !*i.AgentBusy || !ends(v)
	},
	"a host with a busy registration is not deregistered": func(s policy.Snapshot, i policy.SnapshotInstance, v policy.HostVerdict) bool {
		return v.Action != policy.ActionDeregisterAndTerminate || !slices.ContainsFunc(s.Runners, func(r policy.SnapshotRunner) bool {
			return r.Busy && r.Listed && r.Owner == i.Owner && slices.Contains(v.RunnerIDs, r.ID)
		})
	},
	"a host that is online and busy on GitHub does not end": func(s policy.Snapshot, i policy.SnapshotInstance, v policy.HostVerdict) bool {
		name := i.InstanceID
		return !ends(v) || !slices.ContainsFunc(s.Runners, func(r policy.SnapshotRunner) bool {
			return r.Listed && r.Owner == i.Owner && r.Busy && r.Status == "online" && r.Name[len(r.Name)-len(name):] == name
		})
	},
	"only orphans are terminated as they are": func(_ policy.Snapshot, i policy.SnapshotInstance, v policy.HostVerdict) bool {
		return v.Action != lifecycle.ActionTerminate || i.Orphan
	},
	"an orphan is kept, unmarked or terminated": func(_ policy.Snapshot, i policy.SnapshotInstance, v policy.HostVerdict) bool {
		return !i.Orphan || slices.Contains([]lifecycle.Action{lifecycle.ActionKeep, lifecycle.ActionUnmarkOrphan, lifecycle.ActionTerminate}, v.Action)
	},
	"who is deregistered has registrations, and only that": func(_ policy.Snapshot, _ policy.SnapshotInstance, v policy.HostVerdict) bool {
		return (v.Action == policy.ActionDeregisterAndTerminate) == (len(v.RunnerIDs) > 0)
	},
	"who was never launched does not end, unless an orphan": func(_ policy.Snapshot, i policy.SnapshotInstance, v policy.HostVerdict) bool {
		return i.Orphan || !i.LaunchedAt.IsZero() || !ends(v) && v.Action != lifecycle.ActionMarkOrphan
	},
	"without owner or scope it is left alone, unless an orphan": func(_ policy.Snapshot, i policy.SnapshotInstance, v policy.HostVerdict) bool {
		return i.Orphan || i.Owner != "" && i.Scope != "" || v.Action == lifecycle.ActionKeep
	},
	"with a confirmation, no host goes without a mark of its age": func(s policy.Snapshot, i policy.SnapshotInstance, v policy.HostVerdict) bool {
		confirmation := s.Policy.IdleConfirmation
		return v.Action != policy.ActionDeregisterAndTerminate || confirmation == 0 ||
			!i.IdleDetectedAt.IsZero() && noon.Sub(i.IdleDetectedAt) >= confirmation
	},
	"without one, no host is marked as idle": func(s policy.Snapshot, _ policy.SnapshotInstance, v policy.HostVerdict) bool {
		return s.Policy.IdleConfirmation > 0 || v.Action != lifecycle.ActionMarkIdle && v.Action != lifecycle.ActionUnmarkIdle
	},
	"there is a reason": func(_ policy.Snapshot, _ policy.SnapshotInstance, v policy.HostVerdict) bool { return v.Reason != "" },
}

func TestScaleDownRules(t *testing.T) {
	seen := map[lifecycle.Action]int{}
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		hosts := byID(s)
		for _, v := range s.Plan() {
			seen[v.Action]++
			for rule, holds := range scaleDownRules {
				if !holds(s, hosts[v.InstanceID], v) {
					t.Errorf("%s, but: %+v\nof %+v", rule, v, hosts[v.InstanceID])
				}
			}
		}
	})
	for _, action := range []lifecycle.Action{
		lifecycle.ActionKeep, lifecycle.ActionTerminate, policy.ActionDeregisterAndTerminate,
		lifecycle.ActionMarkOrphan, lifecycle.ActionUnmarkOrphan, lifecycle.ActionMarkIdle, lifecycle.ActionUnmarkIdle,
	} {
		if seen[action] == 0 {
			t.Errorf("%s never came: the rules say nothing of it (%v)", action, seen)
		}
	}
}

// Every machine that is there gets one verdict, and the same each time.
func TestOneVerdictForEachHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		var want, got []string
		for _, i := range s.Instances {
			if i.State == "running" || i.State == "pending" {
				want = append(want, i.InstanceID)
			}
		}
		plan := s.Plan()
		for _, v := range plan {
			got = append(got, v.InstanceID)
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("hosts (-there +judged):\n%s", diff)
		}
		if diff := cmp.Diff(plan, s.Plan()); diff != "" {
			t.Errorf("plan (-first +second):\n%s", diff)
		}
	})
}

// In which order hosts and registrations are listed makes no difference to any
// host; it only is that in which orphans and owners come.
func TestOrderMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		want := actionsOf(s.Plan())
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		r.Shuffle(len(s.Instances), func(i, j int) { s.Instances[i], s.Instances[j] = s.Instances[j], s.Instances[i] })
		r.Shuffle(len(s.Runners), func(i, j int) { s.Runners[i], s.Runners[j] = s.Runners[j], s.Runners[i] })
		if diff := cmp.Diff(want, actionsOf(s.Plan())); diff != "" {
			t.Errorf("actions (-before +after shuffling):\n%s", diff)
		}
	})
}

func actionsOf(verdicts []policy.HostVerdict) map[string]lifecycle.Action {
	m := map[string]lifecycle.Action{}
	for _, v := range verdicts {
		m[v.InstanceID] = v.Action
	}
	return m
}

// As many idle hosts are kept for each owner as the period says, if there are
// as many, and those that its eviction spares.
func TestIdleCountOfEachOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 12).Draw(t, "count")
		eviction := rapid.SampledFrom(policy.Evictions).Draw(t, "eviction")
		p, err := policy.ParsePeriod("* * * * *", "UTC", count, eviction)
		if err != nil {
			t.Fatal(err)
		}
		hosts, listed := manyHosts(10, noon)
		for i := range listed {
			listed[i].Busy = rapid.Bool().Draw(t, "busy")
		}
		idle := slices.DeleteFunc(slices.Clone(listed), func(r policy.Runner) bool { return r.Busy })
		if eviction == policy.EvictNewest {
			slices.Reverse(idle) // the first host is the youngest
		}
		got := actionsOf(policy.ScaleDown{Idle: []policy.Period{p}}.DecideOwner(hosts, listed, p, noon))
		for n, r := range idle {
			id := r.Name[len("remuda-1-"):]
			want := lifecycle.ActionKeep
			if n >= count {
				want = policy.ActionDeregisterAndTerminate
			}
			if got[id] != want {
				t.Errorf("host %d of %d idle ones, %s, %d kept: %s, want %s", n, len(idle), eviction, count, got[id], want)
			}
		}
	})
}
