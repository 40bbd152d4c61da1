// Package arrival has how a host came to its run, for people who read the log of a job.
package arrival

import (
	"cmp"
	"time"
)

// Arrival is when a host was asked for and got, and what kept it.
type Arrival struct {
	// AskedAt is when its request was made, and At when the host was claimed or its launch recorded.
	AskedAt time.Time `json:"askedAt"`
	At      time.Time `json:"at"`
	// Held is what kept the request from having all of its hosts: a limit, or what the cloud lacked. Empty: nothing is known.
	Held string `json:"held,omitempty"`
}

// Of is the arrival of a host that a request gets now; held may have kept it: the first counts that is not empty.
func Of(askedAt, now time.Time, held ...string) *Arrival {
	return &Arrival{AskedAt: askedAt, At: now, Held: cmp.Or(held...)}
}
