package model

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// JobState is how far a Job has come.
type JobState string

// The states of a job.
const (
	JobWaiting   JobState = "waiting"   // it waits for a worker
	JobRunning   JobState = "running"   // a worker has it
	JobSucceeded JobState = "succeeded" // its worker reported success
	JobFailed    JobState = "failed"    // its worker reported failure or went silent, or no worker took it in time
)

// JobStates lists every state, in the order of a job's life.
var JobStates = []JobState{JobWaiting, JobRunning, JobSucceeded, JobFailed}

// Ended reports whether the state is final.
func (s JobState) Ended() bool { return s == JobSucceeded || s == JobFailed }

const (
	// JobSilence is how long the worker of a running job may be silent. If it is shorter than a worker's longest
	// quiet step, good jobs fail; the longer it is, the longer a job stays with a dead worker.
	JobSilence = 5 * time.Minute
	// JobAttempts is the maximum number of attempts at a job whose service requeues silent jobs.
	JobAttempts = 2
	// JobQueueTime is the default limit on how long a job may wait for a worker. It is the limit of GitHub Actions.
	JobQueueTime = 24 * time.Hour
	// JobRetention is how long an ended job is kept so that its result can be read.
	JobRetention = 7 * 24 * time.Hour
	// MaxJobPayload and MaxLogTail bound the size of a job's row, in bytes.
	MaxJobPayload = 64 << 10
	MaxLogTail    = 64 << 10
)

