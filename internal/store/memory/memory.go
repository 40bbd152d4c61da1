// Package memory is the state store in memory: the reference for the databases, and what the simulator builds on.
// It is deterministic: the same calls at the same times give the same answers and the same Dump.
package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
)

// Store keeps the rows of each kind in a map. Rows in the maps are never changed in place, only replaced, and go in
// and out as copies.
type Store struct {
	// Store has the typed methods.
	store.Store

	// Now is the store's clock: the Date of its answers, and what expires.
	// Change it only while nothing calls, such as on a new Clone.
	Now func() time.Time

	mu        sync.Mutex
	tables    []map[store.Key]store.Row // by Kind.ID
	reports   map[string]lifecycle.Report
	events    []lifecycle.Event // in order of id
	lastEvent int64
	seen      map[seenKey]time.Time // until when
	purgedAt  time.Time
	changes   int // of tables
}

var _ store.Backend = (*Store)(nil)

// purgeEvery is how often expired rows are removed, at most.
const purgeEvery = time.Minute

type seenKey struct{ kind, id string }

// New returns an empty store with the clock now.
func New(now func() time.Time) *Store {
	s := &Store{
		Now:     now,
		tables:  make([]map[store.Key]store.Row, len(store.Kinds)),
		reports: map[string]lifecycle.Report{},
		seen:    map[seenKey]time.Time{},
	}
	for i := range s.tables {
		s.tables[i] = map[store.Key]store.Row{}
	}
	s.Store = store.New(s)
	return s
}

// Clone returns an independent copy with the same clock. Since rows are never
// changed in place it costs the maps, not their contents.
func (s *Store) Clone() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Store{
		Now:       s.Now,
		tables:    make([]map[store.Key]store.Row, len(s.tables)),
		reports:   maps.Clone(s.reports),
		events:    slices.Clip(s.events),
		lastEvent: s.lastEvent,
		seen:      maps.Clone(s.seen),
		purgedAt:  s.purgedAt,
		changes:   s.changes,
	}
	for i, table := range s.tables {
		c.tables[i] = maps.Clone(table)
	}
	c.Store = store.New(c)
	return c
}

// Changes counts the changes of rows, those of reports and of the history left out. While it
// stays the same, so does what any read of rows returns.
func (s *Store) Changes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// put stores a row, which is in its normal form.
func (s *Store) put(k *store.Kind, key store.Key, row store.Row) {
	s.tables[k.ID][key] = row
	s.changes++
}

// read makes an operation under the lock, and refuses one whose caller has gone. Its errors name the operation.
func read[T any](ctx context.Context, s *Store, what string, do func() (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, &lifecycle.UnavailableError{What: what, Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	got, err := do()
	if err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return got, nil
}

// write is read for a write, which also removes what has expired.
func (s *Store) write(ctx context.Context, what string, do func() error) error {
	_, err := read(ctx, s, what, func() (struct{}, error) {
		s.purge(s.Now())
		return struct{}{}, do()
	})
	return err
}

func (s *Store) purge(now time.Time) {
	if now.Sub(s.purgedAt) < purgeEvery {
		return
	}
	s.purgedAt = now
	s.changes++
	for _, k := range store.Kinds {
		if k.Expiring {
			maps.DeleteFunc(s.tables[k.ID], func(_ store.Key, r store.Row) bool { return expired(k.Expires(r), now) })
		}
	}
	maps.DeleteFunc(s.seen, func(_ seenKey, until time.Time) bool { return expired(until, now) })
	live := func(e lifecycle.Event) bool { return !expired(e.At.Add(store.EventRetention), now) }
	if i := slices.IndexFunc(s.events, live); i != 0 {
		// A clone may share the array, so the rest moves to one of its own.
		s.events = slices.DeleteFunc(slices.Clone(s.events), func(e lifecycle.Event) bool { return !live(e) })
	}
}

func expired(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// SeeOnce remembers an id of a kind until a time: ErrExists if it is remembered already.
func (s *Store) SeeOnce(ctx context.Context, kind, id string, until time.Time) error {
	return s.write(ctx, "remember "+kind+" "+id, func() error {
		key := seenKey{kind, id}
		if before, ok := s.seen[key]; ok && s.Now().Before(before) {
			return lifecycle.ErrExists
		}
		s.seen[key] = until.Round(0).UTC()
		return nil
	})
}

// Dump returns everything in the store as text, a row a line in a fixed order:
// two stores with equal dumps answer alike. Secrets stand in it as hashes.
func (s *Store) Dump() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.dumpState(&b)
	for _, e := range s.events {
		dumpRow(&b, "event", e)
	}
	return b.String()
}

// Fingerprint returns a hash of all on which decisions depend: Dump without
// the history, which only people read.
func (s *Store) Fingerprint() [sha256.Size]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.dumpState(&b)
	return sha256.Sum256([]byte(b.String()))
}

func (s *Store) dumpState(b *strings.Builder) {
	for _, k := range store.Kinds {
		for _, key := range slices.SortedFunc(maps.Keys(s.tables[k.ID]), compareKeys) {
			dumpRow(b, k.Name, redacted(k.Copy(s.tables[k.ID][key])))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.reports)) {
		dumpRow(b, "report", s.reports[key])
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.seen), compareSeenKeys) {
		dumpRow(b, "seen", []any{key.kind, key.id, s.seen[key]})
	}
}

func compareSeenKeys(a, b seenKey) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
}

func dumpRow(b *strings.Builder, table string, row any) {
	// Rows are plain data with years that RFC 3339 knows: they marshal.
	text, _ := json.Marshal(row)
	fmt.Fprintf(b, "%s %s\n", table, text)
}

// redacted returns the row, which is a copy, with hashes for the secrets in it.
func redacted(row store.Row) store.Row {
	r, ok := row.(*lifecycle.Record)
	if ok && r.Registration != nil {
		r.Registration.Secret = hashed(r.Registration.Secret)
	}
	if ok && r.Mirror != nil {
		r.Mirror.Token = hashed(r.Mirror.Token)
	}
	return row
}

func hashed(s lifecycle.Secret) lifecycle.Secret {
	return lifecycle.Secret(fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(s.Reveal())))[:23])
}
