package model_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

var startTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// once and twice are of a service whose silent jobs have failed, and of one where
// they wait once more.
var (
	once  = model.JobPolicy{QueueTime: 24 * time.Hour}
	twice = model.JobPolicy{QueueTime: 24 * time.Hour, Requeue: true}
)

// first is the first attempt of a worker.
func first(worker string) model.JobAttempt { return model.JobAttempt{WorkerID: worker, Number: 1} }

// begun is a job that worker w claimed at startTime.
func begun(t *testing.T) model.Job {
	t.Helper()
	j, err := model.NewJob("render", "a", []byte("do it"), once, startTime.Add(-time.Hour)).Claim("w", startTime)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestJobClaim(t *testing.T) {
	want := model.Job{
		Service: "render", ID: "a", State: model.JobRunning, Payload: []byte("do it"), WorkerID: "w", Attempt: 1,
		CreatedAt: startTime.Add(-time.Hour), StartedAt: startTime, ActivityAt: startTime, DueAt: startTime.Add(5 * time.Minute),
		Reason: "worker w has it",
	}
	if diff := cmp.Diff(want, begun(t)); diff != "" {
		t.Errorf("claimed (-want +got):\n%s", diff)
	}
	for _, state := range model.JobStates[1:] {
		j := model.Job{ID: "a", State: state}
		if got, err := j.Claim("w", startTime); !errors.Is(err, lifecycle.ErrConflict) || got.State != state {
			t.Errorf("claim of a job that is %s: got %s and error %v, want it as it was and a lost race", state, got.State, err)
		}
	}
}

func TestJobLog(t *testing.T) {
	later := startTime.Add(time.Minute)
	full := strings.Repeat("0123456789abcde\n", model.MaxLogTail/16)
	tests := []struct {
		name   string
		has    string
		offset int64
		lines  string
		tail   string
		bytes  int64
		err    error
	}{
		{"the first line", "", 0, "a\n", "a\n", 2, nil},
		{"the next", "a\n", 2, "b\n", "a\nb\n", 4, nil},
		{"said again", "a\nb\n", 2, "b\n", "a\nb\n", 4, nil},
		{"said again with more", "a\nb\n", 2, "b\nc\n", "a\nb\nc\n", 6, nil},
		{"long past", "a\nb\n", 0, "a\n", "a\nb\n", 4, nil},
		{"nothing", "a\n", 2, "", "a\n", 2, nil},
		{"behind the end", "a\n", 3, "c", "a\n", 2, model.ErrLogGap},
		{"as much as is kept", "", 0, full, full, int64(len(full)), nil},
		{"more than is kept", full, int64(len(full)), "new\n", full[4:] + "new\n", int64(len(full)) + 4, nil},
		{"cut in a letter", "é" + full[2:], int64(len(full)), "n", full[2:] + "n", int64(len(full)) + 1, nil},
		{"a repeat that is another", "aé", 2, "xyz", "aéyz", 5, nil},
		{"a repeat that is no text", "ab", 0, "aéz", "ab?z", 4, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j := begun(t)
			j.LogTail, j.LogBytes = test.has, int64(len(test.has))
			got, err := j.Append(first("w"), test.offset, test.lines, later)
			if !errors.Is(err, test.err) || got.LogTail != test.tail || got.LogBytes != test.bytes {
				t.Errorf("got %d bytes %q and error %v; want %d, %q, %v", got.LogBytes, got.LogTail, err, test.bytes, test.tail, test.err)
			}
			if len(got.LogTail) > model.MaxLogTail || !utf8.ValidString(got.LogTail) {
				t.Errorf("the tail has %d bytes, valid: %v", len(got.LogTail), utf8.ValidString(got.LogTail))
			}
			if err == nil && (!got.ActivityAt.Equal(later) || !got.DueAt.Equal(j.DueAt)) {
				t.Errorf("heard of at %s, due at %s; want %s and %s", got.ActivityAt, got.DueAt, later, j.DueAt)
			}
		})
	}
}

