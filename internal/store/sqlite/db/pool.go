package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	sqlite "modernc.org/sqlite"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const (
	// readers is how many reads run at once. They are short and do not wait
	// for writes, so more than the cores of a small machine gain nothing.
	readers = 4
	// The page caches, in KiB for each connection. The operating system caches
	// the file as well; these only save the copies from there.
	cacheKiB      = 8 << 10
	lightCacheKiB = 256
)

// connect opens the connections: one for an agent, else a writer, readers and a checkpointer.
func (d *DB) connect(light bool) error {
	cache, autoCheckpoint := cacheKiB, 0
	if light {
		cache, autoCheckpoint = lightCacheKiB, lightCheckpoint
	}
	first, err := d.firstConn(dsn(d.path, cache, autoCheckpoint))
	if err != nil {
		return err
	}
	if err := d.prepare(first, d.checkOwner, walMode, d.makeSchema); err != nil {
		return err
	}
	d.writer = make(chan *Conn, 1)
	d.writer <- first
	if light {
		d.readers = d.writer
		return nil
	}
	d.readers = make(chan *Conn, readers)
	for range readers {
		c, err := d.addConn()
		if err != nil {
			return err
		}
		d.readers <- c
	}
	checkpointer, err := d.addConn()
	if err != nil {
		return err
	}
	d.purge = &purge{}
	d.loops.Go(func() { d.checkpointLoop(checkpointer) })
	return nil
}

// connectReader opens the one connection of who only looks.
func (d *DB) connectReader() error {
	only, err := d.firstConn(readOnlyDSN(d.path))
	if err != nil {
		return err
	}
	if err := d.prepare(only, d.checkOwner, d.checkVersion); err != nil {
		return err
	}
	d.writer = make(chan *Conn, 1)
	d.writer <- only
	d.readers = d.writer
	return nil
}

func (d *DB) firstConn(dsn string) (*Conn, error) {
	connector, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", d.path, err)
	}
	d.pool = sql.OpenDB(connector)
	return d.addConn()
}

func (d *DB) addConn() (*Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.wait)
	defer cancel()
	c := &Conn{statements: map[string]*sql.Stmt{}, rowsRead: &d.rowsRead}
	d.conns = append(d.conns, c)
	err := d.retry(ctx, func() (err error) {
		c.conn, err = d.pool.Conn(context.Background())
		return err
	})
	if err != nil {
		return nil, d.fault("open", err)
	}
	return c, nil
}

// disconnect closes every connection. The last one of all processes copies the
// log into the file and removes it. So where the log is damaged they stay open
// until the process ends.
func (d *DB) disconnect() error {
	if d.damaged.Load() {
		return nil
	}
	var errs []error
	for _, c := range d.conns {
		errs = append(errs, c.close())
	}
	if d.pool != nil {
		errs = append(errs, d.pool.Close())
	}
	return errors.Join(errs...)
}

// PagesRead is how many times queries have looked at a page of the file since Open, from a cache or not: what
// they cost, whatever they returned. It waits until no connection reads.
func (d *DB) PagesRead(ctx context.Context) (int64, error) {
	var held []*Conn
	defer func() {
		for _, c := range held {
			d.readers <- c
		}
	}()
	var pages int64
	for range cap(d.readers) {
		c, err := d.borrow(ctx, d.readers, "count pages")
		if err != nil {
			return 0, err
		}
		held = append(held, c)
		n, err := c.pagesRead()
		if err != nil {
			return 0, d.fault("count pages", err)
		}
		pages += n
	}
	return pages, nil
}

// Read runs fn on a connection that sees every commit so far. fn may be called
// again when another process was in the way, so it must start afresh.
func (d *DB) Read(ctx context.Context, what string, fn func(*Conn) error) error {
	c, err := d.borrow(ctx, d.readers, what)
	if err != nil {
		return err
	}
	defer func() { d.readers <- c }()
	ctx, cancel := context.WithTimeout(ctx, d.wait)
	defer cancel()
	return d.fault(what, d.retry(ctx, func() error { return fn(c) }))
}

func (d *DB) borrow(ctx context.Context, free chan *Conn, what string) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, &lifecycle.UnavailableError{What: what, Err: err}
	}
	select {
	case <-d.closing:
		return nil, d.errClosed(what)
	default:
	}
	if d.damaged.Load() {
		return nil, d.errDamagedLog(what)
	}
	select {
	case c := <-free:
		return c, nil
	case <-ctx.Done():
		return nil, &lifecycle.UnavailableError{What: what, Err: ctx.Err()}
	case <-d.closing:
		return nil, d.errClosed(what)
	}
}

func (d *DB) errClosed(what string) error {
	return &lifecycle.UnavailableError{What: what, Err: fmt.Errorf("database %s is closed", d.path)}
}

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
