package lifecycle_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func TestRequestWants(t *testing.T) {
	mine := []lifecycle.Taken{{HostKey: "i-0"}, {HostKey: hostKey}}
	others := []lifecycle.Taken{{HostKey: "i-10"}}
	const running = lifecycle.StateRunning
	tests := []struct {
		name     string
		taken    []lifecycle.Taken
		outcome  lifecycle.Outcome
		released bool
		state    lifecycle.State
		want     bool
	}{
		{"open, taken", mine, lifecycle.OutcomeOpen, false, running, true},
		{"open, not taken yet", others, lifecycle.OutcomeOpen, false, running, true},
		{"ready, taken", mine, lifecycle.OutcomeReady, false, running, true},
		{"ready, given up", others, lifecycle.OutcomeReady, false, running, false},
		{"short, rolled back", nil, lifecycle.OutcomeShort, false, running, false},
		{"short, committed since it runs a job", mine, lifecycle.OutcomeShort, false, running, true},
		{"released before it was settled", mine, lifecycle.OutcomeReleased, true, running, false},
		{"open, claimed", mine, lifecycle.OutcomeOpen, false, lifecycle.StateClaimed, true},
		{"ready, lost and claimed again", mine, lifecycle.OutcomeReady, false, lifecycle.StateClaimed, false},
		{"open and released", mine, lifecycle.OutcomeOpen, true, running, false},
		{"ready and released", mine, lifecycle.OutcomeReady, true, running, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := lifecycle.Request{Taken: tt.taken, Outcome: tt.outcome}
			if tt.released {
				q.ReleasedAt = now
			}
			if got := q.Wants(lifecycle.Record{HostKey: hostKey, State: tt.state}); got != tt.want {
				t.Errorf("Wants = %t, want %t", got, tt.want)
			}
			if q.Settled() != (tt.outcome != "") || q.Released() != tt.released {
				t.Errorf("Settled = %t, Released = %t", q.Settled(), q.Released())
			}
		})
	}
}

func TestSpecEqual(t *testing.T) {
	spec := func() lifecycle.Spec {
		return lifecycle.Spec{RunAttempt: 1, Count: 3, Pool: "default", InstanceTypes: []string{"c*"}, Labels: []string{"gpu"}, Timeout: time.Minute}
	}
	if !spec().Equal(spec()) {
		t.Error("equal specs are not equal")
	}
	for name, change := range map[string]func(*lifecycle.Spec){
		"count":  func(s *lifecycle.Spec) { s.Count++ },
		"types":  func(s *lifecycle.Spec) { s.InstanceTypes[0] = "m*" },
		"labels": func(s *lifecycle.Spec) { s.Labels = append(s.Labels, "x") },
	} {
		other := spec()
		if change(&other); spec().Equal(other) {
			t.Errorf("specs with another %s are equal", name)
		}
	}
}
