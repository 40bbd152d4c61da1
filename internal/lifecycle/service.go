package lifecycle

import "time"

// Service is what was last seen of a service of runners in containers, and
// decided on it.
type Service struct {
	// Name in the configuration.
	Name string
	// Version counts the writes; 0: nobody wrote it yet.
	Version int64
	// Tasks and Backlog are what was seen.
	Tasks   ServiceTasks
	Backlog Backlog
	// IdleChecks is how often in a row nothing waited and nothing was worked on.
	IdleChecks int
	// CountedAt is when IdleChecks was last counted up: looks between two checks
	// do not count.
	CountedAt time.Time
	// CheckedAt is when it was last looked at.
	CheckedAt time.Time
	// Wanted is how many runners were decided on then, and Reason why.
	Wanted int
	Reason string
}

// ServiceTasks is how many runners a service has, 0 or more each.
type ServiceTasks struct {
	// Desired is what it was told to run; of those, Running run and Pending start.
	Desired, Running, Pending int
	// Err is why nothing of this is known; nil: it is.
	Err error
}

// Backlog is how many jobs of a service there are; nil: it is not known.
type Backlog struct {
	// Queued wait for a runner, Busy are worked on.
	Queued, Busy *int
}
