package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/token"
)

type (
	event     = lifecycle.Event
	eventPage = lifecycle.Page[lifecycle.Event]
)

const (
	insertEvent       = `INSERT INTO events (expires_at, repository, run_id, instance_id, doc) VALUES (?1, ?2, ?3, ?4, ?5)`
	selectEventsOfRun = `SELECT id, doc FROM events
		WHERE repository = ?1 AND run_id = ?2 AND id > ?3 ORDER BY id LIMIT ?4`
	selectEventsOfInstance = `SELECT id, doc FROM events
		WHERE instance_id = ?1 ORDER BY id DESC LIMIT ?2`
	selectEvents    = `SELECT id, doc FROM events WHERE id > ?1 ORDER BY id LIMIT ?2`
	selectLastEvent = `SELECT coalesce(max(id), 0) FROM events`
)

// Event ids are the row ids in hexadecimal, of one width so that they sort.
// Rows are numbered inside the transaction that commits them, so a reader who
// has seen one has seen all before it.
func eventID(id int64) string { return fmt.Sprintf("%016x", id) }

func eventKey(e event) key {
	// The ids are ours.
	id, _ := strconv.ParseInt(e.ID, 16, 64)
	return key{number: id}
}

// AddEvents appends to the history and gives the events their ids.
func (s *Store) AddEvents(ctx context.Context, events []event) error {
	const what = "add events"
	rows := make([][]any, len(events))
	for i, e := range events {
		e = row.Event(e)
		doc, err := document(what, e)
		if err != nil {
			return err
		}
		rows[i] = []any{db.Nanos(e.At.Add(row.EventRetention)), db.Text(e.Repository), db.Text(e.RunID), db.Text(e.InstanceID), doc}
	}
	return s.db.Write(ctx, what, func(c *db.Conn) error {
		for _, row := range rows {
			if _, err := c.Exec(insertEvent, row...); err != nil {
				return err
			}
		}
		return nil
	})
}

// EventsOfRun lists the history of a run, oldest first.
func (s *Store) EventsOfRun(ctx context.Context, repository, runID string, of lifecycle.PageOf) (eventPage, error) {
	after, err := eventsOfRun.after(of)
	if err != nil {
		return eventPage{}, err
	}
	return s.listEvents(ctx, eventsOfRun, of, selectEventsOfRun, repository, db.Text(runID), after.number, oneMore(of))
}

// EventsOfInstance lists the newest events of a host, at most so many and none
// from before since.
func (s *Store) EventsOfInstance(ctx context.Context, instanceID string, since time.Time, limit int) (lifecycle.HostHistory, error) {
	// A page of its own size needs no token.
	page, err := s.listEvents(ctx, eventsOfInstance, lifecycle.PageOf{Limit: limit + 1}, selectEventsOfInstance, instanceID, int64(limit)+1)
	if err != nil {
		return lifecycle.HostHistory{}, err
	}
	return row.NewestOf(page.Items, since, limit), nil
}

// EventsSince lists the whole history after a token, oldest first. Next is
// never empty: it goes on from the last event there is.
func (s *Store) EventsSince(ctx context.Context, of lifecycle.PageOf) (eventPage, error) {
	after, err := eventsByID.after(of)
	if err != nil {
		return eventPage{}, err
	}
	page, err := s.listEvents(ctx, eventsByID, of, selectEvents, after.number, oneMore(of))
	if err != nil || page.Next != "" {
		return page, err
	}
	if n := len(page.Items); n > 0 {
		page.Next = eventsByID.token(page.Items[n-1])
	} else {
		page.Next = token.New(eventsByID.name, strconv.FormatInt(after.number, 10))
	}
	return page, nil
}

// LastEvent is the page token of the newest event.
func (s *Store) LastEvent(ctx context.Context) (string, error) {
	var id int64
	err := s.db.Read(ctx, "find the last event", func(c *db.Conn) error { return c.Get(selectLastEvent, nil, &id) })
	if err != nil {
		return "", err
	}
	return token.New(eventsByID.name, strconv.FormatInt(id, 10)), nil
}

func (s *Store) listEvents(ctx context.Context, x index[event], of lifecycle.PageOf, query string, args ...any) (page eventPage, err error) {
	what := "list " + x.name
	err = s.db.Read(ctx, what, func(c *db.Conn) error {
		var found []event
		var text sql.RawBytes
		err := c.Each(query, args, func(rows *sql.Rows) error {
			var id int64
			var e event
			if err := rows.Scan(&id, &text); err != nil {
				return err
			}
			if err := json.Unmarshal(text, &e); err != nil {
				return damaged(what, err)
			}
			e.ID = eventID(id)
			found = append(found, e)
			return nil
		})
		page = x.page(found, of)
		return err
	})
	return page, err
}