// TestJobOfAnother: a worker that does not have the job changes nothing.
func TestJobOfAnother(t *testing.T) {
	waiting := model.NewJob("render", "a", nil, once, startTime)
	silent := begun(t).CheckDeadline(once, startTime.Add(time.Hour))
	requeued := begun(t).CheckDeadline(twice, startTime.Add(time.Hour))
	again, err := requeued.Claim("w", startTime.Add(2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		job  model.Job
		turn model.JobAttempt
		want string
	}{
		"of another": {begun(t), first("other"), "attempt 1 of job a is with another worker, and " +
			"the job is with worker w, attempt 1 (worker w has it); worker other has to stop it: nothing was changed"},
		"waiting":           {waiting, first("w"), "attempt 1 of job a was not begun, and the job is waiting (it waits for a worker); send the attempt that ClaimJob gave: nothing was changed"},
		"silent":            {silent, first("w"), "job a has ended: it failed (worker w has not reported it since 2026-"},
		"waiting once more": {requeued, first("w"), "attempt 1 of job a is over, and the job is waiting (worker w has not reported it since 2026-"},
		"its own second attempt": {again, first("w"), "attempt 1 of job a is over, and the job is with worker w, attempt 2 " +
			"(worker w has it, for the second time: worker w has not reported it since 2026-"},
		"an attempt to come": {begun(t), model.JobAttempt{WorkerID: "w", Number: 2}, "attempt 2 of job a was not begun, and " +
			"the job is with worker w, attempt 1 (worker w has it); send the attempt that ClaimJob gave: nothing was changed"},
		"no attempt": {begun(t), model.JobAttempt{WorkerID: "w"}, "attempt 0 of job a is over, and "},
	} {
		appended, err := test.job.Append(test.turn, 0, "x", startTime)
		if diff := cmp.Diff(test.job, appended); !errors.Is(err, model.ErrStaleAttempt) || diff != "" {
			t.Errorf("%s: append: error %v, changed (-was +is):\n%s", name, err, diff)
		}
		finished, err := test.job.Finish(test.turn, true, "", startTime)
		if diff := cmp.Diff(test.job, finished); !errors.Is(err, model.ErrStaleAttempt) || diff != "" {
			t.Errorf("%s: finish: error %v, changed (-was +is):\n%s", name, err, diff)
		}
		if err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
		over := strings.Contains(test.want, "is over") || strings.Contains(test.want, "another worker")
		if err != nil && over != strings.Contains(err.Error(), "has to stop it") {
			t.Errorf("%s: got %v; it has to be stopped: %v", name, err, over)
		}
	}
}

func TestJobFinish(t *testing.T) {
	later := startTime.Add(time.Minute)
	for _, test := range []struct {
		succeeded bool
		reason    string
		state     model.JobState
		want      string
	}{
		{true, "", model.JobSucceeded, "worker w says that it succeeded"},
		{false, "", model.JobFailed, "worker w says that it failed"},
		{false, "no paper", model.JobFailed, "no paper"},
	} {
		want := begun(t)
		want.State, want.Reason, want.ActivityAt, want.EndedAt = test.state, test.want, later, later
		want.DueAt, want.ExpiresAt = time.Time{}, later.Add(7*24*time.Hour)
		got, err := begun(t).Finish(first("w"), test.succeeded, test.reason, later)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("error %v, finished (-want +got):\n%s", err, diff)
		}
		again, err := got.Finish(first("w"), test.succeeded, "said again", later.Add(time.Hour))
		if diff := cmp.Diff(want, again); err != nil || diff != "" {
			t.Errorf("error %v, finished again (-want +got):\n%s", err, diff)
		}
		ended := fmt.Sprintf("job a has ended: it %s (%s): nothing was changed", test.state, test.want)
		if _, err := got.Finish(first("w"), !test.succeeded, "", later); !errors.Is(err, model.ErrStaleAttempt) || err.Error() != ended {
			t.Errorf("finished otherwise: got error %v", err)
		}
		if _, err := got.Append(first("w"), 0, "x", later); !errors.Is(err, model.ErrStaleAttempt) || err.Error() != ended {
			t.Errorf("more of the log: got error %v", err)
		}
	}
}

// untaken is a job that has failed since no worker took it.
func untaken(j model.Job, why string, now time.Time) model.Job {
	j.State, j.Reason, j.EndedAt, j.DueAt, j.ExpiresAt = model.JobFailed, why, now, time.Time{}, now.Add(7*24*time.Hour)
	return j
}

