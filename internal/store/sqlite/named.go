package sqlite

import (
	"context"
	"errors"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// register is the statements of a table of few rows by name: each is a document of
// a version, and written under the one before.
type register struct{ sel, insert, update string }

func registerOf(table, name string) register {
	return register{
		sel:    `SELECT doc FROM ` + table + ` WHERE ` + name + ` = ?1`,
		insert: `INSERT INTO ` + table + ` (doc, version, ` + name + `) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING`,
		update: `UPDATE ` + table + ` SET doc = ?1, version = ?2 WHERE ` + name + ` = ?3 AND version = ?2 - 1`,
	}
}

var (
	turns    = registerOf("turns", "pool")
	guards   = registerOf("guards", "name")
	services = registerOf("services", "name")
)

// named reads the row of a name; where there is none it is none.
func named[T any](ctx context.Context, s *Store, from register, what, name string, none T) (v T, err error) {
	err = s.db.Read(ctx, what, func(c *db.Conn) (err error) {
		v, err = one[T](c, what, from.sel, name)
		return err
	})
	if errors.Is(err, lifecycle.ErrNotFound) {
		return none, nil
	}
	return v, err
}

// putNamed writes the row of a name, whose stored version must be the one before
// version (1: there is none), and returns it: else ErrLost.
func putNamed[T any](ctx context.Context, s *Store, in register, what, name string, version int64, v T) (T, error) {
	var none T
	query := in.update
	if version == 1 {
		query = in.insert
	}
	doc, err := document(what, v)
	if err == nil {
		err = s.change(ctx, what, lifecycle.ErrConflict, query, doc, version, name)
	}
	if err != nil {
		return none, err
	}
	return v, nil
}
