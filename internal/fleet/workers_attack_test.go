package fleet_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

// A worker that was restarted and asks again gets its job by that.
func TestAClaimOfTheSameJobIsAWordOfIt(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("render", "j")
	w.claim("render", "w", workBegan)
	again := workBegan.Add(4*time.Minute + 55*time.Second)
	if got := w.claim("render", "w", again); got != "j" {
		t.Fatalf("claimed again: got %q, want j", got)
	}
	w.sweep(again.Add(6 * time.Second))
	if j := w.job("render", "j"); j.State != model.JobRunning || j.Attempt != 1 {
		t.Errorf("6 s after its worker was given it: attempt %d is %s, %s", j.Attempt, j.State, j.Reason)
	}
	w.sweep(again.Add(model.JobSilence))
	if j := w.job("render", "j"); j.State != model.JobFailed {
		t.Errorf("five minutes after that it is %s", j.State)
	}
}

// A worker that has the same job once more says nothing of the second attempt
// with what was meant for the first.
func TestTheFirstAttemptDoesNotEndTheSecond(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("archive", "j")
	w.claim("archive", "w", workBegan)
	w.sweep(workBegan.Add(model.JobSilence))
	again := workBegan.Add(model.JobSilence + time.Second)
	if got := w.claim("archive", "w", again); got != "j" {
		t.Fatalf("claimed once more: got %q", got)
	}
	before := w.job("archive", "j")
	_, log := w.fleet.AppendWorkLog(t.Context(), "archive", "j", first("w"), 0, "old\n", again.Add(time.Second))
	_, finish := w.fleet.FinishWork(t.Context(), "archive", "j", first("w"), true, "", again.Add(time.Second))
	for _, err := range []error{log, finish} {
		if !errors.Is(err, model.ErrStaleAttempt) || !strings.HasPrefix(err.Error(), "attempt 1 of job j is over, and the job is with worker w, attempt 2") {
			t.Errorf("got error %v", err)
		}
	}
	if diff := cmp.Diff(before, w.job("archive", "j")); diff != "" {
		t.Errorf("it was changed (-before +after):\n%s", diff)
	}
	second := model.JobAttempt{WorkerID: "w", Number: 2}
	j, err := w.fleet.FinishWork(t.Context(), "archive", "j", second, true, "", again.Add(time.Second))
	if err != nil || j.State != model.JobSucceeded {
		t.Errorf("the second attempt is %s, error %v", j.State, err)
	}
}

// A job that no worker takes has failed after a time, and is no longer backlog.
func TestNoJobWaitsForEver(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("render", "j")
	w.sweep(workBegan.Add(time.Hour - 1))
	if j := w.job("render", "j"); j.State != model.JobWaiting {
		t.Errorf("before its time it is %s", j.State)
	}
	w.sweep(workBegan.Add(time.Hour))
	const why = "no worker took it until 2026-03-04T06:06:07Z; it was submitted at 2026-03-04T05:06:07Z"
	j := w.job("render", "j")
	if j.State != model.JobFailed || j.Reason != why || !j.ExpiresAt.Equal(workBegan.Add(time.Hour+model.JobRetention)) {
		t.Errorf("after its time it is %s (%s), and kept until %s", j.State, j.Reason, j.ExpiresAt)
	}
	if n, err := w.work.CountWork(t.Context(), "render", 10); err != nil || n.Waiting != 0 {
		t.Errorf("%d wait, error %v", n.Waiting, err)
	}
	if got := w.claim("render", "w", workBegan.Add(time.Hour)); got != "" {
		t.Errorf("claimed %q", got)
	}
}

// A job that waits once more has no worker, and its former worker is listed without it.
func TestAJobThatWaitsOnceMoreIsNobodys(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("archive", "j")
	w.claim("archive", "w", workBegan)
	w.sweep(workBegan.Add(model.JobSilence))
	j := w.job("archive", "j")
	if j.State != model.JobWaiting || j.WorkerID != "" || !j.StartedAt.IsZero() || j.Attempt != 1 {
		t.Errorf("it is %s, with worker %q since %s, attempt %d", j.State, j.WorkerID, j.StartedAt, j.Attempt)
	}
	page, err := w.fleet.Workers(t.Context(), "archive", lifecycle.PageOf{})
	if err != nil || len(page.Items) != 1 || page.Items[0].JobID != "" {
		t.Errorf("workers: got %+v and error %v, want the one without a job", page.Items, err)
	}
}

// refresh refreshes at a time, and is what it decides on jobs.
func (w *workWorld) refresh(dry bool, now time.Time) []fleet.Decided {
	w.t.Helper()
	r := w.fleet.NewRefresh(dry)
	for {
		p, err := r.Step(w.t.Context(), now)
		if err != nil {
			w.t.Fatal(err)
		}
		if p.Done {
			return r.Decisions()
		}
	}
}

