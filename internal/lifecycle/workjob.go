package lifecycle

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// WorkState is how far a WorkJob has come.
type WorkState string

// The states of a work job.
const (
	WorkWaiting   WorkState = "waiting"   // it waits for a worker
	WorkRunning   WorkState = "running"   // a worker has it
	WorkSucceeded WorkState = "succeeded" // its worker said so
	WorkFailed    WorkState = "failed"    // its worker said so, or was not heard of it for too long
)

// WorkStates lists every state, in the order of a job's life.
var WorkStates = []WorkState{WorkWaiting, WorkRunning, WorkSucceeded, WorkFailed}

// Ended reports whether nothing happens to the job any more.
func (s WorkState) Ended() bool { return s == WorkSucceeded || s == WorkFailed }

const (
	// WorkSilence is how long a running job may go without a word of its worker.
	// Shorter than a worker's longest quiet step and good jobs fail; longer and
	// the jobs of dead workers stand for so long.
	WorkSilence = 5 * time.Minute
	// WorkAttempts is how often a job is begun at most, where silent ones are
	// queued once more.
	WorkAttempts = 2
	// WorkQueueTime is how long a job may wait for a worker, where nobody says
	// otherwise: as long as one of GitHub Actions may.
	WorkQueueTime = 24 * time.Hour
	// WorkKept is how long an ended job is kept, for whoever asks what came of it.
	WorkKept = 7 * 24 * time.Hour
	// MaxWorkPayload and MaxLogTail bound a job's row, in bytes.
	MaxWorkPayload = 64 << 10
	MaxLogTail     = 64 << 10
)

