package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
)

func TestIntroduction(t *testing.T) {
	at := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	record := func(change func(*lifecycle.Record)) lifecycle.Record {
		r := lifecycle.Record{
			InstanceID: "i-1", Pool: "default", State: lifecycle.StateClaimed, RunID: "41", Repository: "acme/shop", Assignment: 5, Uses: 4, LaunchedAt: at.Add(-time.Hour),
			Hardware: lifecycle.Hardware{InstanceType: "c5.large", UsageClass: lifecycle.UsageSpot, Zone: "eu-west-1a"},
			Arrival:  arrival.Of(at, at.Add(1500*time.Millisecond)),
		}
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		record lifecycle.Record
		want   []string
	}{
		"warm": {record(func(*lifecycle.Record) {}), []string{
			"::group::Remuda: host i-1 (c5.large, spot, eu-west-1a), warm",
			"Asked for at 10:00:00Z and claimed at 10:00:01Z, 1.5s later.",
			"It waited, clean, in pool default.",
			"3 runs were on it before, and it was reset after each. Its machine was launched at 09:00:00Z.",
			"More: remuda why i-1",
			"::endgroup::",
		}},
		"hot, its second run": {record(func(r *lifecycle.Record) { r.Standby, r.Uses = &lifecycle.Standby{}, 2 }), []string{
			"::group::Remuda: host i-1 (c5.large, spot, eu-west-1a), hot",
			"Asked for at 10:00:00Z and claimed at 10:00:01Z, 1.5s later.",
			"It had registered before the run asked, so the claim only set its labels.",
			"One run was on it before, and it was reset after that. Its machine was launched at 09:00:00Z.",
			"More: remuda why i-1",
			"::endgroup::",
		}},
		"cold, after a limit": {record(func(r *lifecycle.Record) {
			r.Assignment, r.Uses, r.Zone = 1, 1, ""
			r.Arrival = arrival.Of(at, at.Add(-time.Second), "", "acme has 3 of 3 hosts\n::error::forged")
		}), []string{
			"::group::Remuda: host i-1 (c5.large, spot), cold",
			"Asked for at 10:00:00Z and launched at 09:59:59Z, 0s later.",
			"It was launched for this run: the pool had no clean host that the run may use.",
			"What kept it: acme has 3 of 3 hosts.",
			"Nothing has run on it before. Its machine was launched at 09:00:00Z.",
			"More: remuda why i-1",
			"::endgroup::",
		}},
		"a record of an older controld": {record(func(r *lifecycle.Record) { r.Arrival = nil }), nil},
		"a pooled host":                 {record(func(r *lifecycle.Record) { r.State = lifecycle.StateIdle }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			want := strings.Join(c.want, "\n")
			if want != "" {
				want += "\n"
			}
			if d := cmp.Diff(want, introduction(c.record)); d != "" {
				t.Error(d)
			}
		})
	}
}
