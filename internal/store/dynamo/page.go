package dynamo

import (
	"context"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// maxPage is how many rows a page has at most, whatever is asked for: a page is
// in memory as a whole.
const maxPage = 1000

func sizeOf(of lifecycle.PageOf) int { return min(of.Size(), maxPage) }

// read says how a listing's rows are read.
type read[T any] struct {
	query
	// consistent: the rows are decided on. An index may lag, so rows that are
	// read may be in it no more; in says which still are.
	consistent bool
	in         func(T) bool
	// sound makes a row of an item, or tells that it is none.
	sound func(item) (T, bool)
}

// list makes a page: keys by the index, then the rows. One that has no row left
// is followed by the next, until there is a row or no more.
func list[T any](ctx context.Context, s *Store, r read[T], of lifecycle.PageOf) (lifecycle.Page[T], error) {
	what := "list " + r.listing.name
	after, err := r.listing.after(of.After)
	if err == nil {
		err = begin(ctx, what)
	}
	if err != nil {
		return lifecycle.Page[T]{}, err
	}
	size := sizeOf(of)
	r.after, r.count = after, size+1
	for {
		found, err := s.entries(ctx, what, r.query)
		if err != nil {
			return lifecycle.Page[T]{}, err
		}
		var page lifecycle.Page[T]
		if len(found) > size {
			found = found[:size]
			r.after = found[size-1].place
			page.Next = r.listing.token(r.after)
		}
		if page.Items, err = rows(ctx, s, what, r, found); err != nil {
			return lifecycle.Page[T]{}, err
		}
		if len(page.Items) > 0 || page.Next == "" {
			return page, nil
		}
	}
}

// rows are the rows of entries, in their order.
func rows[T any](ctx context.Context, s *Store, what string, r read[T], entries []entry) ([]T, error) {
	keys := make([]item, len(entries))
	for i, e := range entries {
		keys[i] = e.row
	}
	items, err := s.batchGet(ctx, what, r.listing.table.name, keys, r.consistent)
	if err != nil {
		return nil, err
	}
	byKey := make(map[string]item, len(items))
	for _, it := range items {
		byKey[r.listing.keyOf(it)] = it
	}
	var found []T
	for _, e := range entries {
		it, ok := byKey[e.key]
		if !ok {
			continue
		}
		if row, ok := r.sound(it); ok && r.in(row) {
			found = append(found, row)
		}
	}
	return found, nil
}
