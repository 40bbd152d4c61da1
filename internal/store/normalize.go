package store

import "time"

// utc returns t in UTC, without a monotonic reading.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Round(0).UTC()
}

// toUTC makes each of the times utc, in place.
func toUTC(times ...*time.Time) {
	for _, t := range times {
		*t = utc(*t)
	}
}

// cloned returns a copy of a list; nil if it is empty.
func cloned[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return append([]T(nil), s...)
}

// pointer returns a pointer to a copy; nil for nil.
func pointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	own := *p
	return &own
}
