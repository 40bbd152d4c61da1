package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/token"
)

// Create writes a row: ErrExists if its key is taken.
func (s *Store) Create(ctx context.Context, k *store.Kind, row store.Row) error {
	key := k.Key(row)
	what := "create " + k.Label(key)
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return err
	}
	defer end()
	if _, ok := s.tables[k.ID][key]; ok {
		return fmt.Errorf("%s: %w", what, lifecycle.ErrExists)
	}
	s.put(k, key, k.Copy(row))
	return nil
}

// Update replaces the row whose stored version is one less than the row's: else ErrConflict.
func (s *Store) Update(ctx context.Context, k *store.Kind, row store.Row) error {
	key := k.Key(row)
	what := "update " + k.Label(key)
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return err
	}
	defer end()
	var version int64 // 0 where there is no row
	old, ok := s.tables[k.ID][key]
	if ok {
		version = *k.Version(old)
	}
	if !ok && !k.Upsert || version != *k.Version(row)-1 {
		return lost(what)
	}
	s.put(k, key, k.Copy(row))
	return nil
}

// Get reads one row: ErrNotFound.
func (s *Store) Get(ctx context.Context, k *store.Kind, key store.Key) (store.Row, error) {
	what := "read " + k.Label(key)
	end, err := s.begin(ctx, what)
	if err != nil {
		return nil, err
	}
	defer end()
	row, ok := s.tables[k.ID][key]
	if !ok {
		return nil, fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
	}
	return k.Copy(row), nil
}

// GetMany reads many rows, in order of their keys; missing ones are left out.
func (s *Store) GetMany(ctx context.Context, k *store.Kind, keys []store.Key) ([]store.Row, error) {
	end, err := s.begin(ctx, "read many of "+k.Name)
	if err != nil {
		return nil, err
	}
	defer end()
	var rows []store.Row
	for _, key := range slices.Compact(slices.SortedFunc(slices.Values(keys), compareKeys)) {
		if row, ok := s.tables[k.ID][key]; ok {
			rows = append(rows, k.Copy(row))
		}
	}
	return rows, nil
}

func compareKeys(a, b store.Key) int { return slices.Compare(a[:], b[:]) }

// List returns a page of the rows that the query asks for.
func (s *Store) List(ctx context.Context, q store.Query) ([]store.Row, string, error) {
	end, err := s.begin(ctx, "list "+q.Index.Name)
	if err != nil {
		return nil, "", err
	}
	defer end()
	found, next, err := s.find(q)
	if err != nil {
		return nil, "", err
	}
	rows := make([]store.Row, len(found))
	for i, e := range found {
		rows[i] = q.Index.Kind().Copy(e.row)
	}
	return rows, next, nil
}

// Keys is List for the keys alone.
func (s *Store) Keys(ctx context.Context, q store.Query) ([]store.Key, error) {
	end, err := s.begin(ctx, "list "+q.Index.Name)
	if err != nil {
		return nil, err
	}
	defer end()
	found, _, err := s.find(q)
	var keys []store.Key
	for _, e := range found {
		keys = append(keys, q.Index.Kind().Key(e.row))
	}
	return keys, err
}

// Count counts the rows of each partition, up to atMost.
func (s *Store) Count(ctx context.Context, q store.Query, atMost int) ([]int, error) {
	end, err := s.begin(ctx, "count "+q.Index.Name)
	if err != nil {
		return nil, err
	}
	defer end()
	counts := make([]int, len(q.Partitions))
	for i, partition := range q.Partitions {
		of := q
		of.Partitions = [][]string{partition}
		for _, row := range s.tables[q.Index.Kind().ID] {
			if of.Matches(row) {
				counts[i]++
			}
		}
		counts[i] = min(counts[i], atMost)
	}
	return counts, nil
}

// entry is a row with its place in an index, as texts that sort.
type entry struct {
	place []string
	row   store.Row
}

// find returns the stored rows of a page and the token of the next one. It looks at every row of the table and sorts
// only those after the token.
func (s *Store) find(q store.Query) ([]entry, string, error) {
	x := q.Index
	parts := len(x.Tail())
	if x.Order != "" {
		parts++
	}
	after, err := token.Parse(x.Name, q.Page.After, parts)
	if err != nil {
		return nil, "", err
	}
	var found []entry
	for _, row := range s.tables[x.Kind().ID] {
		if !q.Matches(row) {
			continue
		}
		if place := placeOf(x, row); slices.Compare(place, after) > 0 {
			found = append(found, entry{place, row})
		}
	}
	slices.SortFunc(found, func(a, b entry) int { return slices.Compare(a.place, b.place) })
	if len(found) <= q.Size() {
		return found, "", nil
	}
	found = found[:q.Size()]
	return found, token.New(x.Name, found[len(found)-1].place...), nil
}

func placeOf(x *store.Index, row store.Row) []string {
	var place []string
	if x.Order != "" {
		place = append(place, sortable(x.At(row)))
	}
	key := x.Kind().Key(row)
	for _, part := range x.Tail() {
		place = append(place, key[part])
	}
	return place
}

// sortable is a time as text of fixed width, so that it sorts like the time.
func sortable(t time.Time) string { return t.Format("2006-01-02T15:04:05.000000000") }

// ClaimInstance takes a pooled host if c.Holds for its record: else ErrConflict.
func (s *Store) ClaimInstance(ctx context.Context, c lifecycle.Claim) (lifecycle.Record, error) {
	what := "claim instance " + c.HostKey
	end, err := s.beginWrite(ctx, what)
	if err != nil {
		return lifecycle.Record{}, err
	}
	defer end()
	old, ok := s.tables[store.Instances.ID][store.Key{c.HostKey}].(*lifecycle.Record)
	if !ok || !c.Holds(*old) {
		return lifecycle.Record{}, lost(what)
	}
	claimed, err := old.Claimed(c)
	if err != nil {
		return lifecycle.Record{}, fmt.Errorf("%s: %w", what, err)
	}
	claimed.Version++
	s.put(store.Instances.Kind, store.Key{c.HostKey}, store.Instances.Copy(&claimed))
	return *store.Instances.Copy(&claimed).(*lifecycle.Record), nil
}