func TestJobSilence(t *testing.T) {
	end := startTime.Add(5 * time.Minute)
	heard, err := begun(t).Append(first("w"), 0, "a\n", startTime.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	second := begun(t)
	second.Attempt = 2
	const why = "worker w has not reported it since 2026-03-04T05:06:07Z, for longer than 5m0s"
	tests := []struct {
		name   string
		job    model.Job
		policy model.JobPolicy
		now    time.Time
		want   func(*model.Job)
	}{
		{"just before", begun(t), twice, end.Add(-time.Nanosecond), func(*model.Job) {}},
		{"heard of meanwhile", heard, twice, end, func(j *model.Job) { j.DueAt = startTime.Add(6 * time.Minute) }},
		{"silent", begun(t), once, end, func(j *model.Job) {
			j.State, j.Reason, j.EndedAt, j.DueAt, j.ExpiresAt = model.JobFailed, why, end, time.Time{}, end.Add(7*24*time.Hour)
			j.SilentWorkerID, j.SilentSince = "w", startTime
		}},
		{"queued once more", begun(t), twice, end, func(j *model.Job) {
			j.State, j.Reason, j.DueAt = model.JobWaiting, why+": it waits for another", end.Add(24*time.Hour)
			j.WorkerID, j.StartedAt, j.ActivityAt = "", time.Time{}, time.Time{}
			j.SilentWorkerID, j.SilentSince = "w", startTime
		}},
		{"silent again", second, twice, end, func(j *model.Job) {
			j.State, j.Reason, j.EndedAt, j.DueAt, j.ExpiresAt = model.JobFailed, why, end, time.Time{}, end.Add(7*24*time.Hour)
			j.SilentWorkerID, j.SilentSince = "w", startTime
		}},
		{"one that waits", model.NewJob("render", "a", nil, once, startTime), twice, startTime.Add(24*time.Hour - 1), func(*model.Job) {}},
		{"waited for too long", model.NewJob("render", "a", nil, once, startTime), twice, startTime.Add(24 * time.Hour), func(j *model.Job) {
			*j = untaken(*j, "no worker took it until 2026-03-05T05:06:07Z; it was submitted at 2026-03-04T05:06:07Z", startTime.Add(24*time.Hour))
		}},
		{"waited once more for too long", begun(t).CheckDeadline(twice, end), once, end.Add(24 * time.Hour), func(j *model.Job) {
			*j = untaken(*j, "no worker took it until 2026-03-05T05:11:07Z; it was submitted at 2026-03-04T04:06:07Z, and "+why, end.Add(24*time.Hour))
		}},
		{"one that has ended", untaken(begun(t), "", end), twice, end.Add(time.Hour), func(*model.Job) {}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := test.job
			test.want(&want)
			if diff := cmp.Diff(want, test.job.CheckDeadline(test.policy, test.now)); diff != "" {
				t.Errorf("looked at (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJobAwaits(t *testing.T) {
	second := begun(t)
	second.Attempt = 2
	for name, test := range map[string]struct {
		job    model.Job
		policy model.JobPolicy
		want   string
	}{
		"waiting":            {model.NewJob("render", "a", nil, once, startTime), once, "a worker until 2026-03-05T05:06:07Z; then it has failed"},
		"waiting for ever":   {model.Job{State: model.JobWaiting}, once, "a worker, for as long as it takes"},
		"running":            {begun(t), once, "a word of worker w until 2026-03-04T05:11:07Z; then it has failed"},
		"the first of two":   {begun(t), twice, "a word of worker w until 2026-03-04T05:11:07Z; then it waits for another"},
		"the second of two":  {second, twice, "a word of worker w until 2026-03-04T05:11:07Z; then it has failed"},
		"one that has ended": {untaken(begun(t), "", startTime), once, "nothing: it is kept until 2026-03-11T05:06:07Z"},
	} {
		if got := test.job.Awaited(test.policy); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestJobSecondAttempt: the log of the first stays until the second begins.
func TestJobSecondAttempt(t *testing.T) {
	j, err := begun(t).Append(first("w"), 0, "half done\n", startTime)
	if err != nil {
		t.Fatal(err)
	}
	j = j.CheckDeadline(twice, startTime.Add(time.Hour))
	if j.LogTail != "half done\n" {
		t.Errorf("the log of the first attempt is %q", j.LogTail)
	}
	j, err = j.Claim("w", startTime.Add(2*time.Hour))
	if err != nil || j.Attempt != 2 || j.LogTail != "" || j.LogBytes != 0 {
		t.Errorf("got attempt %d with %d bytes of log %q and error %v; want the second with none", j.Attempt, j.LogBytes, j.LogTail, err)
	}
}

func TestWorkerHeartbeat(t *testing.T) {
	w := model.Worker{Service: "render", ID: "w"}.WithHeartbeat("1.0", startTime)
	want := model.Worker{Service: "render", ID: "w", WorkerVersion: "1.0", HeartbeatAt: startTime, ExpiresAt: startTime.Add(24 * time.Hour)}
	if diff := cmp.Diff(want, w); diff != "" {
		t.Errorf("heard of (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, w.WithHeartbeat("", startTime.Add(-time.Minute))); diff != "" {
		t.Errorf("after a late word without a version (-want +got):\n%s", diff)
	}
	for after, online := range map[time.Duration]bool{0: true, time.Minute - 1: true, time.Minute: false} {
		if got := w.Online(startTime.Add(after)); got != online {
			t.Errorf("%s after its heartbeat: online %v, want %v", after, got, online)
		}
	}
	if again := w.WithHeartbeat("1.1", startTime.Add(time.Hour)); !again.Online(startTime.Add(time.Hour)) || again.WorkerVersion != "1.1" {
		t.Errorf("heard of again: %+v", again)
	}
}