// What is decided on jobs is in a refresh, and in the history with its
// reason once it is done.
func TestWhatIsDecidedOnJobs(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("archive", "silent")
	w.claim("archive", "a", workBegan)
	w.submit("render", "dead", "heard")
	w.claim("render", "b", workBegan)
	w.claim("render", "c", workBegan)
	if _, err := w.fleet.AppendWorkLog(t.Context(), "render", "heard", first("c"), 0, "x\n", workBegan.Add(58*time.Minute)); err != nil {
		t.Fatal(err)
	}
	w.submit("render", "untaken")
	now, before := workBegan.Add(time.Hour), w.store.Dump()
	const silence = " has not reported it since 2026-03-04T05:06:07Z, for longer than 5m0s"
	want := []fleet.Decided{
		{Action: lifecycle.ActionRequeueJob, Code: lifecycle.ReasonWorkerSilent, Sweep: "work", Reason: "job silent of service archive: worker a" + silence + ": it waits for another"},
		{Action: lifecycle.ActionFailJob, Code: lifecycle.ReasonWorkerSilent, Sweep: "work", Reason: "job dead of service render: worker b" + silence},
		{Action: lifecycle.ActionKeep, Code: lifecycle.ReasonWorkerBusy, Sweep: "work", Reason: "job heard of service render: worker c has it; " +
			"it awaits a word of worker c until 2026-03-04T06:09:07Z; then it has failed"},
		{Action: lifecycle.ActionFailJob, Code: lifecycle.ReasonNotTaken, Sweep: "work", Reason: "job untaken of service render: " +
			"no worker took it until 2026-03-04T06:06:07Z; it was submitted at 2026-03-04T05:06:07Z"},
	}
	for _, worker := range []string{"a of service archive", "b of service render", "c of service render"} {
		want = append(want, fleet.Decided{Action: lifecycle.ActionWorkerOffline, Code: lifecycle.ReasonWorkerSilent, Sweep: "work",
			Reason: "worker " + worker + " has sent no heartbeat since 2026-03-04T05:06:07Z, for longer than 1m0s"})
	}
	if diff := cmp.Diff(want, w.refresh(true, now)); diff != "" {
		t.Errorf("dry (-want +got):\n%s", diff)
	}
	if w.store.Dump() != before {
		t.Errorf("a dry run wrote:\n%s", w.store.Dump())
	}
	if diff := cmp.Diff(want, w.refresh(false, now)); diff != "" {
		t.Errorf("decided (-want +got):\n%s", diff)
	}
	h, err := w.store.EventsSince(t.Context(), lifecycle.PageOf{})
	if err != nil {
		t.Fatal(err)
	}
	var told []fleet.Decided
	for _, e := range h.Items {
		told = append(told, fleet.Decided{Action: e.Action, Code: e.Code, Reason: e.Reason, Sweep: e.Sweep})
	}
	if diff := cmp.Diff(append([]fleet.Decided{want[0], want[1], want[3]}, want[4:]...), told); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// The jobs of a service that is not scaled are counted for every caller that asks.
func TestAServiceWithOnlyAQueue(t *testing.T) {
	var queue workqueue.Backlog
	w := &workWorld{}
	w.world = newWorld(t, func(o *fleet.Options) {
		w.work = &workStore{Store: o.Store.(workqueue.Store)}
		queue = workqueue.Backlog{Store: w.work, AtMost: 2}
		o.Workers = &workqueue.Options{Store: w.work, Services: map[string]model.JobPolicy{"render": {QueueTime: time.Hour}}}
		o.Services = &services.Options{Services: map[string]services.Service{"render": {Name: "render", Backlog: queue}}}
	})
	now := time.Now()
	for version, workers := range map[string][]string{"1.0": {"a", "b"}, "1.1": {"c"}} {
		for _, id := range workers {
			if _, err := w.fleet.HearWorker(t.Context(), "render", id, version, now.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := w.fleet.HearWorker(t.Context(), "render", "old", "1.0", now.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.submit("render", "1", "2", "3", "4")
	w.claim("render", "a", workBegan)
	page, err := w.fleet.Services(t.Context(), lifecycle.PageOf{})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("services: %+v, error %v", page.Items, err)
	}
	got, two, one := page.Items[0], 2, 1
	if diff := cmp.Diff(model.Backlog{Queued: &two, Busy: &one, More: true}, got.Seen.Backlog); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	want := &workqueue.WorkerCount{Versions: []workqueue.VersionCount{{Version: "1.0", Online: 2, Offline: 1}, {Version: "1.1", Online: 1}}}
	if diff := cmp.Diff(want, got.Workers); diff != "" || want.Online() != 3 {
		t.Errorf("workers (-want +got):\n%s", diff)
	}
}

// A queue that cannot be counted hides no other service.
func TestAQueueThatCannotBeCounted(t *testing.T) {
	containers := newContainers()
	containers.countErr["a"] = &lifecycle.UnavailableError{What: "count", Err: errors.New("no answer")}
	containers.jobs("b", 2, 1)
	w := newWorld(t, func(o *fleet.Options) {
		o.Services = &services.Options{Services: map[string]services.Service{"a": {Name: "a", Backlog: containers}, "b": {Name: "b", Backlog: containers}}}
	})
	page, err := w.fleet.Services(t.Context(), lifecycle.PageOf{})
	if err != nil || len(page.Items) != 2 {
		t.Fatalf("services: %+v, error %v", page.Items, err)
	}
	a, b := page.Items[0].Seen, page.Items[1].Seen
	const why = "it is not scaled here: the configuration names no cluster; its jobs cannot be counted: count: no answer"
	if a.Queued != nil || a.Busy != nil || a.Reason != why || *b.Queued != 2 || *b.Busy != 1 {
		t.Errorf("services: %+v and %+v", a, b)
	}
}
