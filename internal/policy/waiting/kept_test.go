package waiting_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/policy/waiting"
)

// TestKept: of what kept a job until a host is asked for it, that counts which ended last.
func TestKept(t *testing.T) {
	t.Parallel()
	queued := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	paused := pause.Pause{Pool: "ci", From: queued.Add(-time.Hour), Until: queued.Add(time.Minute), By: "ann"}
	for name, c := range map[string]struct {
		change func(*waiting.Facts)
		code   lifecycle.ReasonCode
		text   string
	}{
		"nothing":            {func(*waiting.Facts) {}, "", ""},
		"a pool with room":   {func(f *waiting.Facts) { f.Open = f.Open[:1] }, "", ""},
		"a pause before it":  {func(f *waiting.Facts) { f.Pause, f.Job.QueuedAt = paused, paused.Until }, "", ""},
		"an unknown time":    {func(f *waiting.Facts) { f.Pause, f.Job.QueuedAt = paused, time.Time{} }, "", ""},
		"a full pool":        {func(f *waiting.Facts) { f.Maximum, f.Pause = 2, paused }, lifecycle.ReasonPoolFull, "pool ci has 2 of 2 hosts, its maximum, and 1 of them is at work"},
		"a slot of its own":  {func(f *waiting.Facts) { f.Maximum, f.Open[1].JobID, f.Job.Passed = 2, 1, 1 }, lifecycle.ReasonPassedOver, "a host was asked for it once and got no job, so the jobs behind it come first"},
		"a pause":            {func(f *waiting.Facts) { f.Pause = paused }, lifecycle.ReasonPoolPaused, "pool ci was paused from 2026-05-04T09:00:00Z to 2026-05-04T10:01:00Z"},
		"passed over":        {func(f *waiting.Facts) { f.Job.Passed = 2 }, lifecycle.ReasonPassedOver, "a host was asked for it 2 times in a row and got no job, so the jobs behind it come first"},
		"a pause after that": {func(f *waiting.Facts) { f.Pause, f.Job.Passed, f.Job.NotBefore = paused, 1, queued }, lifecycle.ReasonPoolPaused, "pool ci was paused from 2026-05-04T09:00:00Z to 2026-05-04T10:01:00Z"},
		"a pause before that": {func(f *waiting.Facts) {
			f.Pause, f.Job.Passed, f.Job.NotBefore = paused, 1, queued.Add(time.Hour)
		}, lifecycle.ReasonPassedOver, "a host was asked for it once and got no job, so the jobs behind it come first"},
	} {
		t.Run(name, func(t *testing.T) {
			f := waiting.Facts{
				Job: lifecycle.Job{ID: 1, Pool: "ci", Scope: "acme/shop", QueuedAt: queued}, Maximum: 3,
				Open: []slots.Slot{{Number: 1, Started: true}, {Number: 2}},
			}
			c.change(&f)
			if got := waiting.Kept(f, lifecycle.Reason{}); got != (lifecycle.Reason{Code: c.code, Text: c.text}) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestKeptAsNoted: what was noted of the job counts, unless the pool was full after that.
func TestKeptAsNoted(t *testing.T) {
	t.Parallel()
	queued := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	f := waiting.Facts{
		Job: lifecycle.Job{ID: 1, Pool: "ci", QueuedAt: queued, Passed: 1}, Maximum: 1,
		Pause: pause.Pause{Pool: "ci", From: queued.Add(-time.Hour), Until: queued.Add(time.Minute)},
	}
	noted := lifecycle.Because(lifecycle.ReasonBudgetUsedUp, "a budget is used up")
	if got := waiting.Kept(f, noted); got != noted {
		t.Errorf("%+v", got)
	}
	f.Open = []slots.Slot{{Number: 1}}
	if got := waiting.Kept(f, noted); got.Code != lifecycle.ReasonPoolFull {
		t.Errorf("in a full pool: %+v", got)
	}
}
