package store

import (
	"context"
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Store has the typed methods of all kinds over a backend. Its methods are those of the ports that the use cases
// declare; see there for what each promises.
type Store struct {
	backend Backend
	// observe, unless nil, is called with the name and the outcome of every call.
	observe func(op string, err error)
}

// New returns the store over a backend.
func New(backend Backend) Store { return Store{backend: backend} }

// Observed is the store with an observer, which is called after every call with the call's name, such as
// "claim_instance", and its outcome.
func (s Store) Observed(observe func(op string, err error)) Store {
	s.observe = observe
	return s
}

// observed is deferred, and so reads what the call has come to.
func (s Store) observed(verb, name string, err *error) {
	if s.observe != nil {
		s.observe(verb+name, *err)
	}
}

func create[T any](ctx context.Context, s Store, k KindOf[T], r T) (err error) {
	defer s.observed("create_", k.Name, &err)
	k.normalize(&r)
	*k.Version(&r) = 1
	return s.backend.Create(ctx, k.Kind, &r)
}

// update returns the row as stored.
func update[T any](ctx context.Context, s Store, k KindOf[T], r T) (T, error) {
	return updateAs(ctx, s, "update_", k, r)
}

// updateAs is update as an operation of another name.
func updateAs[T any](ctx context.Context, s Store, verb string, k KindOf[T], r T) (_ T, err error) {
	defer s.observed(verb, k.Name, &err)
	k.normalize(&r)
	*k.Version(&r)++
	if err := s.backend.Update(ctx, k.Kind, &r); err != nil {
		var none T
		return none, err
	}
	return r, nil
}

func get[T any](ctx context.Context, s Store, k KindOf[T], key Key) (r T, err error) {
	defer s.observed("", k.Name, &err)
	row, err := s.backend.Get(ctx, k.Kind, key)
	switch {
	case err == nil:
		return *row.(*T), nil
	case k.spec.Blank != nil && errors.Is(err, lifecycle.ErrNotFound):
		return k.spec.Blank(key), nil
	}
	return r, err
}

func getMany[T any](ctx context.Context, s Store, op string, k KindOf[T], keys []Key) (_ []T, err error) {
	defer s.observed("", op, &err)
	rows, err := s.backend.GetMany(ctx, k.Kind, keys)
	if err != nil {
		return nil, err
	}
	return typed[T](rows), nil
}

func list[T any](ctx context.Context, s Store, _ KindOf[T], q Query) (page lifecycle.Page[T], err error) {
	defer s.observed("", q.Op, &err)
	rows, next, err := s.backend.List(ctx, q)
	if err != nil {
		return page, err
	}
	return lifecycle.Page[T]{Items: typed[T](rows), Next: next}, nil
}

// listAll is list for all rows of the partitions.
func listAll[T any](ctx context.Context, s Store, k KindOf[T], q Query) ([]T, error) {
	q.All = true
	page, err := list(ctx, s, k, q)
	return page.Items, err
}

// listDue lists the rows that were due at now or before, the longest due first.
func listDue[T any](ctx context.Context, s Store, k KindOf[T], op string, x *Index, now time.Time, page lifecycle.PageOf) (lifecycle.Page[T], error) {
	return list(ctx, s, k, Query{Op: op, Index: x, Partitions: whole, UpTo: now, Page: page})
}

// whole is the one partition of an index that has no By.
var whole = [][]string{{}}

func typed[T any](rows []Row) []T {
	if len(rows) == 0 {
		return nil
	}
	items := make([]T, len(rows))
	for i, row := range rows {
		items[i] = *row.(*T)
	}
	return items
}
