package policy_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/remuda-ci/remuda/internal/policy"
)

// TestTopUpOfAnyFacts: whatever the facts are, a top-up launches or retires, never
// both except for hosts of another kind; it stays within the maximum, retires no host
// that is busy, held or gone already, depends on no order, and once it is carried
// out nothing is left to be done.
func TestTopUpOfAnyFacts(t *testing.T) {
	t.Parallel()
	schedules := [][]policy.Period{
		nil, {period(t, "* 9-17 * * 1-5", "UTC", 5)}, {period(t, "*/10 * * * *", "UTC", 3), period(t, "* * * * *", "Asia/Kolkata", 1)},
	}
	rapid.Check(t, func(t *rapid.T) {
		now := monday.Add(time.Duration(rapid.IntRange(0, 7*24*60).Draw(t, "minute")) * time.Minute)
		p := policy.WarmPolicy{
			MinimumIdle: rapid.IntRange(0, 4).Draw(t, "minimum"), Maximum: rapid.SampledFrom([]*int{nil, new(0), new(1), new(2), new(4), new(8)}).Draw(t, "maximum"),
			Lead: time.Duration(rapid.IntRange(0, 20).Draw(t, "lead")) * time.Minute, Schedules: rapid.SampledFrom(schedules).Draw(t, "schedules"),
		}
		f := policy.WarmFacts{Others: rapid.IntRange(0, 6).Draw(t, "others"), Hosts: anyWarmHosts(t, now),
			Held: rapid.SampledFrom([]string{"", "", "the fleet is held"}).Draw(t, "held")}
		d := policy.TopUp(p, f, now)

		live := len(f.Hosts) + f.Others
		if d.Launch < 0 || d.Launch > 0 && p.Maximum != nil && live+d.Launch > *p.Maximum || d.Launch > d.Wanted {
			t.Fatalf("launches %d beside %d with at most %+v: %s", d.Launch, live, p, d.Reason)
		}
		if f.Held != "" && len(d.Retire) > 0 {
			t.Fatalf("retires %v in a held fleet", d.Retire)
		}
		surplus := 0
		for _, h := range f.Hosts {
			if !slices.Contains(d.Retire, h.InstanceID) {
				continue
			}
			if h.Busy || h.Held || h.Retiring || h.Interrupted || h.Kept {
				t.Fatalf("retires %+v", h)
			}
			if h.Unfit == "" {
				surplus++
			}
		}
		if surplus > 0 && d.Launch > 0 || surplus > 0 && d.Idle+d.Coming-surplus != d.Wanted {
			t.Fatalf("launches %d and retires %d of %d: %s", d.Launch, surplus, d.Idle+d.Coming, d.Reason)
		}
		f.Hosts = rapid.Permutation(f.Hosts).Draw(t, "in another order")
		if diff := cmp.Diff(d, policy.TopUp(p, f, now)); diff != "" {
			t.Fatalf("another decision in another order:\n%s", diff)
		}
		f.Hosts = afterTopUp(f.Hosts, d)
		if next := policy.TopUp(p, f, now); next.Launch > 0 || len(next.Retire) > 0 {
			t.Fatalf("after %+v it wants %+v", d, next)
		}
	})
}

func anyWarmHosts(t *rapid.T, now time.Time) []policy.WarmHost {
	var hosts []policy.WarmHost
	for i := range rapid.IntRange(0, 8).Draw(t, "hosts") {
		h := policy.WarmHost{InstanceID: fmt.Sprintf("i-%d", i), Coming: rapid.Bool().Draw(t, "coming")}
		if !h.Coming {
			h.EndsAt = now.Add(time.Duration(rapid.IntRange(-5, 60).Draw(t, "left")) * time.Minute)
		}
		switch rapid.IntRange(0, 9).Draw(t, "trouble") {
		case 0:
			h.Busy = true
		case 1:
			h.Held = true
		case 2:
			h.Retiring = true
		case 3:
			h.Interrupted = true
		case 4:
			h.Unfit = "of another class"
		case 5:
			h.Kept = true
		}
		hosts = append(hosts, h)
	}
	return hosts
}

// afterTopUp are the hosts when the decision was carried out: the retired are
// about to leave, the launched are coming.
func afterTopUp(hosts []policy.WarmHost, d policy.WarmDecision) []policy.WarmHost {
	after := slices.Clone(hosts)
	for i := range after {
		after[i].Retiring = after[i].Retiring || slices.Contains(d.Retire, after[i].InstanceID)
	}
	for i := range d.Launch {
		after = append(after, policy.WarmHost{InstanceID: fmt.Sprintf("i-new-%d", i), Coming: true})
	}
	return after
}
