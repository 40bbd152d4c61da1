package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The agent's text ends up in reasons that people read in terminals.
func TestReasonsKeepOneCleanLine(t *testing.T) {
	tests := []struct{ name, detail, want string }{
		{"none", "", "the pre-runner script failed"},
		{"one line", "exit status 1", "the pre-runner script failed: exit status 1"},
		{"many lines", "exit status 1\nsecond", "the pre-runner script failed: exit status 1"},
		{"windows lines", "exit status 1\r\nsecond", "the pre-runner script failed: exit status 1"},
		{"only white space", " \n\t ", "the pre-runner script failed"},
		{"line break first", "\n\nexit status 1", "the pre-runner script failed: exit status 1"},
		{"escape sequence", "red \x1b[31mtext", "the pre-runner script failed: red"},
		{"not UTF-8", "a\xffb", "the pre-runner script failed: a\uFFFDb"},
		{"long", strings.Repeat("é", 500), "the pre-runner script failed: " + strings.Repeat("é", 100)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			facts, policy := scene{host: "created", answer: "UD_FAILED", deadline: "ahead", beat: "fresh", request: "wanted"}.facts()
			facts.Report.Detail = tt.detail
			if got := lifecycle.Decide(facts, now, policy).Reason; got != tt.want {
				t.Errorf("reason %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDecideUnknownState(t *testing.T) {
	for _, state := range []lifecycle.State{"", "stopped"} {
		d := lifecycle.Decide(lifecycle.Facts{Record: lifecycle.Record{State: state}}, now, lifecycle.DefaultPolicy())
		if d.Action != lifecycle.ActionKeep || !d.CheckAt.After(now) {
			t.Errorf("state %q: %s", state, outcome(d))
		}
	}
}

// A hold ends at its time, and not a moment later.
func TestHoldEnds(t *testing.T) {
	facts, policy := scene{host: "pooled", answer: "none", deadline: "reached"}.facts()
	for left, want := range map[time.Duration]lifecycle.Action{1: lifecycle.ActionKeep, 0: lifecycle.ActionTerminate, -1: lifecycle.ActionTerminate} {
		facts.Record.Hold = now.Add(left)
		if d := lifecycle.Decide(facts, now, policy); d.Action != want {
			t.Errorf("hold with %s left: %s, want %s", left, outcome(d), want)
		}
	}
}

// Without a maximum runtime of its own a host has that of its pool.
func TestMaxRuntimeOfThePool(t *testing.T) {
	facts, policy := scene{host: "created", answer: "UD_REG_OK", deadline: "ahead", beat: "fresh", request: "wanted"}.facts()
	facts.Record.MaxRuntime = 0
	r, err := lifecycle.Apply(facts.Record, lifecycle.Decide(facts, now, policy), now, policy)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(now.Add(2*time.Hour), r.Threshold); diff != "" {
		t.Errorf("threshold (-want +got):\n%s", diff)
	}
}

// A drain that ends exactly a release timeout before its runtime does: the two
// thresholds are the same moment, and the clock must not be started for ever.
func TestReleaseClockStartsOnce(t *testing.T) {
	facts, policy := scene{host: "draining", answer: "seen", deadline: "ahead", beat: "fresh"}.facts()
	facts.Record.Threshold = now.Add(policy.ReleaseTimeout)
	facts.Record.RuntimeEndsAt = facts.Record.Threshold
	if d := lifecycle.Decide(facts, now, policy); d.Action != lifecycle.ActionKeep {
		t.Errorf("%s, want keep: its clock runs", outcome(d))
	}
}

// The numbers of docs/design.md#the-lifecycle.
func TestDefaultPolicy(t *testing.T) {
	want := lifecycle.Policy{
		CreationTimeout: 10 * time.Minute, ClaimTimeout: 2 * time.Minute, MaxRuntime: 2 * time.Hour, ReleaseTimeout: 2 * time.Minute,
		IdleTime: 5 * time.Minute, WarmTime: time.Hour, RestAfter: 5 * time.Minute, Awake: 10, StoppedTime: 24 * time.Hour, Silence: time.Minute, ExternalTimeout: 30 * time.Minute, UnattendedTimeout: 5 * time.Minute,
		ClaimMargin: 30 * time.Second, JobPoll: 30 * time.Second, ForgetAfter: 24 * time.Hour, Reuse: "same-repository", Reset: "slate",
		Drift: "leave",
	}
	got := lifecycle.DefaultPolicy()
	for name, d := range map[string]time.Duration{"ReleaseLook": got.ReleasePoll, "DrainLook": got.DrainPoll, "EndLook": got.EndPoll} {
		if d <= 0 || d > time.Minute {
			t.Errorf("%s is %s", name, d)
		}
	}
	got.ReleasePoll, got.DrainPoll, got.EndPoll = 0, 0, 0 // ours to choose
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
