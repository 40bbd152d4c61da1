package model

import (
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
