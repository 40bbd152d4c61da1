package db

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"sync/atomic"
	"time"

	sqlite "modernc.org/sqlite"
)

// Conn is one connection with the statements it has prepared. One goroutine uses it at a time.
//
// Its calls take no context: the driver would start a goroutine to watch each,
// and they are short. Waiting, which is not, happens outside.
type Conn struct {
	conn       *sql.Conn
	statements map[string]*sql.Stmt
	rowsRead   *atomic.Int64
}

// Exec runs a statement and returns how many rows it changed.
func (c *Conn) Exec(query string, args ...any) (int64, error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	result, err := s.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Each runs a query and calls row for each row of its answer.
func (c *Conn) Each(query string, args []any, row func(*sql.Rows) error) error {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		c.rowsRead.Add(1)
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Get runs a query for one row and reads its columns, or returns sql.ErrNoRows.
func (c *Conn) Get(query string, args []any, columns ...any) error {
	found := false
	err := c.Each(query, args, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(columns...)
	})
	if err == nil && !found {
		return sql.ErrNoRows
	}
	return err
}

func (c *Conn) prepare(query string) (*sql.Stmt, error) {
	if s, ok := c.statements[query]; ok {
		return s, nil
	}
	s, err := c.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	c.statements[query] = s
	return s, nil
}

// close also closes the statements: those of a sql.Conn do not go with it, and keep the file open.
func (c *Conn) close() error {
	var errs []error
	for _, s := range c.statements {
		errs = append(errs, s.Close())
	}
	if c.conn != nil {
		errs = append(errs, c.conn.Close())
	}
	return errors.Join(errs...)
}

// pagesRead counts lookups in the page cache, hit or miss.
func (c *Conn) pagesRead() (pages int64, err error) {
	err = c.conn.Raw(func(driverConn any) error {
		for _, op := range []sqlite.DBStatusOp{sqlite.DBStatusCacheHit, sqlite.DBStatusCacheMiss} {
			n, _, err := driverConn.(sqlite.DBStatus).Status(op, false)
			if err != nil {
				return err
			}
			pages += int64(n)
		}
		return nil
	})
	return pages, err
}

// Text is s as a column that is NULL when s is empty.
func Text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Time is t as a column that is NULL when t is zero.
func Time(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return Nanos(t)
}

// Nanos is t in nanoseconds since 1970. Times outside the years that an
// integer can hold keep their side, which is all that an index needs.
func Nanos(t time.Time) int64 {
	switch year := t.Year(); {
	case year < 1678:
		return math.MinInt64
	case year > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}
