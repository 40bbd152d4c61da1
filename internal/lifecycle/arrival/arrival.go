// Package arrival has how a host came to its run, for people who read the log of a job.
package arrival

import "time"

// Arrival is when a host was asked for and got, what kept it, and why it is no idle one.
type Arrival struct {
	Wait
	// AskedAt is when its request was made, and At when the host was claimed or its launch recorded.
	AskedAt time.Time `json:"askedAt"`
	At      time.Time `json:"at"`
	// Missed says, of a host that was launched, why its request had no idle one instead. Empty: none was found.
	Missed []Miss `json:"missed,omitempty"`
	// Chosen says, of a host that was claimed in a pool with caches, why the request took this one of the idle hosts.
	Chosen string `json:"chosen,omitempty"`
}

// Wait is what a request waited for. Rows of an older controld have none.
type Wait struct {
	// QueuedAt is when GitHub queued the job for which the request was made; zero: it was made for none, or that is not known.
	QueuedAt time.Time `json:"queuedAt,omitzero"`
	// Held is the sentence of what kept the request, or its job, from hosts last: a limit, a shortage, a pause. HeldBy is its reason code. Empty: nothing did.
	Held   string `json:"held,omitempty"`
	HeldBy string `json:"heldBy,omitempty"`
}

// Of is the arrival of a host that is got now, by a request that was made at a time. The times are kept to the millisecond, since a claim is paid
// for by the KB.
func Of(askedAt, now time.Time, w Wait, missed []Miss) *Arrival {
	return &Arrival{Wait: w, AskedAt: askedAt.Truncate(time.Millisecond), At: now.Truncate(time.Millisecond), Missed: missed}
}
