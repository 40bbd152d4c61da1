package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

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
// log into the file and removes it.
func (d *DB) disconnect() error {
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