// Job is a job in the queue of a service: a row of the jobs table. Only controld writes it, always with a condition
// on its version.
type Job struct {
	Service string   `json:"service"`
	ID      string   `json:"id"`
	State   JobState `json:"state"`
	// Payload is the worker's input, at most MaxJobPayload bytes.
	Payload []byte `json:"payload,omitempty"`
	// WorkerID is the worker that has the job, or had it when it ended; empty while the job waits.
	WorkerID string `json:"workerId,omitempty"`
	// Attempt is the number of attempts so far.
	Attempt   int       `json:"attempt,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	// ActivityAt is when the worker last reported on the job.
	ActivityAt time.Time `json:"activityAt,omitzero"`
	EndedAt    time.Time `json:"endedAt,omitzero"`
	// Reason is the sentence of the last change.
	Reason string `json:"reason,omitempty"`
	// SilentWorkerID is the worker of an earlier attempt that went silent at SilentSince; empty: none did.
	SilentWorkerID string    `json:"silentWorkerId,omitempty"`
	SilentSince    time.Time `json:"silentSince,omitzero"`
	// LogTail is the end of the log of this attempt, at most MaxLogTail bytes; LogBytes is the size of the whole log.
	LogTail  string `json:"logTail,omitempty"`
	LogBytes int64  `json:"logBytes,omitempty"`

	// DueAt is when the work sweep checks the job; zero once the job has ended. For a waiting job it is the end of its
	// queue time; a waiting job written by an older controld has none. For a running job it is when the worker may have
	// become silent. It does not follow every report of the worker, since then each line of a log would write an index.
	DueAt     time.Time `json:"dueAt,omitzero"`
	Version   int64     `json:"version"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// JobCount is how many jobs of a service wait and run, up to the limit of the count.
type JobCount struct{ Waiting, Running int }

var (
	// ErrStaleAttempt means that the job is not running the given attempt of this worker. The wrapping error says what
	// became of the job, and what the worker has to do.
	ErrStaleAttempt = errors.New("nothing was changed")
	// ErrLogGap means that the given lines begin after the end of the stored log.
	ErrLogGap = errors.New("lines are missing before these")
)

// JobPolicy says what becomes of a service's jobs that no worker takes, and of those whose worker goes silent.
type JobPolicy struct {
	// QueueTime is how long a job may wait for a worker.
	QueueTime time.Duration
	// Requeue makes a job whose worker went silent wait for another one, up to JobAttempts attempts.
	Requeue bool
}

// NewJob returns a job that waits for at most p.QueueTime.
func NewJob(service, id string, payload []byte, p JobPolicy, now time.Time) Job {
	return Job{
		Service: service, ID: id, Payload: payload, State: JobWaiting, CreatedAt: now, DueAt: now.Add(p.QueueTime),
		Reason: "it waits for a worker",
	}
}

// Claim gives a waiting job to a worker, or returns lifecycle.ErrConflict if the job does not wait. The log of an earlier
// attempt is dropped.
func (j Job) Claim(workerID string, now time.Time) (Job, error) {
	if j.State != JobWaiting {
		return j, fmt.Errorf("claim job %s, which is %s: %w", j.ID, j.State, lifecycle.ErrConflict)
	}
	j.State, j.WorkerID, j.Attempt = JobRunning, workerID, j.Attempt+1
	j.StartedAt, j.ActivityAt, j.DueAt = now, now, now.Add(JobSilence)
	j.LogTail, j.LogBytes = "", 0
	j.Reason = fmt.Sprintf("worker %s has it", workerID)
	if j.SilentWorkerID != "" {
		j.Reason += ", for the second time: " + j.silence()
	}
	return j, nil
}

// RunBy reports whether the worker has the job.
func (j Job) RunBy(workerID string) bool { return j.State == JobRunning && j.WorkerID == workerID }

// JobAttempt identifies one attempt at a job. A worker's calls name the attempt that they belong to: a worker that was
// given the same job twice must not end its second attempt with a late call of the first.
type JobAttempt struct {
	WorkerID string
	Number   int
}

// attempt is the last attempt at the job.
func (j Job) attempt() JobAttempt { return JobAttempt{j.WorkerID, j.Attempt} }

// Append adds lines to the log, beginning at an offset in bytes. What the log has already is skipped. An empty string
// only reports that the job makes progress. The error is ErrStaleAttempt if the job is not running that attempt, and
// ErrLogGap if the offset is after the end of the log.
func (j Job) Append(of JobAttempt, offset int64, lines string, now time.Time) (Job, error) {
	if j.State != JobRunning || j.attempt() != of {
		return j, j.staleAttempt(of)
	}
	if offset > j.LogBytes {
		return j, fmt.Errorf("the log has %d bytes: %w", j.LogBytes, ErrLogGap)
	}
	if end := offset + int64(len(lines)); end > j.LogBytes {
		j.LogTail = tailOf(j.LogTail + lines[j.LogBytes-offset:])
		j.LogBytes = end
	}
	j.ActivityAt = now
	return j, nil
}

// tailOf returns the end of a log, at most MaxLogTail bytes. Bytes that are not UTF-8, because the log was cut or a
// repeated line differed, are replaced: a store or a proto message could not hold them.
func tailOf(log string) string {
	if cut := len(log) - MaxLogTail; cut > 0 {
		for cut < len(log) && !utf8.RuneStart(log[cut]) {
			cut++
		}
		log = log[cut:]
	}
	return strings.ToValidUTF8(log, "?")
}

// Finish ends a job with its worker's result. It is idempotent: a repeated call returns the job unchanged. The error is
// ErrStaleAttempt if the job is not running that attempt, or ended with another result.
func (j Job) Finish(of JobAttempt, succeeded bool, reason string, now time.Time) (Job, error) {
	end := JobFailed
	if succeeded {
		end = JobSucceeded
	}
	switch {
	case j.attempt() == of && j.State == end:
		return j, nil
	case j.State != JobRunning || j.attempt() != of:
		return j, j.staleAttempt(of)
	}
	j.ActivityAt = now
	return j.end(end, cmp.Or(reason, fmt.Sprintf("worker %s says that it %s", of.WorkerID, end)), now), nil
}

// CheckDeadline returns the job as it should be at now. A waiting job fails at the end of its queue time. A running job
// whose worker is silent is queued again, if p allows that and it was the first attempt, or fails. Any other running
// job only gets its next DueAt: the check does not count as a report of the worker.
func (j Job) CheckDeadline(p JobPolicy, now time.Time) Job {
	switch {
	case j.State == JobWaiting && !j.DueAt.IsZero() && !now.Before(j.DueAt):
		return j.end(JobFailed, j.untaken(), now)
	case j.State != JobRunning:
		return j
	case now.Sub(j.ActivityAt) < JobSilence:
		j.DueAt = j.ActivityAt.Add(JobSilence)
		return j
	}
	j.SilentWorkerID, j.SilentSince = j.WorkerID, j.ActivityAt
	if !j.again(p) {
		return j.end(JobFailed, j.silence(), now)
	}
	j.State, j.DueAt, j.Reason = JobWaiting, now.Add(p.QueueTime), j.silence()+": it waits for another"
	j.WorkerID, j.StartedAt, j.ActivityAt = "", time.Time{}, time.Time{}
	return j
}

// silence says which worker went silent.
func (j Job) silence() string {
	return fmt.Sprintf("worker %s has not reported it since %s, for longer than %s", j.SilentWorkerID, clock(j.SilentSince), JobSilence)
}

// again reports whether the job is queued again when its worker goes silent.
func (j Job) again(p JobPolicy) bool { return p.Requeue && j.Attempt < JobAttempts }

// Awaited says what the job waits for, until when, and what happens then.
func (j Job) Awaited(p JobPolicy) string {
	switch {
	case j.State.Ended():
		return fmt.Sprintf("nothing: it is kept until %s", clock(j.ExpiresAt))
	case j.State == JobWaiting && j.DueAt.IsZero():
		return "a worker, for as long as it takes"
	case j.State == JobWaiting:
		return fmt.Sprintf("a worker until %s; then it has failed", clock(j.DueAt))
	}
	then := "it has failed"
	if j.again(p) {
		then = "it waits for another"
	}
	return fmt.Sprintf("a word of worker %s until %s; then %s", j.WorkerID, clock(j.ActivityAt.Add(JobSilence)), then)
}

// untaken is the reason of a job that no worker took in time.
func (j Job) untaken() string {
	why := fmt.Sprintf("no worker took it until %s; it was submitted at %s", clock(j.DueAt), clock(j.CreatedAt))
	if j.SilentWorkerID != "" {
		why += ", and " + j.silence()
	}
	return why
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (j Job) end(state JobState, reason string, now time.Time) Job {
	j.State, j.Reason, j.EndedAt = state, reason, now
	j.DueAt, j.ExpiresAt = time.Time{}, now.Add(JobRetention)
	return j
}

// staleAttempt returns an ErrStaleAttempt that says what became of the job. It asks the worker to stop only if the job
// is no longer the worker's: a worker that miscounts its attempts has a job that goes on.
func (j Job) staleAttempt(of JobAttempt) error {
	is := fmt.Sprintf("the job is %s (%s)", j.State, j.Reason)
	if j.State == JobRunning {
		is = fmt.Sprintf("the job is with worker %s, attempt %d (%s)", j.WorkerID, j.Attempt, j.Reason)
	}
	stop := fmt.Sprintf("worker %s has to stop it", of.WorkerID)
	switch {
	case j.State.Ended():
		return fmt.Errorf("job %s has ended: it %s (%s): %w", j.ID, j.State, j.Reason, ErrStaleAttempt)
	case of.Number > j.Attempt:
		return fmt.Errorf("attempt %d of job %s was not begun, and %s; send the attempt that ClaimJob gave: %w", of.Number, j.ID, is, ErrStaleAttempt)
	case of.Number < j.Attempt || j.State != JobRunning:
		return fmt.Errorf("attempt %d of job %s is over, and %s; %s: %w", of.Number, j.ID, is, stop, ErrStaleAttempt)
	}
	return fmt.Errorf("attempt %d of job %s is with another worker, and %s; %s: %w", of.Number, j.ID, is, stop, ErrStaleAttempt)
}