// WorkJob is a job in the queue of a service: a row of the jobs table. Only
// controld writes it, always under a condition.
type WorkJob struct {
	Service string    `json:"service"`
	ID      string    `json:"id"`
	State   WorkState `json:"state"`
	// Payload is what the worker is to do, of at most MaxWorkPayload bytes.
	Payload []byte `json:"payload,omitempty"`
	// WorkerID is the worker that has it, or had it at its end; empty while it waits.
	WorkerID string `json:"workerId,omitempty"`
	// Attempt is how often it was begun.
	Attempt   int       `json:"attempt,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	// ActivityAt is when its worker was last heard of it.
	ActivityAt time.Time `json:"activityAt,omitzero"`
	EndedAt    time.Time `json:"endedAt,omitzero"`
	// Reason is the sentence of the last change.
	Reason string `json:"reason,omitempty"`
	// LogTail is the end of the log of this attempt, of at most MaxLogTail bytes;
	// LogBytes is how many it had in all.
	LogTail  string `json:"logTail,omitempty"`
	LogBytes int64  `json:"logBytes,omitempty"`

	// DueAt is when somebody looks at it; zero once it has ended. While it waits
	// that is its end; one of an older controld has none. While it runs it is when its worker may have gone silent:
	// it does not follow each word of the worker, which would write an index with
	// every line of a log.
	DueAt     time.Time `json:"dueAt,omitzero"`
	Version   int64     `json:"version"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// WorkCount is how many jobs of a service wait and run, as far as was counted.
type WorkCount struct{ Waiting, Running int }

var (
	// ErrNotTheirs: the attempt of the job is not one that this worker runs. What
	// wraps it says why, and what the worker has to do.
	ErrNotTheirs = errors.New("nothing was changed")
	// ErrLogGap: the lines begin behind the end of the log.
	ErrLogGap = errors.New("lines are missing before these")
)

// WorkPolicy is what becomes of the jobs of a service that nobody takes, and of
// those whose workers go silent.
type WorkPolicy struct {
	// QueueTime is how long a job may wait for a worker.
	QueueTime time.Duration
	// Requeue has a job whose worker went silent wait once more for another.
	Requeue bool
}

// NewWorkJob is a job that waits for as long as it may.
func NewWorkJob(service, id string, payload []byte, p WorkPolicy, now time.Time) WorkJob {
	return WorkJob{
		Service: service, ID: id, Payload: payload, State: WorkWaiting, CreatedAt: now, DueAt: now.Add(p.QueueTime),
		Reason: "it waits for a worker",
	}
}

// Claim gives a waiting job to a worker: ErrLost if it does not wait. The log of
// an attempt before gives way to that of this one.
func (j WorkJob) Claim(workerID string, now time.Time) (WorkJob, error) {
	if j.State != WorkWaiting {
		return j, fmt.Errorf("claim job %s, which is %s: %w", j.ID, j.State, ErrLost)
	}
	j.State, j.WorkerID, j.Attempt = WorkRunning, workerID, j.Attempt+1
	j.StartedAt, j.ActivityAt, j.DueAt = now, now, now.Add(WorkSilence)
	j.LogTail, j.LogBytes = "", 0
	before, again := strings.CutSuffix(j.Reason, waitsAgain)
	j.Reason = fmt.Sprintf("worker %s has it", workerID)
	if again {
		j.Reason += ", for the second time: " + before
	}
	return j, nil
}

// RunBy reports whether the worker has the job.
func (j WorkJob) RunBy(workerID string) bool {
	return j.State == WorkRunning && j.WorkerID == workerID
}

// WorkTurn is one attempt at a job by a worker. What a worker says is of a turn: one
// that was given the job twice must not end the second attempt with the words of
// the first.
type WorkTurn struct {
	WorkerID string
	Attempt  int
}

// turn is who had the job last, and as which attempt.
func (j WorkJob) turn() WorkTurn { return WorkTurn{j.WorkerID, j.Attempt} }

// Append adds what its worker says, from an offset of the log on: what is there
// already is passed over. No lines tell that it makes progress. ErrNotTheirs if
// it is not the turn that runs, ErrLogGap if the offset is behind the log's end.
func (j WorkJob) Append(of WorkTurn, offset int64, lines string, now time.Time) (WorkJob, error) {
	if j.State != WorkRunning || j.turn() != of {
		return j, j.notTheirs(of)
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

// tailOf is the end of a log that may be kept. What is no UTF-8, because it was
// cut or because a repeat was none, can be kept and sent by nobody.
func tailOf(log string) string {
	if cut := len(log) - MaxLogTail; cut > 0 {
		for cut < len(log) && !utf8.RuneStart(log[cut]) {
			cut++
		}
		log = log[cut:]
	}
	return strings.ToValidUTF8(log, "?")
}

// Finish ends a job as its worker says. Said again it changes nothing: the job
// comes back as it is. ErrNotTheirs if it is not the turn that runs, or if it
// ended otherwise.
func (j WorkJob) Finish(of WorkTurn, succeeded bool, reason string, now time.Time) (WorkJob, error) {
	end := WorkFailed
	if succeeded {
		end = WorkSucceeded
	}
	switch {
	case j.turn() == of && j.State == end:
		return j, nil
	case j.State != WorkRunning || j.turn() != of:
		return j, j.notTheirs(of)
	}
	if reason == "" {
		reason = fmt.Sprintf("worker %s says that it %s", of.WorkerID, end)
	}
	j.ActivityAt = now
	return j.end(end, reason, now), nil
}

// waitsAgain ends the reason of a job that waits once more.
const waitsAgain = ": it waits for another"

// Look says what becomes of a job by now. One that waits has failed once it has
// waited for as long as it may. One that runs goes on, or its worker went silent,
// and it is queued once more where that is wanted and it was begun only once, or
// has failed. It is no word of the worker's, and does nothing else.
func (j WorkJob) Look(p WorkPolicy, now time.Time) WorkJob {
	switch {
	case j.State == WorkWaiting && !j.DueAt.IsZero() && !now.Before(j.DueAt):
		return j.end(WorkFailed, j.untaken(), now)
	case j.State != WorkRunning:
		return j
	case now.Sub(j.ActivityAt) < WorkSilence:
		j.DueAt = j.ActivityAt.Add(WorkSilence)
		return j
	}
	why := fmt.Sprintf("worker %s was not heard of it since %s, for longer than %s", j.WorkerID, clock(j.ActivityAt), WorkSilence)
	if !j.again(p) {
		return j.end(WorkFailed, why, now)
	}
	j.State, j.DueAt, j.Reason = WorkWaiting, now.Add(p.QueueTime), why+waitsAgain
	j.WorkerID, j.StartedAt, j.ActivityAt = "", time.Time{}, time.Time{}
	return j
}

// again reports whether the job waits once more when its worker goes silent.
func (j WorkJob) again(p WorkPolicy) bool { return p.Requeue && j.Attempt < WorkAttempts }

// Awaited says what the job awaits until when, and what happens then.
func (j WorkJob) Awaited(p WorkPolicy) string {
	switch {
	case j.State.Ended():
		return fmt.Sprintf("nothing: it is kept until %s", clock(j.ExpiresAt))
	case j.State == WorkWaiting && j.DueAt.IsZero():
		return "a worker, for as long as it takes"
	case j.State == WorkWaiting:
		return fmt.Sprintf("a worker until %s; then it has failed", clock(j.DueAt))
	}
	then := "it has failed"
	if j.again(p) {
		then = "it waits for another"
	}
	return fmt.Sprintf("a word of worker %s until %s; then %s", j.WorkerID, clock(j.ActivityAt.Add(WorkSilence)), then)
}

// untaken is why a job ends that no worker took in time.
func (j WorkJob) untaken() string {
	why := fmt.Sprintf("no worker took it until %s; it was submitted at %s", clock(j.DueAt), clock(j.CreatedAt))
	if before, again := strings.CutSuffix(j.Reason, waitsAgain); again {
		why += ", and " + before
	}
	return why
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (j WorkJob) end(state WorkState, reason string, now time.Time) WorkJob {
	j.State, j.Reason, j.EndedAt = state, reason, now
	j.DueAt, j.ExpiresAt = time.Time{}, now.Add(WorkKept)
	return j
}

// notTheirs says what has become of the job instead. A worker is told to stop
// only what is not its own any more: one that counts attempts wrong has a job
// that goes on.
func (j WorkJob) notTheirs(of WorkTurn) error {
	is := fmt.Sprintf("the job is %s (%s)", j.State, j.Reason)
	if j.State == WorkRunning {
		is = fmt.Sprintf("the job is with worker %s, attempt %d (%s)", j.WorkerID, j.Attempt, j.Reason)
	}
	stop := fmt.Sprintf("worker %s has to stop it", of.WorkerID)
	switch {
	case j.State.Ended():
		return fmt.Errorf("job %s has ended: it %s (%s): %w", j.ID, j.State, j.Reason, ErrNotTheirs)
	case of.Attempt > j.Attempt:
		return fmt.Errorf("attempt %d of job %s was not begun, and %s; send the attempt that ClaimJob gave: %w", of.Attempt, j.ID, is, ErrNotTheirs)
	case of.Attempt < j.Attempt || j.State != WorkRunning:
		return fmt.Errorf("attempt %d of job %s is over, and %s; %s: %w", of.Attempt, j.ID, is, stop, ErrNotTheirs)
	}
	return fmt.Errorf("attempt %d of job %s is with another worker, and %s; %s: %w", of.Attempt, j.ID, is, stop, ErrNotTheirs)
}
