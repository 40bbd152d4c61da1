package fleet_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// A worker that has the same job once more says nothing of the second attempt
// with what was meant for the first.
func TestTheFirstAttemptDoesNotEndTheSecond(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("archive", "j")
	w.claim("archive", "w", workBegan)
	w.sweep(workBegan.Add(lifecycle.WorkSilence))
	again := workBegan.Add(lifecycle.WorkSilence + time.Second)
	if got := w.claim("archive", "w", again); got != "j" {
		t.Fatalf("claimed once more: got %q", got)
	}
	before := w.job("archive", "j")
	_, log := w.fleet.AppendWorkLog(t.Context(), "archive", "j", first("w"), 0, "old\n", again.Add(time.Second))
	_, finish := w.fleet.FinishWork(t.Context(), "archive", "j", first("w"), true, "", again.Add(time.Second))
	for _, err := range []error{log, finish} {
		if !errors.Is(err, lifecycle.ErrNotTheirs) || !strings.HasPrefix(err.Error(), "attempt 1 of job j is over: it is with worker w, attempt 2") {
			t.Errorf("got error %v", err)
		}
	}
	if diff := cmp.Diff(before, w.job("archive", "j")); diff != "" {
		t.Errorf("it was changed (-before +after):\n%s", diff)
	}
	second := lifecycle.WorkTurn{WorkerID: "w", Attempt: 2}
	j, err := w.fleet.FinishWork(t.Context(), "archive", "j", second, true, "", again.Add(time.Second))
	if err != nil || j.State != lifecycle.WorkSucceeded {
		t.Errorf("the second attempt is %s, error %v", j.State, err)
	}
}

// A job that nobody takes has failed after a time, and is no backlog any more.
func TestNoJobWaitsForEver(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("render", "j")
	w.sweep(workBegan.Add(time.Hour - 1))
	if j := w.job("render", "j"); j.State != lifecycle.WorkWaiting {
		t.Errorf("before its time it is %s", j.State)
	}
	w.sweep(workBegan.Add(time.Hour))
	const why = "no worker took it until 2026-03-04T06:06:07Z; it was submitted at 2026-03-04T05:06:07Z"
	j := w.job("render", "j")
	if j.State != lifecycle.WorkFailed || j.Reason != why || !j.ExpiresAt.Equal(workBegan.Add(time.Hour+lifecycle.WorkKept)) {
		t.Errorf("after its time it is %s (%s), and kept until %s", j.State, j.Reason, j.ExpiresAt)
	}
	if n, err := w.work.CountWork(t.Context(), "render", 10); err != nil || n.Waiting != 0 {
		t.Errorf("%d wait, error %v", n.Waiting, err)
	}
	if got := w.claim("render", "w", workBegan.Add(time.Hour)); got != "" {
		t.Errorf("claimed %q", got)
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
