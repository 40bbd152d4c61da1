package lifecycle

import "time"

// ShortOf notes what a launch lacked; empty: nothing. A shortage lasts from the first of the launches in a row that were short.
func (q *Request) ShortOf(what string, now time.Time) {
	q.Shortage = what
	switch {
	case what == "":
		q.ShortSince = time.Time{}
	case q.ShortSince.IsZero():
		q.ShortSince = now
	}
}

// KeptByLimit notes which limit keeps the request from more hosts; empty: none. Which runs have the room may change.
func (q *Request) KeptByLimit(why string, now time.Time) {
	q.QuotaReason = why
	switch {
	case why == "":
		q.QuotaSince = time.Time{}
	case q.QuotaSince.IsZero():
		q.QuotaSince = now
	}
}
