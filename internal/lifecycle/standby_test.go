package lifecycle_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// A clean host registers ahead of need only where its next run can make use of that.
func TestStandsBy(t *testing.T) {
	tests := []struct {
		name   string
		change func(*lifecycle.Facts, *lifecycle.Policy)
		want   bool
	}{
		{"its pool says so", func(*lifecycle.Facts, *lifecycle.Policy) {}, true},
		{"its pool says clean", func(_ *lifecycle.Facts, p *lifecycle.Policy) { p.Standby = lifecycle.StandbyClean }, false},
		{"its pool says nothing", func(_ *lifecycle.Facts, p *lifecycle.Policy) { p.Standby = "" }, false},
		{"no run has used it", func(f *lifecycle.Facts, _ *lifecycle.Policy) {
			fresh(f)
			f.Report.Assignment = f.Record.Assignment
		}, false},
		{"the last one failed", func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.StandbyFailed = true }, false},
		{"GitHub is away", func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.GitHubUnavailable = true }, false},
		{"GitHub refused its version", func(f *lifecycle.Facts, _ *lifecycle.Policy) {
			f.Record.ReasonCode = lifecycle.ReasonVersionRefused
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, p := scene{host: "releasing, to listen", answer: "UD_REMOVE_REG_OK", deadline: "ahead", beat: "fresh"}.facts()
			tt.change(&f, &p)
			if d := lifecycle.Decide(f, now, p); d.Action != lifecycle.ActionPool || d.StandsBy != tt.want {
				t.Errorf("%s, want it pooled, and to stand by: %t", outcome(d), tt.want)
			}
		})
	}
}

// A host that GitHub gave no token is pooled without a registration.
func TestPooledWithoutAToken(t *testing.T) {
	f, p := scene{host: "releasing, to listen", answer: "UD_REMOVE_REG_OK", deadline: "ahead", beat: "fresh"}.facts()
	d := lifecycle.Decide(f, now, p)
	r, err := lifecycle.Apply(f.Record, d, now, p)
	if err != nil || r.Standby != nil || r.RunnerName != "" || r.Hot() || r.Warming() {
		t.Errorf("%v, %+v", err, r)
	}
	d.Standby = &lifecycle.Standby{Assignment: assignment, Label: "standby"}
	r, err = lifecycle.Apply(f.Record, d, now, p)
	if err != nil || !r.Warming() || r.RunnerName != lifecycle.RunnerName(assignment, hostKey) || !r.DueAt.Equal(now.Add(p.ReleasePoll)) {
		t.Errorf("with a token: %v, %+v", err, r)
	}
}

// A claim keeps the runner that has registered ahead of need, or does so just then.
func TestClaimOfAHostInStandby(t *testing.T) {
	for host, want := range map[string]string{
		"pooled": "remuda-8-i-1", "pooled, warming": "remuda-7-i-1", "pooled, hot": "remuda-7-i-1",
	} {
		f, _ := scene{host: host, answer: "none", deadline: "ahead"}.facts()
		c := claimOf(f.Record)
		if !c.Holds(f.Record) {
			t.Errorf("%s: not claimed", host)
		}
		r, err := f.Record.Claimed(c)
		if err != nil || r.RunnerName != want || (r.Standby == nil) != (host == "pooled") {
			t.Errorf("%s: %v, runner %s, standby %+v, want runner %s", host, err, r.RunnerName, r.Standby, want)
		}
		c.JobsOf = "acme"
		if c.Holds(f.Record) != (host == "pooled") {
			t.Errorf("%s: claimed for one job: %t", host, host != "pooled")
		}
	}
}
