package lifecycle

import "time"

// Service is what was last seen of a service of runners in containers, and
// decided on it.
type Service struct {
	// Name in the configuration.
	Name string `json:"name"`
	// Version counts the writes; 0: nobody wrote it yet.
	Version int64 `json:"version"`
	// ServiceTasks and Backlog are what was seen.
	ServiceTasks
	Backlog
	// IdleChecks is how often in a row nothing waited and nothing was worked on.
	IdleChecks int `json:"idleChecks"`
	// CountedAt is when it was last counted whether the service is idle: looks
	// shortly after it do not count.
	CountedAt time.Time `json:"countedAt"`
	// CheckedAt is when it was last looked at.
	CheckedAt time.Time `json:"checkedAt"`
	// Wanted is how many runners were decided on then, and Reason why.
	Wanted int    `json:"wanted"`
	Reason string `json:"reason"`
}

// ServiceTasks is how many runners a service has, 0 or more each.
type ServiceTasks struct {
	// Desired is what it was told to run; of those, Running run and Pending start.
	Desired int `json:"desired"`
	Running int `json:"running"`
	Pending int `json:"pending"`
}

// ServiceLook is what a look at a service showed: Err, or what it has.
type ServiceLook struct {
	ServiceTasks
	Err error
}

// Backlog is how many jobs of a service there are; nil: it is not known.
type Backlog struct {
	// Queued wait for a runner, Busy are worked on.
	Queued *int `json:"queued"`
	Busy   *int `json:"busy"`
	// More may wait than Queued: it was counted no further.
	More bool `json:"more,omitempty"`
}
