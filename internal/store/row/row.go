// Package row gives rows the one form in which every store keeps them, so that
// what is read back is equal from each adapter: a copy of its own that shares
// nothing with the caller, times in UTC without a monotonic reading, and nil
// for an empty list (an empty value is a removed attribute, docs/design.md#what-is-stored).
package row

import (
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// EventRetention is how long an event is kept after its time (docs/design.md#what-is-stored).
const EventRetention = 24 * time.Hour

// Record returns r in the form of the store.
func Record(r lifecycle.Record) lifecycle.Record {
	for _, t := range []*time.Time{
		&r.Threshold, &r.RuntimeEndsAt, &r.ReleasedAt, &r.DueAt, &r.PooledAt, &r.Hold, &r.OrphanAt,
		&r.IdleDetectedAt, &r.ScaleDownAt, &r.InterruptionAt, &r.LaunchedAt, &r.CreatedAt, &r.UpdatedAt, &r.ExpiresAt,
	} {
		*t = utc(*t)
	}
	r.Labels = list(r.Labels)
	if r.Registration != nil {
		reg := *r.Registration
		reg.ExpiresAt = utc(reg.ExpiresAt)
		r.Registration = &reg
	}
	if r.LostBy != nil {
		left := *r.LostBy
		left.Labels = list(left.Labels)
		r.LostBy = &left
	}
	return r
}

// Report returns p in the form of the store.
func Report(p lifecycle.Report) lifecycle.Report {
	p.HeartbeatAt, p.RegisteredAt, p.InterruptionAt, p.RebalanceAt =
		utc(p.HeartbeatAt), utc(p.RegisteredAt), utc(p.InterruptionAt), utc(p.RebalanceAt)
	return p
}

// Request returns q in the form of the store.
func Request(q lifecycle.Request) lifecycle.Request {
	for _, t := range []*time.Time{&q.CreatedAt, &q.Deadline, &q.ReleasedAt, &q.NotBefore, &q.DueAt, &q.ExpiresAt} {
		*t = utc(*t)
	}
	q.Spec.InstanceTypes, q.Spec.Labels = list(q.Spec.InstanceTypes), list(q.Spec.Labels)
	q.Taken = list(q.Taken)
	if q.ReplacementOf != nil {
		of := *q.ReplacementOf
		q.ReplacementOf = &of
	}
	if q.Launch != nil {
		order := *q.Launch
		order.InstanceTypes, order.PoolTypes = list(order.InstanceTypes), list(order.PoolTypes)
		order.Exclude = list(order.Exclude)
		q.Launch = &order
	}
	return q
}

// Event returns e in the form of the store.
func Event(e lifecycle.Event) lifecycle.Event {
	e.At = utc(e.At)
	return e
}

// NewestOf is the history of a host made of its newest events, newest first:
// at most limit of them, and none from before since.
func NewestOf(newest []lifecycle.Event, since time.Time, limit int) lifecycle.HostHistory {
	var h lifecycle.HostHistory
	for _, e := range newest {
		switch {
		case e.At.Before(since):
		case len(h.Events) == limit:
			h.From = h.Events[limit-1].At
		default:
			h.Events = append(h.Events, e)
		}
	}
	slices.Reverse(h.Events)
	return h
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Round(0).UTC()
}

func list[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return append([]T(nil), s...)
}
