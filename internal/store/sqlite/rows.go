package sqlite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// document is the JSON of a row.
func document(what string, row any) (string, error) {
	text, err := json.Marshal(row)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return string(text), nil
}

// one reads the row whose document a query selects: ErrNotFound.
func one[T any](c *db.Conn, what, query string, args ...any) (T, error) {
	rows, err := many[T](c, what, query, args...)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
	}
	if err != nil {
		var none T
		return none, err
	}
	return rows[0], nil
}

// many reads the rows whose documents a query selects.
func many[T any](c *db.Conn, what, query string, args ...any) ([]T, error) {
	var found []T
	var text sql.RawBytes
	err := c.Each(query, args, func(rows *sql.Rows) error {
		if err := rows.Scan(&text); err != nil {
			return err
		}
		var row T
		if err := json.Unmarshal(text, &row); err != nil {
			return damaged(what, err)
		}
		found = append(found, row)
		return nil
	})
	return found, err
}

// sound reads the rows that a query selects by key and document, and maybe by what
// orders them. One that is damaged hides no other: it is left out, and told of once.
// read counts it.
func sound[T any](s *Store, c *db.Conn, what, query string, args ...any) (found []T, read int, err error) {
	var key string
	var text sql.RawBytes
	err = c.Each(query, args, func(rows *sql.Rows) error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		into := []any{&key, &text}
		for range columns[len(into):] {
			into = append(into, new(sql.RawBytes))
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		read++
		var row T
		if err := json.Unmarshal(text, &row); err != nil {
			s.tellDamaged(what, key, damaged(what, err))
			return nil
		}
		found = append(found, row)
		return nil
	})
	return found, read, err
}

func (s *Store) tellDamaged(what, key string, err error) {
	if _, told := s.damaged.LoadOrStore(what+" "+key, true); !told {
		s.db.Logger().Error("leaving out a row that cannot be read: repair it or delete it", "row", key, "error", err)
	}
}

// damaged tells where a document stops being one of ours, and nothing of what
// is in it, which may be a secret.
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
