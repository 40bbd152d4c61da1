package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/token"
)

// Create writes a row: ErrExists if its key is taken.
func (s *Store) Create(ctx context.Context, k *store.Kind, row store.Row) error {
	return s.put(ctx, "create ", k, row, statementsOf[k.ID].insert, lifecycle.ErrExists)
}

// Update replaces the row whose stored version is one less than the row's: else ErrConflict.
func (s *Store) Update(ctx context.Context, k *store.Kind, row store.Row) error {
	query := statementsOf[k.ID].update
	if k.Upsert && *k.Version(row) == 1 {
		query = statementsOf[k.ID].insert
	}
	return s.put(ctx, "update ", k, row, query, lifecycle.ErrConflict)
}

func (s *Store) put(ctx context.Context, verb string, k *store.Kind, row store.Row, query string, otherwise error) error {
	what := verb + k.Label(k.Key(row))
	args, err := arguments(what, k, row)
	if err != nil {
		return err
	}
	return s.change(ctx, what, otherwise, query, args...)
}

// ClaimInstance takes a pooled host if c.Holds for its record: else ErrConflict. The caller does not read,
// but the transaction does: no other write comes between its look at the condition and its change.
func (s *Store) ClaimInstance(ctx context.Context, claim lifecycle.Claim) (lifecycle.Record, error) {
	what := "claim instance " + claim.HostKey
	var claimed lifecycle.Record
	err := s.db.Write(ctx, what, func(c *db.Conn) error {
		row, err := one(c, what, store.Instances.Kind, store.Key{claim.HostKey})
		if err != nil {
			return err
		}
		stored, _ := row.(*lifecycle.Record)
		if stored == nil || !claim.Holds(*stored) {
			return lost(what)
		}
		if claimed, err = stored.Claimed(claim); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		claimed = *store.Instances.Copy(&claimed).(*lifecycle.Record)
		claimed.Version++
		args, err := arguments(what, store.Instances.Kind, &claimed)
		if err != nil {
			return err
		}
		n, err := c.Exec(statementsOf[store.Instances.ID].update, args...)
		if err == nil && n == 0 {
			err = lost(what)
		}
		return err
	})
	if err != nil {
		return lifecycle.Record{}, err
	}
	return claimed, nil
}

// Get reads one row: ErrNotFound.
func (s *Store) Get(ctx context.Context, k *store.Kind, key store.Key) (row store.Row, err error) {
	what := "read " + k.Label(key)
	err = s.db.Read(ctx, what, func(c *db.Conn) (err error) {
		if row, err = one(c, what, k, key); err == nil && row == nil {
			err = fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
		}
		return err
	})
	return row, err
}

// one reads a row; nil if there is none.
func one(c *db.Conn, what string, k *store.Kind, key store.Key) (row store.Row, err error) {
	var text sql.RawBytes
	err = c.Each(statementsOf[k.ID].selectOne, keyArguments(k, key), func(rows *sql.Rows) error {
		if err := rows.Scan(&text); err != nil {
			return err
		}
		row = k.New(key)
		if err := decode(text, row); err != nil {
			return damaged(what, err)
		}
		return nil
	})
	return row, err
}

// GetMany reads many rows, in order of their keys; missing and damaged ones are left out.
func (s *Store) GetMany(ctx context.Context, k *store.Kind, keys []store.Key) (found []store.Row, err error) {
	what := "read many of " + k.Name
	if len(k.KeyColumns) > 1 {
		return nil, fmt.Errorf("%s: their keys have several parts", what)
	}
	args := make([]any, len(keys))
	for i, key := range keys {
		args[i] = keyArguments(k, key)[0]
	}
	texts, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	err = s.db.Read(ctx, what, func(c *db.Conn) (err error) {
		found, _, err = s.readable(c, what, k, false, statementsOf[k.ID].selectMany, string(texts))
		return err
	})
	return found, err
}

