// Package sqlite is the state store of the embedded default: its tables in one SQLite file, which package db opens.
//
// A row is the JSON document of the record, beside the columns that its conditions and indexes need.
package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// Store keeps its rows in a file that it shares with other processes.
type Store struct {
	// Store has the typed methods.
	store.Store

	db *db.DB
	// unsound are the hosts whose unreadable reports were logged, and damaged our own unreadable rows that were.
	unsound, damaged sync.Map
}

var _ store.Backend = (*Store)(nil)

// New returns the store in an open file, which its opener closes.
func New(file *db.DB) *Store {
	s := &Store{db: file}
	s.Store = store.New(s)
	return s
}

// lost is the error of a write whose condition did not hold, which shows in that it changed no row.
func lost(what string) error { return fmt.Errorf("%s: %w", what, lifecycle.ErrConflict) }

// change runs a statement that changes one row, or none when its condition does
// not hold: that is the error otherwise.
func (s *Store) change(ctx context.Context, what string, otherwise error, query string, args ...any) error {
	return s.db.Write(ctx, what, func(c *db.Conn) error {
		n, err := c.Exec(query, args...)
		if err == nil && n == 0 {
			err = fmt.Errorf("%s: %w", what, otherwise)
		}
		return err
	})
}

// A row whose time is over counts no more, whether or not it has been cleared.
const see = `INSERT INTO seen (kind, id, expires_at) VALUES (?1, ?2, ?3)
	ON CONFLICT (kind, id) DO UPDATE SET expires_at = excluded.expires_at WHERE expires_at <= ?4`

// SeeOnce remembers an id of a kind until a time: ErrExists if it is remembered already.
func (s *Store) SeeOnce(ctx context.Context, kind, id string, until time.Time) error {
	return s.change(ctx, "remember "+kind+" "+id, lifecycle.ErrExists, see, kind, id, db.Nanos(until), db.Nanos(s.db.Now()))
}

const putReport = `INSERT INTO reports (host_key, doc) VALUES (?1, ?2)
	ON CONFLICT (host_key) DO UPDATE SET doc = excluded.doc`

// HostView is the store as one host's agent may see it: its own two rows.
type HostView struct {
	store   *Store
	hostKey string
}

// ForHost returns the view of the host's agent.
func (s *Store) ForHost(hostKey string) *HostView { return &HostView{store: s, hostKey: hostKey} }

// Record reads the host's record, with the store's time, which is this
// machine's: ErrNotFound. Every read is consistent.
func (v *HostView) Record(ctx context.Context, _ bool) (lifecycle.Record, time.Time, error) {
	r, err := v.store.Instance(ctx, v.hostKey)
	return r, v.store.db.Now(), err
}

// PutReport replaces the host's report, and refuses one of another host.
func (v *HostView) PutReport(ctx context.Context, p lifecycle.Report) error {
	what := "write report of " + v.hostKey
	if p.HostKey != "" && p.HostKey != v.hostKey {
		return fmt.Errorf("%s: it names host %s", what, p.HostKey)
	}
	p.HostKey = v.hostKey
	doc, err := json.Marshal(store.NormalizeReport(p))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return v.store.db.Write(ctx, what, func(c *db.Conn) error {
		_, err := c.Exec(putReport, v.hostKey, string(doc))
		return err
	})
}

// readable reads the rows that a query selects by key and document, and maybe by what orders them. A damaged one
// hides no other: it is left out, and logged once, unless strict makes it an error. read counts it.
func (s *Store) readable(c *db.Conn, what string, k *store.Kind, strict bool, query string, args ...any) (found []store.Row, read int, err error) {
	var key string
	var text sql.RawBytes
	into := []any{&key, &text}
	err = c.Each(query, args, func(rows *sql.Rows) error {
		if read == 0 {
			columns, err := rows.Columns()
			if err != nil {
				return err
			}
			for range columns[len(into):] {
				into = append(into, new(sql.RawBytes))
			}
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		read++
		row := k.New(store.Key{})
		switch err := decode(text, row); {
		case err == nil:
			found = append(found, row)
		case strict:
			return damaged(what+": "+key, err)
		default:
			s.logDamaged(what, key, damaged(what, err))
		}
		return nil
	})
	return found, read, err
}

func (s *Store) logDamaged(what, key string, err error) {
	if _, logged := s.damaged.LoadOrStore(what+" "+key, true); !logged {
		s.db.Logger().Error("leaving out a row that cannot be read: repair it or delete it", logkey.Row, key, logkey.Error, err)
	}
}
