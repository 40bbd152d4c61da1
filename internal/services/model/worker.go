package model

import "time"

const (
	// WorkerSilence is how long a worker counts as online after a heartbeat: two intervals of 30 s, so that one
	// heartbeat may be lost.
	WorkerSilence = time.Minute
	// WorkerRetention is how long a worker is listed after its last heartbeat.
	WorkerRetention = 24 * time.Hour
)

// Worker is a worker of a service, as it described itself: a row of the jobs table.
type Worker struct {
	Service string `json:"service"`
	// ID is chosen by the worker itself.
	ID string `json:"id"`
	// WorkerVersion is the version that the worker sent last.
	WorkerVersion string    `json:"workerVersion,omitempty"`
	HeartbeatAt   time.Time `json:"heartbeatAt,omitzero"`
	// JobID is the job that the worker has, or is about to claim: the job's row says which. It is written before the
	// job's row, so that a worker that did not receive the answer gets the same job again.
	JobID string `json:"jobId,omitempty"`

	Version   int64     `json:"version"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// WithHeartbeat returns the worker after a call of it. An empty version keeps the stored one.
func (w Worker) WithHeartbeat(version string, now time.Time) Worker {
	if version != "" {
		w.WorkerVersion = version
	}
	if now.After(w.HeartbeatAt) {
		w.HeartbeatAt, w.ExpiresAt = now, now.Add(WorkerRetention)
	}
	return w
}

// Online reports whether the last heartbeat is recent.
func (w Worker) Online(now time.Time) bool { return now.Sub(w.HeartbeatAt) < WorkerSilence }
