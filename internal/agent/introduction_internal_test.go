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
			Hardware: lifecycle.Hardware{InstanceType: "c5.large", UsageClass: lifecycle.UsageSpot, Zone: "eu-west-1a"}, TrustKey: "acme/shop", LastRun: "40",
			Arrival: arrival.Of(at, at.Add(1500*time.Millisecond), arrival.Wait{}, nil),
		}
		change(&r)
		return r
	}
	cold := func(r *lifecycle.Record) { r.Assignment, r.Uses, r.LastRun = 1, 1, "" }
	ofJobPool := func(r *lifecycle.Record) { r.RunID, r.JobsOf = "turn:small:2", "acme/shop" }
	for name, c := range map[string]struct {
		record lifecycle.Record
		want   []string
	}{
		"warm": {record(func(*lifecycle.Record) {}), []string{
			"::group::Remuda: host i-1 (c5.large, spot, eu-west-1a), warm",
			"Asked for at 10:00:00Z and claimed at 10:00:01Z, 1.5s later.",
			"It waited, clean, in pool default.",
			"3 runs were on it before, the last one run 40 of acme/shop, and it was reset after each. Its machine was launched at 09:00:00Z.",
			"More: remuda why i-1",
			"::endgroup::",
		}},
		"warm, after a run of another repository": {record(func(r *lifecycle.Record) { r.TrustKey, r.LastRun = "acme", "shop2/40" }), []string{
			"::group::Remuda: host i-1 (c5.large, spot, eu-west-1a), warm",
			"Asked for at 10:00:00Z and claimed at 10:00:01Z, 1.5s later.",
			"It waited, clean, in pool default.",
			"3 runs were on it before, and it was reset after each. Its machine was launched at 09:00:00Z.",
			"More: remuda why i-1",
			"::endgroup::",
		}},
		"warm, after a run of its repository, of a host that others of its owner may have too": {record(func(r *lifecycle.Record) { r.TrustKey, r.LastRun = "acme", "shop/40" }), []string{
			"::group::Remuda: host i-1 (c5.large, spot, eu-west-1a), warm",
			"Asked for at 10:00:00Z and claimed at 10:00:01Z, 1.5s later.",
			"It waited, clean, in pool default.",
			"3 runs were on it before, the last one run 40 of acme/shop, and it was reset after each. Its machine was launched at 09:00:00Z.",
			"More: remuda why i-1",
			"::endgroup::",
		}},
		"warm, by its caches": {record(func(r *lifecycle.Record) { r.Arrival.Chosen = "it had the run's cache, 1.2 GiB\n::error::forged" }), []string{
			"::group::Remuda: host i-1 (c5.large, spot, eu-west-1a), warm",
			"Asked for at 10:00:00Z and claimed at 10:00:01Z, 1.5s later.",
			"It waited, clean, in pool default.",
			"It was chosen of the idle hosts, since it had the run's cache, 1.2 GiB.",
			"3 runs were on it before, the last one run 40 of acme/shop, and it was reset after each. Its machine was launched at 09:00:00Z.",
			"More: remuda why i-1",
			"::endgroup::",
		}},
		"hot, its second run": {record(func(r *lifecycle.Record) { r.Standby, r.Uses = &lifecycle.Standby{}, 2 }), []string{
			"::group::Remuda: host i-1 (c5.large, spot, eu-west-1a), hot",
			"Asked for at 10:00:00Z and claimed at 10:00:01Z, 1.5s later.",
			"It began to register before it was claimed, so the claim only set its labels.",
			"One run was on it before: run 40 of acme/shop, and it was reset after that. Its machine was launched at 09:00:00Z.",
			"More: remuda why i-1",
			"::endgroup::",
		}},
		"cold, after a limit": {record(func(r *lifecycle.Record) {
			cold(r)
			r.Zone = ""
			r.Arrival = arrival.Of(at, at.Add(-time.Second), arrival.Wait{Held: "acme has 3 of 3 hosts\n::error::forged", HeldBy: "quota"}, nil)
		}), []string{
			"::group::Remuda: host i-1 (c5.large, spot), cold",
			"Asked for at 10:00:00Z and launched at 09:59:59Z, 0s later.",
			"What kept it (quota): acme has 3 of 3 hosts.",
			"It was launched for this run, since pool default had no idle host left.",
			"Nothing has run on it before. Its machine was launched at 09:00:00Z.",
			"More: remuda why i-1",
			"::endgroup::",
		}},
		"cold, for a job": {record(func(r *lifecycle.Record) {
			cold(r)
			ofJobPool(r)
			r.Arrival.Wait = arrival.Wait{QueuedAt: at.Add(-30 * time.Minute), Held: "pool small has 1 of 1 host", HeldBy: "pool_full"}
			r.Arrival.Missed = []arrival.Miss{arrival.MissTrust, arrival.MissLeaving}
		}), []string{
			"::group::Remuda: host i-1 (c5.large, spot, eu-west-1a), cold",
			"The job that it was asked for was queued at 09:30:00Z. GitHub may have given it another one.",
			"Asked for at 10:00:00Z, 30m0s after that, and launched at 10:00:01Z, 1.5s later.",
			"What kept it (pool_full): pool small has 1 of 1 host.",
			"It was launched for a job, since no idle host would do: some are kept for other repositories, some are about to end.",
			"Nothing has run on it before. Its machine was launched at 09:00:00Z.",
			"More: remuda why i-1",
			"::endgroup::",
		}},
		"for a job of a run": {record(func(r *lifecycle.Record) {
			r.Uses, r.LastRun = 1, ""
			r.Arrival.QueuedAt = at.Add(-2 * time.Second)
		}), []string{
			"::group::Remuda: host i-1 (c5.large, spot, eu-west-1a), warm",
			"The job that it was asked for was queued at 09:59:58Z.",
			"Asked for at 10:00:00Z, 2s after that, and claimed at 10:00:01Z, 1.5s later.",
			"It waited, clean, in pool default.",
			"Nothing has run on it before. Its machine was launched at 09:00:00Z.",
			"More: remuda why i-1",
			"::endgroup::",
		}},
		"of a pool's minimum": {record(func(r *lifecycle.Record) {
			ofJobPool(r)
			r.RunID, r.JobsOf = "spare:small:2", "acme" // a job of any repository of acme
		}), []string{
			"::group::Remuda: host i-1 (c5.large, spot, eu-west-1a), warm",
			"It was asked for as one of the minimum of pool default, before a job waited for it.",
			"Asked for at 10:00:00Z and claimed at 10:00:01Z, 1.5s later.",
			"It waited, clean, in pool default.",
			"3 runs were on it before, and it was reset after each. Its machine was launched at 09:00:00Z.",
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

// TestEachMissHasWords: a row has what is written here, and no log of a job shows a code.
func TestEachMissHasWords(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range arrival.Misses {
		words := missedWords(m, "default")
		if words == string(m) || seen[words] {
			t.Errorf("%s: %q", m, words)
		}
		seen[words] = true
	}
}
