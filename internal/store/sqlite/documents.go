package sqlite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// readable reads the rows that a query selects by key and document, and maybe by what orders them. A damaged one
// hides no other: it is left out, and logged once, unless strict makes it an error. read counts it.
func (s *Store) readable(c *db.Conn, what string, k *store.Kind, strict bool, query string, args ...any) (found []store.Row, read int, err error) {
	var key string
	var text sql.RawBytes
	into := []any{&key, &text}
	err = c.Each(query, args, func(rows *sql.Rows) error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		for range columns[len(into):] {
			into = append(into, new(sql.RawBytes))
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		read++
		row := k.New(store.Key{})
		switch err := json.Unmarshal(text, row); {
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

// damaged says where a document stops being one of ours, and nothing of what is in it, which may be a secret.
func damaged(what string, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: damaged document: no JSON from byte %d on", what, syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("%s: damaged document: wrong type in field %s", what, kind.Field)
	}
	return fmt.Errorf("%s: damaged document", what)
}