// List reads a page of an index. It reads the rows of the page and no others.
func (s *Store) List(ctx context.Context, q store.Query) (page []store.Row, next string, err error) {
	after, err := placeAfter(q)
	if err != nil || len(q.Partitions) == 0 {
		return nil, "", err
	}
	k, what := q.Index.Kind(), "list "+q.Index.Name
	limit := q.Size()
	if !q.Newest { // one row more than a page holds tells whether it is the last
		limit++
	}
	l := selecting(statementsOf[k.ID].key+", doc", q, after, limit)
	err = s.db.Read(ctx, what, func(c *db.Conn) error {
		found, read, err := s.readable(c, what, k, q.Strict, l.text.String(), l.args...)
		if err == nil {
			page, next, err = cut(q, found, read)
		}
		return err
	})
	return page, next, err
}

// cut makes a page of the rows that List read, in all as many as read says. A page goes on after its last readable
// row, so it needs one.
func cut(q store.Query, found []store.Row, read int) (page []store.Row, next string, err error) {
	page = found[:min(len(found), q.Size())]
	switch {
	case read <= q.Size() || q.Newest:
		return page, "", nil
	case len(page) == 0:
		return nil, "", fmt.Errorf("list %s: %d damaged documents in a row", q.Index.Name, read)
	}
	return page, placeToken(q.Index, page[len(page)-1]), nil
}

// Keys is List for the keys alone. It reads the index and no rows.
func (s *Store) Keys(ctx context.Context, q store.Query) (keys []store.Key, err error) {
	after, err := placeAfter(q)
	if err != nil {
		return nil, err
	}
	k, what := q.Index.Kind(), "list "+q.Index.Name
	l := selecting(joined(k.KeyColumns), q, after, q.Size())
	err = s.db.Read(ctx, what, func(c *db.Conn) error {
		keys = nil
		return c.Each(l.text.String(), l.args, func(rows *sql.Rows) error {
			var key store.Key
			into := make([]any, len(k.KeyColumns))
			for i := range into {
				into[i] = &key[i]
			}
			err := rows.Scan(into...)
			keys = append(keys, key)
			return err
		})
	})
	return keys, err
}

// Count counts the rows of each partition, up to atMost. It reads no more than it counts, and only the index.
func (s *Store) Count(ctx context.Context, q store.Query, atMost int) ([]int, error) {
	counts := make([]int, len(q.Partitions))
	err := s.db.Read(ctx, "count "+q.Index.Name, func(c *db.Conn) error {
		clear(counts)
		for i, partition := range q.Partitions {
			l := counting(q, partition, atMost)
			err := c.Each(l.text.String(), l.args, func(*sql.Rows) error { counts[i]++; return nil })
			if err != nil {
				return err
			}
		}
		return nil
	})
	return counts, err
}

// placeAfter is the place in an index, as the values of its order, after which a page begins: for a first page one
// before every row.
func placeAfter(q store.Query) (place []any, err error) {
	x := q.Index
	names := order(x)
	parts, err := token.Parse(x.Name, q.Page.After, len(names))
	if err != nil {
		return nil, err
	}
	for i := range names {
		number := i == 0 && x.Order != "" || x.Kind().NumberKey
		switch {
		case parts == nil && number:
			place = append(place, int64(math.MinInt64))
		case parts == nil:
			place = append(place, "")
		case number:
			n, err := strconv.ParseInt(parts[i], 10, 64)
			if err != nil {
				return nil, token.Bad(x.Name)
			}
			place = append(place, n)
		default:
			place = append(place, parts[i])
		}
	}
	return place, nil
}

// placeToken is the token of the page after the row.
func placeToken(x *store.Index, row store.Row) string {
	var place []string
	if x.Order != "" {
		place = append(place, strconv.FormatInt(db.Nanos(x.At(row)), 10))
	}
	key := x.Kind().Key(row)
	for _, part := range x.Tail() {
		place = append(place, key[part])
	}
	return token.New(x.Name, place...)
}
