// Package model holds the rows of runner services, of their jobs and of their workers, with the rules that change
// them. It is to services what lifecycle is to hosts: pure, and shared by the use-cases, the stores and the adapters.
package model

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Service is what was last observed of a service of runners in containers, and the decision that followed.
type Service struct {
	// Name is its name in the configuration.
	Name string `json:"name"`
	// Version counts the writes; 0 means that the row does not exist yet.
	Version int64 `json:"version"`
	// Tasks and Backlog are what was observed.
	Tasks
	Backlog
	// IdleChecks counts the checks in a row that found no job waiting or running.
	IdleChecks int `json:"idleChecks"`
	// CountedAt is the time of the last check that counted for IdleChecks. A check shortly after it does not count.
	CountedAt time.Time `json:"countedAt"`
	// CheckedAt is the time of the last check.
	CheckedAt time.Time `json:"checkedAt"`
	// Wanted is the number of runners that the last check decided on. Reason is why, and ReasonCode its code.
	Wanted     int                  `json:"wanted"`
	Reason     string               `json:"reason"`
	ReasonCode lifecycle.ReasonCode `json:"reasonCode,omitempty"`
}

// Tasks is how many runners a service has, 0 or more each.
type Tasks struct {
	// Desired is the service's desired count at ECS. Of those, Running run and Pending start.
	Desired int `json:"desired"`
	Running int `json:"running"`
	Pending int `json:"pending"`
}

// Observation is the answer to one question about a service: its tasks, or Err.
type Observation struct {
	Tasks
	Err error
}

// Backlog is how many jobs a service has. A nil number is unknown.
type Backlog struct {
	// Queued jobs wait for a runner, Busy ones have one.
	Queued *int `json:"queued"`
	Busy   *int `json:"busy"`
	// More means that more jobs than Queued may wait: the count stopped at its limit.
	More bool `json:"more,omitempty"`
}

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
	// OfflineAt is when the sweep found that the worker sends no heartbeats any more; zero: it is online, or the sweep
	// has not found it yet.
	OfflineAt time.Time `json:"offlineAt,omitzero"`

	Version   int64     `json:"version"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// WithHeartbeat returns the worker after a call of it. An empty version keeps the stored one.
func (w Worker) WithHeartbeat(version string, now time.Time) Worker {
	if version != "" {
		w.WorkerVersion = version
	}
	if now.After(w.HeartbeatAt) {
		w.HeartbeatAt, w.ExpiresAt, w.OfflineAt = now, now.Add(WorkerRetention), time.Time{}
	}
	return w
}

// GoneOffline returns the worker as it should be at now, and reports whether it has gone offline since the last check.
func (w Worker) GoneOffline(now time.Time) (Worker, bool) {
	if w.Online(now) || !w.OfflineAt.IsZero() {
		return w, false
	}
	w.OfflineAt = now
	return w, true
}

// OfflineReason says since when a worker is offline.
func (w Worker) OfflineReason() string {
	return fmt.Sprintf("worker %s of service %s has sent no heartbeat since %s, for longer than %s", w.ID, w.Service, clock(w.HeartbeatAt), WorkerSilence)
}

// Online reports whether the last heartbeat is recent.
func (w Worker) Online(now time.Time) bool { return now.Sub(w.HeartbeatAt) < WorkerSilence }
