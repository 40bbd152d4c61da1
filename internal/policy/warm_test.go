package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// monday is one in winter, in Amsterdam an hour ahead of UTC.
var monday = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

func period(t testing.TB, cron, zone string, idle int) policy.Period {
	t.Helper()
	p, err := policy.ParsePeriod(cron, zone, idle, "")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func idleHost(id string, left time.Duration, now time.Time) policy.WarmHost {
	return policy.WarmHost{InstanceID: id, EndsAt: now.Add(left)}
}

func TestTopUp(t *testing.T) {
	const lead = 3 * time.Minute
	day := []policy.Period{
		period(t, "* 9-17 * * 1-5", "Europe/Amsterdam", 4), // 08:00 to 17:00 UTC
		period(t, "* * * * *", "UTC", 1),
	}
	at := func(hour, minute int) time.Time {
		return monday.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
	}
	noon := at(12, 0)
	hosts := func(n int) (all []policy.WarmHost) {
		for i := range n {
			all = append(all, idleHost(fmt.Sprintf("i-%d", i+1), time.Duration(10+i)*time.Minute, noon))
		}
		return all
	}
	with := func(change func(*policy.WarmHost)) []policy.WarmHost {
		all := hosts(4)
		change(&all[0])
		return all
	}
	tests := map[string]struct {
		policy policy.WarmPolicy
		facts  policy.WarmFacts
		now    time.Time
		want   policy.WarmDecision
	}{
		"nothing wanted, nothing there": {want: policy.WarmDecision{Code: lifecycle.ReasonWarmEnough, Reason: "0 wanted (minimum_idle), 0 idle and 0 coming"}},
		"the minimum": {policy: policy.WarmPolicy{MinimumIdle: 2}, now: noon, want: policy.WarmDecision{
			Launch: 2, Wanted: 2, Code: lifecycle.ReasonWarmMissing, Reason: "2 wanted (minimum_idle), 0 idle and 0 coming: 2 missing"}},
		"a schedule wants more": {policy: policy.WarmPolicy{MinimumIdle: 2, Schedules: day}, facts: policy.WarmFacts{Hosts: hosts(3)}, now: noon,
			want: policy.WarmDecision{Launch: 1, Wanted: 4, Idle: 3, Code: lifecycle.ReasonWarmMissing, Reason: "4 wanted (schedule * 9-17 * * 1-5), 3 idle and 0 coming: 1 missing"}},
		"a schedule wants less than the minimum": {policy: policy.WarmPolicy{MinimumIdle: 6, Schedules: day}, facts: policy.WarmFacts{Hosts: hosts(6)}, now: noon,
			want: policy.WarmDecision{Wanted: 6, Idle: 6, Code: lifecycle.ReasonWarmEnough, Reason: "6 wanted (minimum_idle), 6 idle and 0 coming"}},
		"the first that holds counts": {policy: policy.WarmPolicy{Schedules: []policy.Period{day[1], day[0]}}, now: noon,
			want: policy.WarmDecision{Launch: 1, Wanted: 1, Code: lifecycle.ReasonWarmMissing, Reason: "1 wanted (schedule * * * * *), 0 idle and 0 coming: 1 missing"}},
		"ahead of a period": {policy: policy.WarmPolicy{Schedules: day[:1], Lead: lead}, now: at(7, 57), want: policy.WarmDecision{
			Launch: 4, Wanted: 4, Code: lifecycle.ReasonWarmMissing, Reason: "4 wanted (schedule * 9-17 * * 1-5 in 3m0s), 0 idle and 0 coming: 4 missing"}},
		"not so early": {policy: policy.WarmPolicy{Schedules: day[:1], Lead: lead}, now: at(7, 57).Add(-time.Second),
			want: policy.WarmDecision{Code: lifecycle.ReasonWarmEnough, Reason: "0 wanted (minimum_idle), 0 idle and 0 coming"}},
		"before the end of a period nothing goes": {policy: policy.WarmPolicy{Schedules: day[:1], Lead: lead}, now: at(16, 59),
			facts: policy.WarmFacts{Hosts: []policy.WarmHost{idleHost("i-1", time.Hour, at(16, 59))}},
			want:  policy.WarmDecision{Launch: 3, Wanted: 4, Idle: 1, Code: lifecycle.ReasonWarmMissing, Reason: "4 wanted (schedule * 9-17 * * 1-5), 1 idle and 0 coming: 3 missing"}},
		"after the end of a period all go, those that end first first": {policy: policy.WarmPolicy{Lead: lead}, facts: policy.WarmFacts{Hosts: hosts(3)}, now: noon,
			want: policy.WarmDecision{Retire: []string{"i-1", "i-2", "i-3"}, Idle: 3, Code: lifecycle.ReasonWarmSurplus, Reason: "0 wanted (minimum_idle), 3 idle and 0 coming: 3 too many"}},
		"what is coming goes before what is there": {policy: policy.WarmPolicy{MinimumIdle: 2}, now: noon,
			facts: policy.WarmFacts{Hosts: append(hosts(2), policy.WarmHost{InstanceID: "i-8", Coming: true}, policy.WarmHost{InstanceID: "i-9", Coming: true})},
			want:  policy.WarmDecision{Retire: []string{"i-9", "i-8"}, Wanted: 2, Idle: 2, Coming: 2, Code: lifecycle.ReasonWarmSurplus, Reason: "2 wanted (minimum_idle), 2 idle and 2 coming: 2 too many"}},
		"what is coming counts": {policy: policy.WarmPolicy{MinimumIdle: 3}, facts: policy.WarmFacts{Hosts: append(hosts(2), policy.WarmHost{InstanceID: "i-9", Coming: true})}, now: noon,
			want: policy.WarmDecision{Wanted: 3, Idle: 2, Coming: 1, Code: lifecycle.ReasonWarmEnough, Reason: "3 wanted (minimum_idle), 2 idle and 1 coming"}},
		"one that ends within the lead is replaced": {policy: policy.WarmPolicy{MinimumIdle: 2, Lead: 10 * time.Minute}, facts: policy.WarmFacts{Hosts: hosts(2)}, now: noon,
			want: policy.WarmDecision{Launch: 1, Wanted: 2, Idle: 1, Code: lifecycle.ReasonWarmMissing, Reason: "2 wanted (minimum_idle), 1 idle and 0 coming: 1 missing"}},
		"within the maximum": {policy: policy.WarmPolicy{MinimumIdle: 4, Maximum: new(6)}, facts: policy.WarmFacts{Hosts: hosts(1), Others: 3}, now: noon,
			want: policy.WarmDecision{Launch: 2, Wanted: 4, Idle: 1, Full: true,
				Code: lifecycle.ReasonPoolFull, Reason: "4 wanted (minimum_idle), 1 idle and 0 coming: 3 missing, and room for 2: the pool has 4 of at most 6 hosts"}},
		"as many as there is room for": {policy: policy.WarmPolicy{MinimumIdle: 2, Maximum: new(4)}, facts: policy.WarmFacts{Hosts: hosts(1), Others: 2}, now: noon,
			want: policy.WarmDecision{Launch: 1, Wanted: 2, Idle: 1, Code: lifecycle.ReasonWarmMissing, Reason: "2 wanted (minimum_idle), 1 idle and 0 coming: 1 missing"}},
		"a schedule wants as many as the minimum": {policy: policy.WarmPolicy{MinimumIdle: 4, Schedules: day}, facts: policy.WarmFacts{Hosts: hosts(4)}, now: noon,
			want: policy.WarmDecision{Wanted: 4, Idle: 4, Code: lifecycle.ReasonWarmEnough, Reason: "4 wanted (minimum_idle), 4 idle and 0 coming"}},
		"those that end first go first, in whatever order they are listed": {policy: policy.WarmPolicy{MinimumIdle: 1}, now: noon,
			facts: policy.WarmFacts{Hosts: []policy.WarmHost{hosts(3)[2], hosts(3)[0], hosts(3)[1]}},
			want:  policy.WarmDecision{Retire: []string{"i-1", "i-2"}, Wanted: 1, Idle: 3, Code: lifecycle.ReasonWarmSurplus, Reason: "1 wanted (minimum_idle), 3 idle and 0 coming: 2 too many"}},
		"beyond the maximum": {policy: policy.WarmPolicy{MinimumIdle: 4, Maximum: new(6)}, facts: policy.WarmFacts{Hosts: hosts(1), Others: 7}, now: noon,
			want: policy.WarmDecision{Wanted: 4, Idle: 1, Full: true,
				Code: lifecycle.ReasonPoolFull, Reason: "4 wanted (minimum_idle), 1 idle and 0 coming: 3 missing, and room for 0: the pool has 8 of at most 6 hosts"}},
		"none while they do not come up": {policy: policy.WarmPolicy{MinimumIdle: 1}, facts: policy.WarmFacts{NotBefore: noon.Add(1)}, now: noon,
			want: policy.WarmDecision{Wanted: 1, Code: lifecycle.ReasonLaunchesFailed, Reason: "1 wanted (minimum_idle), 0 idle and 0 coming: 1 missing, and none is launched before 2026-01-05T12:00:00Z, since the last ones did not come up"}},
		"none while spot is paused": {policy: policy.WarmPolicy{MinimumIdle: 2}, facts: policy.WarmFacts{Hosts: hosts(1), Paused: lifecycle.Because(lifecycle.ReasonSpotPaused, "too many were interrupted")}, now: noon,
			want: policy.WarmDecision{Wanted: 2, Idle: 1, Code: lifecycle.ReasonSpotPaused, Reason: "2 wanted (minimum_idle), 1 idle and 0 coming: 1 missing, and none is launched: too many were interrupted"}},
		"held beyond their time they are not replaced": {policy: policy.WarmPolicy{MinimumIdle: 4, Lead: 11 * time.Minute}, now: noon,
			facts: policy.WarmFacts{Held: "held", Hosts: with(func(h *policy.WarmHost) { h.Kept = true })},
			want:  policy.WarmDecision{Wanted: 4, Idle: 2, Kept: 2, Code: lifecycle.ReasonWarmEnough, Reason: "4 wanted (minimum_idle), 2 idle and 0 coming, 2 kept beyond their time"}},
		"nor is one that did not come up": {policy: policy.WarmPolicy{MinimumIdle: 1}, now: noon,
			facts: policy.WarmFacts{Held: "held", Hosts: []policy.WarmHost{{InstanceID: "i-1", Coming: true, Kept: true}}},
			want:  policy.WarmDecision{Wanted: 1, Kept: 1, Code: lifecycle.ReasonWarmEnough, Reason: "1 wanted (minimum_idle), 0 idle and 0 coming, 1 kept beyond their time"}},
		"in a held fleet none goes": {policy: policy.WarmPolicy{}, facts: policy.WarmFacts{Held: "the fleet is held", Hosts: hosts(2)}, now: noon,
			want: policy.WarmDecision{Idle: 2, Code: lifecycle.ReasonFleetHeld, Reason: "0 wanted (minimum_idle), 2 idle and 0 coming: 2 too many, and the fleet is held"}},
		"nor one of another class": {policy: policy.WarmPolicy{MinimumIdle: 4}, now: noon,
			facts: policy.WarmFacts{Held: "held", Hosts: with(func(h *policy.WarmHost) { h.Unfit = "x" })}, want: oneMissing},
		"after the hold what it kept is replaced": {policy: policy.WarmPolicy{MinimumIdle: 4}, now: noon,
			facts: policy.WarmFacts{Hosts: with(func(h *policy.WarmHost) { h.Kept = true })}, want: oneMissing},
		"again once the time has come": {policy: policy.WarmPolicy{MinimumIdle: 1}, facts: policy.WarmFacts{NotBefore: noon}, now: noon,
			want: policy.WarmDecision{Launch: 1, Wanted: 1, Code: lifecycle.ReasonWarmMissing, Reason: "1 wanted (minimum_idle), 0 idle and 0 coming: 1 missing"}},
		"a busy one is no idle one":      {policy: policy.WarmPolicy{MinimumIdle: 4}, facts: policy.WarmFacts{Hosts: with(func(h *policy.WarmHost) { h.Busy = true })}, now: noon, want: oneMissing},
		"nor is a held one":              {policy: policy.WarmPolicy{MinimumIdle: 4}, facts: policy.WarmFacts{Hosts: with(func(h *policy.WarmHost) { h.Held = true })}, now: noon, want: oneMissing},
		"nor is a retiring one":          {policy: policy.WarmPolicy{MinimumIdle: 4}, facts: policy.WarmFacts{Hosts: with(func(h *policy.WarmHost) { h.Retiring = true })}, now: noon, want: oneMissing},
		"nor is an interrupted one":      {policy: policy.WarmPolicy{MinimumIdle: 4}, facts: policy.WarmFacts{Hosts: with(func(h *policy.WarmHost) { h.Interrupted = true })}, now: noon, want: oneMissing},
		"one of another class goes":      {policy: policy.WarmPolicy{MinimumIdle: 4}, facts: policy.WarmFacts{Hosts: with(func(h *policy.WarmHost) { h.Unfit = "x" })}, now: noon, want: oneUnfit},
		"but not while it is held":       {policy: policy.WarmPolicy{MinimumIdle: 4}, facts: policy.WarmFacts{Hosts: with(func(h *policy.WarmHost) { h.Unfit, h.Held = "x", true })}, now: noon, want: oneMissing},
		"a held one takes up room still": {policy: policy.WarmPolicy{MinimumIdle: 4, Maximum: new(4)}, facts: policy.WarmFacts{Hosts: with(func(h *policy.WarmHost) { h.Held = true })}, now: noon, want: noRoom},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, policy.TopUp(tt.policy, tt.facts, tt.now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

var (
	oneMissing = policy.WarmDecision{Launch: 1, Wanted: 4, Idle: 3, Code: lifecycle.ReasonWarmMissing, Reason: "4 wanted (minimum_idle), 3 idle and 0 coming: 1 missing"}
	oneUnfit   = policy.WarmDecision{Launch: 1, Retire: []string{"i-1"}, Wanted: 4, Idle: 3, Code: oneMissing.Code, Reason: oneMissing.Reason}
	noRoom     = policy.WarmDecision{Wanted: 4, Idle: 3, Full: true,
		Code: lifecycle.ReasonPoolFull, Reason: "4 wanted (minimum_idle), 3 idle and 0 coming: 1 missing, and room for 0: the pool has 4 of at most 4 hosts"}
)
