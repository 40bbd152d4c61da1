package jobname_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/jobname"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for want, j := range map[string]lifecycle.Job{"7": {ID: 7}, `7 "build \"x\""`: {ID: 7, Name: `build "x"`}} {
		if got := jobname.Of(j); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for want, j := range map[string]lifecycle.Job{
		"success after 1m31s on remuda-1-i-1":              {Conclusion: "success", RunnerName: "remuda-1-i-1", StartedAt: begun, EndedAt: begun.Add(90*time.Second + 600*time.Millisecond)},
		"failure after 0s on remuda-1-i-1":                 {Conclusion: "failure", RunnerName: "remuda-1-i-1", StartedAt: begun, EndedAt: begun.Add(-time.Second)},
		"GitHub does not say how after 1s on remuda-1-i-1": {RunnerName: "remuda-1-i-1", StartedAt: begun, EndedAt: begun.Add(time.Second)},
		"cancelled, before a runner took it":               {Conclusion: "cancelled", StartedAt: begun, EndedAt: begun.Add(time.Second)},
		"skipped, before a runner took it":                 {Conclusion: "skipped", RunnerName: "remuda-1-i-1", EndedAt: begun},
	} {
		if got := jobname.Outcome(j); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
