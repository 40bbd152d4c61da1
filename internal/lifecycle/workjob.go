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

	// DueAt is when somebody looks whether the worker went silent; zero unless it
	// runs. It does not follow each word of the worker: that would write an index
	// with every line of a log.
	DueAt     time.Time `json:"dueAt,omitzero"`
	Version   int64     `json:"version"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// WorkCount is how many jobs of a service wait and run.
type WorkCount struct{ Waiting, Running int }

var (
	// ErrNotTheirs: the job is not this worker's any more, and it has to stop it.
	ErrNotTheirs = errors.New("not this worker's job")
	// ErrLogGap: the lines begin behind the end of the log.
	ErrLogGap = errors.New("lines are missing before these")
)

// NewWorkJob is a job that waits.
func NewWorkJob(service, id string, payload []byte, now time.Time) WorkJob {
	return WorkJob{
		Service: service, ID: id, Payload: payload, State: WorkWaiting, CreatedAt: now,
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
	j.Reason = fmt.Sprintf("worker %s has it", workerID)
	return j, nil
}

// RunBy reports whether the worker has the job.
func (j WorkJob) RunBy(workerID string) bool {
	return j.State == WorkRunning && j.WorkerID == workerID
}

// Append adds what its worker says, from an offset of the log on: what is there
// already is passed over. No lines tell that it makes progress. ErrNotTheirs if
// the worker does not have it, ErrLogGap if the offset is behind the log's end.
func (j WorkJob) Append(workerID string, offset int64, lines string, now time.Time) (WorkJob, error) {
	if !j.RunBy(workerID) {
		return j, j.notTheirs(workerID)
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
// comes back as it is. ErrNotTheirs if the worker does not have it, or if it
// ended otherwise.
func (j WorkJob) Finish(workerID string, succeeded bool, reason string, now time.Time) (WorkJob, error) {
	end := WorkFailed
	if succeeded {
		end = WorkSucceeded
	}
	switch {
	case j.WorkerID == workerID && j.State == end:
		return j, nil
	case !j.RunBy(workerID):
		return j, j.notTheirs(workerID)
	}
	if reason == "" {
		reason = fmt.Sprintf("worker %s says that it %s", workerID, end)
	}
	j.ActivityAt = now
	return j.end(end, reason, now), nil
}

// Look says what becomes of a running job by now: it goes on, or its worker went
// silent, and it is queued once more where that is wanted and it was begun only
// once, or has failed. It is no word of the worker's, and does nothing else.
func (j WorkJob) Look(requeue bool, now time.Time) WorkJob {
	silent := now.Sub(j.ActivityAt)
	switch {
	case j.State != WorkRunning:
		return j
	case silent < WorkSilence:
		j.DueAt = j.ActivityAt.Add(WorkSilence)
		return j
	}
	why := fmt.Sprintf("worker %s was not heard of it since %s, for longer than %s", j.WorkerID, j.ActivityAt.UTC().Format(time.RFC3339), WorkSilence)
	if !requeue || j.Attempt >= WorkAttempts {
		return j.end(WorkFailed, why, now)
	}
	j.State, j.DueAt, j.Reason = WorkWaiting, time.Time{}, why+": it waits for another"
	j.WorkerID, j.StartedAt, j.ActivityAt = "", time.Time{}, time.Time{}
	return j
}

func (j WorkJob) end(state WorkState, reason string, now time.Time) WorkJob {
	j.State, j.Reason, j.EndedAt = state, reason, now
	j.DueAt, j.ExpiresAt = time.Time{}, now.Add(WorkKept)
	return j
}

func (j WorkJob) notTheirs(workerID string) error {
	is := fmt.Sprintf("is %s", j.State)
	if j.State == WorkRunning {
		is = fmt.Sprintf("is with worker %s, attempt %d", j.WorkerID, j.Attempt)
	}
	return fmt.Errorf("job %s %s (%s), and worker %s has to stop it: %w", j.ID, is, j.Reason, workerID, ErrNotTheirs)
}
