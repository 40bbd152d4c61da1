package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
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
		WHERE repository = ?1 AND run_id = ?2 AND id > ?3 ORDER BY id LIMIT ?4 + 0`
	selectEventsOfInstance = `SELECT id, doc FROM events
		WHERE instance_id = ?1 AND expires_at < ?2 ORDER BY id DESC`
	selectNewestEvents = `SELECT id, doc FROM events WHERE expires_at < ?1 ORDER BY expires_at DESC, id DESC LIMIT ?2 + 0`
	selectEvents       = `SELECT id, doc FROM events WHERE id > ?1 ORDER BY id LIMIT ?2 + 0`
	selectLastEvent    = `SELECT coalesce(max(id), 0) FROM events`
)

// Event ids are the row ids in hexadecimal, of one width so that they sort. Rows are numbered inside the
// transaction that commits them, so a reader who has seen one has seen all before it.
func eventID(id int64) string { return fmt.Sprintf("%016x", id) }

// The listings of the history, as their page tokens name them.
const (
	eventsIndex      = "events"
	eventsOfRunIndex = "events of run"
)

// afterEvent is the number of the row after which a page begins: 0 for a first page.
func afterEvent(index string, of lifecycle.PageOf) (int64, error) {
	parts, err := token.Parse(index, of.After, 1)
	if err != nil || parts == nil {
		return 0, err
	}
	id, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return 0, token.Bad(index)
	}
	return id, nil
}

func eventToken(index string, id int64) string { return token.New(index, strconv.FormatInt(id, 10)) }

// oneMore is how many rows to ask for: one more than a page holds tells whether it is the last.
func oneMore(of lifecycle.PageOf) int64 { return int64(min(of.Size(), math.MaxInt64-1)) + 1 }

// AddEvents appends to the history and gives the events their ids.
func (s *Store) AddEvents(ctx context.Context, events []event) error {
	const what = "add events"
	rows := make([][]any, len(events))
	for i, e := range events {
		e = store.NormalizeEvent(e)
		doc, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		rows[i] = []any{db.Nanos(e.At.Add(store.EventRetention)), db.Text(e.Repository), db.Text(e.RunID), db.Text(e.InstanceID), string(doc)}
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
	after, err := afterEvent(eventsOfRunIndex, of)
	if err != nil {
		return eventPage{}, err
	}
	page, _, err := s.listEvents(ctx, eventsOfRunIndex, of, selectEventsOfRun, repository, db.Text(runID), after, oneMore(of))
	return page, err
}

// EventsOfInstance lists the newest events of a host, at most limit, none from before since and none from until on. Those of the fleet are found
// by when they expire, which is a day after their time.
func (s *Store) EventsOfInstance(ctx context.Context, instanceID string, since, until time.Time, limit int) (lifecycle.HostHistory, error) {
	const what = "list events of instance"
	expiry := int64(math.MaxInt64)
	if !until.IsZero() {
		expiry = db.Nanos(until.Add(store.EventRetention))
	}
	query, args := selectEventsOfInstance, []any{instanceID, expiry}
	if instanceID == "" {
		query, args = selectNewestEvents, []any{expiry, int64(limit) + 1}
	}
	var newest store.Newest
	err := s.db.Read(ctx, what, func(c *db.Conn) error {
		newest = store.Newest{Since: since, Until: until, Limit: limit}
		var text sql.RawBytes
		err := c.Each(query, args, func(rows *sql.Rows) error {
			e, _, err := scanEvent(rows, &text, what)
			if err != nil {
				return err
			}
			if newest.Done(e.At) {
				return errDone
			}
			newest.Add(e)
			return nil
		})
		if errors.Is(err, errDone) {
			return nil
		}
		return err
	})
	return newest.History(), err
}

// errDone ends a read before its last row.
var errDone = errors.New("the rest is not wanted")

// scanEvent reads a row, and its number. text is for that alone.
func scanEvent(rows *sql.Rows, text *sql.RawBytes, what string) (e event, id int64, err error) {
	if err := rows.Scan(&id, text); err != nil {
		return e, 0, err
	}
	if err := decode(*text, &e); err != nil {
		return e, 0, damaged(what, err)
	}
	e.ID = eventID(id)
	return e, id, nil
}

// EventsSince lists the whole history after a token, oldest first. Next is
// never empty: it goes on from the last event there is.
func (s *Store) EventsSince(ctx context.Context, of lifecycle.PageOf) (eventPage, error) {
	after, err := afterEvent(eventsIndex, of)
	if err != nil {
		return eventPage{}, err
	}
	page, last, err := s.listEvents(ctx, eventsIndex, of, selectEvents, after, oneMore(of))
	if err == nil {
		page.Next = eventToken(eventsIndex, max(last, after))
	}
	return page, err
}

// LastEvent is the page token of the newest event.
func (s *Store) LastEvent(ctx context.Context) (string, error) {
	var id int64
	err := s.db.Read(ctx, "find the last event", func(c *db.Conn) error { return c.Get(selectLastEvent, nil, &id) })
	if err != nil {
		return "", err
	}
	return eventToken(eventsIndex, id), nil
}

// listEvents also returns the number of the last event on the page; 0: the page is empty.
func (s *Store) listEvents(ctx context.Context, index string, of lifecycle.PageOf, query string, args ...any) (page eventPage, last int64, err error) {
	what := "list " + index
	err = s.db.Read(ctx, what, func(c *db.Conn) error {
		page, last = eventPage{}, 0
		var text sql.RawBytes
		return c.Each(query, args, func(rows *sql.Rows) error {
			if len(page.Items) == of.Size() {
				page.Next = eventToken(index, last)
				return nil
			}
			e, id, err := scanEvent(rows, &text, what)
			if err != nil {
				return err
			}
			last = id
			if n := len(page.Items); n == cap(page.Items) {
				page.Items = slices.Grow(page.Items, max(n, 16)) // append alone copies long pages more often
			}
			page.Items = append(page.Items, e)
			return nil
		})
	})
	return page, last, err
}
