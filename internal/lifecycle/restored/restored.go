// Package restored judges records that have an older state back, since their table was restored. Such a record does not know what
// its host has done since, and its deadlines may be over while a job runs. Only the host itself knows more.
package restored

import "time"

// Old is how long ago a record must have been written to be taken for a restored one while its host could not report yet. A shorter
// time would keep hosts that boot and are released in the first minute of a replica; with a longer one a restored record would be
// believed. In less time a host hardly ever becomes ready for one run, clean, and ready for the next.
const Old = 2 * time.Minute

// Older reports whether a record is older than what its host has done: an agent reports only for assignments that it has read in
// a record, and their number never falls.
func Older(recorded, reported int64) bool { return reported > recorded }

// Until is until when a host that says that a job runs is kept, whatever deadlines its restored record has. The later run may be one
// that the record does not know, so its maximum runtime is taken to be the longer one of the record's and the pool's.
func Until(seenAt time.Time, recorded, pools time.Duration) time.Time {
	return seenAt.Add(max(recorded, pools))
}
