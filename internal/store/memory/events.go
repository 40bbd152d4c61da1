package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/token"
)

const (
	eventsIndex     = "events"
	runEventsIndex  = "events of run"
	beforeAllEvents = "" // sorts before every event id
)

// AddEvents appends to the history and gives the events their ids.
func (s *Store) AddEvents(ctx context.Context, events []lifecycle.Event) error {
	return s.write(ctx, "add events", func() error {
		for _, e := range events {
			s.lastEvent++
			e.ID = fmt.Sprintf("%016x", s.lastEvent)
			s.events = append(s.events, store.NormalizeEvent(e))
		}
		return nil
	})
}

// EventsOfRun lists the history of a run, oldest first.
func (s *Store) EventsOfRun(ctx context.Context, repository, runID string, of lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
	in := func(e lifecycle.Event) bool { return runID != "" && e.Repository == repository && e.RunID == runID }
	page, _, err := s.listEvents(ctx, runEventsIndex, of, in)
	return page, err
}

// EventsOfInstance lists the newest events of a host, at most so many, none from before since and none from until on.
func (s *Store) EventsOfInstance(ctx context.Context, instanceID string, since, until time.Time, limit int) (lifecycle.HostHistory, error) {
	return read(ctx, s, "list events of instance", func() (lifecycle.HostHistory, error) {
		newest := store.Newest{Since: since, Until: until, Limit: limit}
		for _, e := range slices.Backward(s.events) {
			if newest.Done(e.At) {
				break
			}
			if instanceID == "" || e.InstanceID == instanceID {
				newest.Add(e)
			}
		}
		return newest.History(), nil
	})
}

// EventsSince lists the whole history after a token, oldest first. Next is
// never empty: it goes on from the last event there is.
func (s *Store) EventsSince(ctx context.Context, of lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
	page, last, err := s.listEvents(ctx, eventsIndex, of, func(lifecycle.Event) bool { return true })
	if err == nil {
		page.Next = token.New(eventsIndex, last)
	}
	return page, err
}

// LastEvent is the page token of the newest event.
func (s *Store) LastEvent(ctx context.Context) (string, error) {
	return read(ctx, s, "find the last event", func() (string, error) {
		last := beforeAllEvents
		if n := len(s.events); n > 0 {
			last = s.events[n-1].ID
		}
		return token.New(eventsIndex, last), nil
	})
}

// listEvents also returns the id after which the listing goes on.
func (s *Store) listEvents(
	ctx context.Context, index string, of lifecycle.PageOf, in func(lifecycle.Event) bool,
) (page lifecycle.Page[lifecycle.Event], last string, err error) {
	after, err := token.Parse(index, of.After, 1)
	if err != nil {
		return page, "", err
	}
	last = beforeAllEvents
	if after != nil {
		last = after[0]
	}
	page, err = read(ctx, s, "list "+index, func() (page lifecycle.Page[lifecycle.Event], _ error) {
		start, found := slices.BinarySearchFunc(s.events, last, func(e lifecycle.Event, id string) int { return cmp.Compare(e.ID, id) })
		if found {
			start++
		}
		for _, e := range s.events[start:] {
			if !in(e) {
				continue
			}
			if len(page.Items) == of.Size() {
				page.Next = token.New(index, last)
				break
			}
			page.Items = append(page.Items, e)
			last = e.ID
		}
		return page, nil
	})
	return page, last, err
}
