package memory

import (
	"context"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/token"
)

// Create writes a row: ErrExists if its key is taken.
func (s *Store) Create(ctx context.Context, k *store.Kind, row store.Row) error {
	key := k.Key(row)
	return s.write(ctx, "create "+k.Label(key), func() error {
		if _, ok := s.tables[k.ID][key]; ok {
			return lifecycle.ErrExists
		}
		s.put(k, key, k.Copy(row))
		return nil
	})
}

// Update replaces the row whose stored version is one less than the row's: else ErrConflict.
func (s *Store) Update(ctx context.Context, k *store.Kind, row store.Row) error {
	key := k.Key(row)
	return s.write(ctx, "update "+k.Label(key), func() error {
		var version int64 // 0 where there is no row
		old, ok := s.tables[k.ID][key]
		if ok {
			version = *k.Version(old)
		}
		if !ok && !k.Upsert || version != *k.Version(row)-1 {
			return lifecycle.ErrConflict
		}
		s.put(k, key, k.Copy(row))
		return nil
	})
}

// Get reads one row: ErrNotFound.
func (s *Store) Get(ctx context.Context, k *store.Kind, key store.Key) (store.Row, error) {
	return read(ctx, s, "read "+k.Label(key), func() (store.Row, error) {
		row, ok := s.tables[k.ID][key]
		if !ok {
			return nil, lifecycle.ErrNotFound
		}
		return k.Clone(row), nil
	})
}

// GetMany reads many rows, in order of their keys; missing ones are left out.
func (s *Store) GetMany(ctx context.Context, k *store.Kind, keys []store.Key) ([]store.Row, error) {
	return read(ctx, s, "read many of "+k.Name, func() (rows []store.Row, _ error) {
		for _, key := range slices.Compact(slices.SortedFunc(slices.Values(keys), compareKeys)) {
			if row, ok := s.tables[k.ID][key]; ok {
				rows = append(rows, k.Clone(row))
			}
		}
		return rows, nil
	})
}

func compareKeys(a, b store.Key) int { return slices.Compare(a[:], b[:]) }

// List returns a page of the rows that the query asks for.
func (s *Store) List(ctx context.Context, q store.Query) (rows []store.Row, next string, err error) {
	after, err := placeAfter(q)
	if err != nil {
		return nil, "", err
	}
	rows, err = read(ctx, s, "list "+q.Index.Name, func() (rows []store.Row, _ error) {
		var found []entry
		found, next = s.find(q, after)
		for _, e := range found {
			rows = append(rows, q.Index.Kind().Clone(e.row))
		}
		return rows, nil
	})
	return rows, next, err
}

// Keys is List for the keys alone.
func (s *Store) Keys(ctx context.Context, q store.Query) ([]store.Key, error) {
	after, err := placeAfter(q)
	if err != nil {
		return nil, err
	}
	return read(ctx, s, "list "+q.Index.Name, func() (keys []store.Key, _ error) {
		found, _ := s.find(q, after)
		for _, e := range found {
			keys = append(keys, q.Index.Kind().Key(e.row))
		}
		return keys, nil
	})
}

// Count counts the rows of each partition, up to atMost.
func (s *Store) Count(ctx context.Context, q store.Query, atMost int) ([]int, error) {
	return read(ctx, s, "count "+q.Index.Name, func() ([]int, error) {
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
	})
}

// entry is a row with its place in an index, as texts that sort.
type entry struct {
	place []string
	row   store.Row
}

// placeAfter is the place after which a page begins; nil for a first page.
func placeAfter(q store.Query) ([]string, error) {
	parts := len(q.Index.Tail())
	if q.Index.Order != "" {
		parts++
	}
	return token.Parse(q.Index.Name, q.Page.After, parts)
}

// find returns the stored rows of a page after a place, and the token of the next one. It looks at every row of the
// table and sorts only those after the place.
func (s *Store) find(q store.Query, after []string) ([]entry, string) {
	x := q.Index
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
	if q.Newest {
		slices.Reverse(found)
		return found[:min(len(found), q.Size())], ""
	}
	if len(found) <= q.Size() {
		return found, ""
	}
	found = found[:q.Size()]
	return found, token.New(x.Name, found[len(found)-1].place...)
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
func (s *Store) ClaimInstance(ctx context.Context, c lifecycle.Claim) (claimed lifecycle.Record, err error) {
	err = s.write(ctx, "claim instance "+c.HostKey, func() error {
		old, ok := s.tables[store.Instances.ID][store.Key{c.HostKey}].(*lifecycle.Record)
		if !ok || !c.Holds(*old) {
			return lifecycle.ErrConflict
		}
		after, err := old.Claimed(c)
		if err != nil {
			return err
		}
		after.Version++
		s.put(store.Instances.Kind, store.Key{c.HostKey}, store.Instances.Copy(&after))
		claimed = *store.Instances.Copy(&after).(*lifecycle.Record)
		return nil
	})
	return claimed, err
}
