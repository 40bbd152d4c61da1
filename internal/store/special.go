package store

import (
	"context"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// EventRetention is how long an event is kept after its time.
const EventRetention = 24 * time.Hour

// NormalizeEvent returns the event in its normal form.
func NormalizeEvent(e lifecycle.Event) lifecycle.Event {
	setUTC(&e.At)
	return e
}

// NormalizeReport returns the report in its normal form.
func NormalizeReport(p lifecycle.Report) lifecycle.Report {
	for _, at := range []*time.Time{&p.HeartbeatAt, &p.RegisteredAt, &p.InterruptionAt, &p.RebalanceAt} {
		setUTC(at)
	}
	return p
}

// NewestOf is the history of a host made of its newest events, newest first: at most limit of them, and none from
// before since.
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

// Reports reads the reports of the hosts that have one, by host key.
func (s Store) Reports(ctx context.Context, hostKeys []string) (_ map[string]lifecycle.Report, err error) {
	defer s.observed("", "reports", &err)
	return s.backend.Reports(ctx, hostKeys)
}

// AllReports lists every report.
func (s Store) AllReports(ctx context.Context, page lifecycle.PageOf) (_ lifecycle.Page[lifecycle.Report], err error) {
	defer s.observed("", "all_reports", &err)
	return s.backend.AllReports(ctx, page)
}

// DeleteReport removes a report; a missing one is no error.
func (s Store) DeleteReport(ctx context.Context, hostKey string) (err error) {
	defer s.observed("", "delete_report", &err)
	return s.backend.DeleteReport(ctx, hostKey)
}

// AddEvents appends to the history; the store gives ids.
func (s Store) AddEvents(ctx context.Context, events []lifecycle.Event) (err error) {
	defer s.observed("", "add_events", &err)
	return s.backend.AddEvents(ctx, events)
}

// EventsOfRun lists the history of a run, oldest first.
func (s Store) EventsOfRun(ctx context.Context, repository, runID string, page lifecycle.PageOf) (_ lifecycle.Page[lifecycle.Event], err error) {
	defer s.observed("", "events_of_run", &err)
	return s.backend.EventsOfRun(ctx, repository, runID, page)
}

// EventsOfInstance lists the newest events of a host, at most limit and none from before since, oldest first.
func (s Store) EventsOfInstance(ctx context.Context, instanceID string, since time.Time, limit int) (_ lifecycle.HostHistory, err error) {
	defer s.observed("", "events_of_instance", &err)
	return s.backend.EventsOfInstance(ctx, instanceID, since, limit)
}

// EventsSince lists the whole history after a page token, oldest first.
func (s Store) EventsSince(ctx context.Context, page lifecycle.PageOf) (_ lifecycle.Page[lifecycle.Event], err error) {
	defer s.observed("", "events_since", &err)
	return s.backend.EventsSince(ctx, page)
}

// LastEvent is the page token of the newest event.
func (s Store) LastEvent(ctx context.Context) (_ string, err error) {
	defer s.observed("", "last_event", &err)
	return s.backend.LastEvent(ctx)
}
