package lifecycle

import "time"

const (
	// WorkerSilence is how long a worker is online after a heartbeat: two
	// intervals of 30 s, so that one may be lost.
	WorkerSilence = time.Minute
	// WorkerKept is how long a worker is listed after its last heartbeat.
	WorkerKept = 24 * time.Hour
)

// Worker is a worker of a service, as it told of itself: a row of the jobs table.
type Worker struct {
	Service string `json:"service"`
	// ID is chosen by the worker itself.
	ID string `json:"id"`
	// WorkerVersion is the version that it told last.
	WorkerVersion string    `json:"workerVersion,omitempty"`
	HeartbeatAt   time.Time `json:"heartbeatAt,omitzero"`
	// JobID is the job that it has, or is about to claim: the job's row says
	// which. It is written first, so that a worker whose answer was lost gets
	// that job again.
	JobID string `json:"jobId,omitempty"`

	Version   int64     `json:"version"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// Heard is the worker after a word of it. A version that it does not tell stays.
func (w Worker) Heard(version string, now time.Time) Worker {
	if version != "" {
		w.WorkerVersion = version
	}
	if now.After(w.HeartbeatAt) {
		w.HeartbeatAt, w.ExpiresAt = now, now.Add(WorkerKept)
	}
	return w
}

// Online reports whether the worker was heard of lately.
func (w Worker) Online(now time.Time) bool { return now.Sub(w.HeartbeatAt) < WorkerSilence }
