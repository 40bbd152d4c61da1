package fleet_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// A worker that was restarted and asks again is heard of its job by that.
func TestAClaimOfTheSameJobIsAWordOfIt(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("render", "j")
	w.claim("render", "w", workBegan)
	again := workBegan.Add(4*time.Minute + 55*time.Second)
	if got := w.claim("render", "w", again); got != "j" {
		t.Fatalf("claimed again: got %q, want j", got)
	}
	w.sweep(again.Add(6 * time.Second))
	if j := w.job("render", "j"); j.State != lifecycle.WorkRunning || j.Attempt != 1 {
		t.Errorf("6 s after its worker was given it: attempt %d is %s, %s", j.Attempt, j.State, j.Reason)
	}
	w.sweep(again.Add(lifecycle.WorkSilence))
	if j := w.job("render", "j"); j.State != lifecycle.WorkFailed {
		t.Errorf("five minutes after that it is %s", j.State)
	}
}

// A job that waits once more is nobody's, and its worker is listed without it.
func TestAJobThatWaitsOnceMoreIsNobodys(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("archive", "j")
	w.claim("archive", "w", workBegan)
	w.sweep(workBegan.Add(lifecycle.WorkSilence))
	j := w.job("archive", "j")
	if j.State != lifecycle.WorkWaiting || j.WorkerID != "" || !j.StartedAt.IsZero() || j.Attempt != 1 {
		t.Errorf("it is %s, with worker %q since %s, attempt %d", j.State, j.WorkerID, j.StartedAt, j.Attempt)
	}
	page, err := w.fleet.Workers(t.Context(), "archive", lifecycle.PageOf{})
	if err != nil || len(page.Items) != 1 || page.Items[0].JobID != "" {
		t.Errorf("workers: got %+v and error %v, want the one without a job", page.Items, err)
	}
}
