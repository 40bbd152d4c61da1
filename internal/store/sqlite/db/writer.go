package db

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/retry"
	"github.com/remuda-ci/remuda/internal/together"
)

// WritesAtOnce is how many writes share a commit, at most: it bounds how long the
// first of them waits for the others.
const WritesAtOnce = 128

// write is one caller's change on its way through the writer.
type write struct {
	what string
	fn   func(*Conn) error
	// stage settles the race between the writer that begins and the caller that gives up.
	stage atomic.Int32
	err   error         // the answer, once done is closed
	done  chan struct{} // closed after the commit
}

const (
	stageWaiting = iota
	stageBegun
	stageAbandoned
)

// Write runs fn in a transaction, which it may share with others that came at the same time: they are
// committed together and then all answered. fn returns errors of its own before its first change, and they do
// not affect the others. It may be called again after a roll-back, so it must start from the beginning; what
// it sets outside is good only when Write returns nil.
//
// A caller whose context ends while waiting gets an ErrUnavailable: a write
// that has begun may take effect, one that has not never will.
func (d *DB) Write(ctx context.Context, what string, fn func(*Conn) error) error {
	if err := ctx.Err(); err != nil {
		return &lifecycle.UnavailableError{What: what, Err: err}
	}
	w := &write{what: what, fn: fn, done: make(chan struct{})}
	if g := together.Of(ctx); g != nil {
		g.Hold(w, d.submit)
	} else {
		select {
		case d.writes <- []*write{w}:
		case <-ctx.Done():
			return &lifecycle.UnavailableError{What: what, Err: ctx.Err()}
		case <-d.closing:
			return d.errClosed(what)
		}
	}
	select {
	case <-w.done:
		return d.fault(what, w.err)
	case <-ctx.Done():
		w.stage.CompareAndSwap(stageWaiting, stageAbandoned)
		return &lifecycle.UnavailableError{What: what, Err: ctx.Err()}
	}
}

// submit gives the writer the writes of a group, which share a commit. It does not wait for the writer, as the members of the group would.
func (d *DB) submit(held []any) {
	batch := make([]*write, len(held))
	for i, w := range held {
		batch[i] = w.(*write)
	}
	go func() {
		select {
		case d.writes <- batch:
		case <-d.closing:
			for _, w := range batch {
				w.answer(d.errClosed(w.what))
			}
		}
	}()
}

// writeLoop is the writer: it takes what waits, commits it and answers it. A lone write is not made to wait
// for company; under load, company gathers while the batch before is being committed.
func (d *DB) writeLoop() {
	for {
		select {
		case batch := <-d.writes:
			d.commit(d.gather(batch))
		case <-d.closing:
			return
		}
	}
}

func (d *DB) gather(batch []*write) []*write {
	for had := 0; had < len(batch) && len(batch) < WritesAtOnce; {
		had = len(batch)
		runtime.Gosched() // who is about to write may do so
		batch = d.take(batch)
	}
	return batch
}

// take adds the writes that wait already.
func (d *DB) take(batch []*write) []*write {
	for len(batch) < WritesAtOnce {
		select {
		case more := <-d.writes:
			batch = append(batch, more...)
		default:
			return batch
		}
	}
	return batch
}

// commit runs a batch in one transaction. When a statement of one write fails, all are rolled back and each
// runs again in a transaction of its own, so that only the culprit gets the error.
func (d *DB) commit(batch []*write) {
	c := <-d.writer
	defer func() { d.writer <- c }()

	if d.damaged.Load() {
		for _, w := range batch {
			w.answer(d.errDamagedLog(w.what))
		}
		return
	}
	culprit, err := d.transact(c, batch)
	if culprit != nil && len(batch) > 1 {
		for _, w := range batch {
			_, err := d.transact(c, []*write{w})
			w.answer(err)
		}
		return
	}
	for _, w := range batch {
		w.answer(err)
	}
	if err == nil && d.purge != nil {
		d.wrote(len(batch))
		if err := d.purge.step(d, c); err != nil {
			d.logger.Warn("expired rows not cleared", logkey.File, d.path, logkey.Error, err)
		}
	}
}

// transact runs writes in one transaction. An error means that nothing was changed, or, where the commit
// itself failed, that it is not known. culprit is the write whose statement failed.
func (d *DB) transact(c *Conn, batch []*write) (culprit *write, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.wait)
	defer cancel()
	begin := func() error {
		_, err := c.Exec("BEGIN IMMEDIATE")
		return err
	}
	if err := d.retry(ctx, begin); err != nil {
		return nil, err
	}
	for _, w := range batch {
		if w.err = w.run(c); isFault(w.err) {
			return w, errors.Join(w.err, rollback(c))
		}
	}
	if _, err := c.Exec("COMMIT"); err != nil {
		return nil, errors.Join(err, rollback(c))
	}
	d.commits.Add(1)
	return nil, nil
}

// rollback ends a transaction that failed. SQLite has ended it already after some faults, such as a full disk;
// its complaint about that, of a mistake in the use of SQL, says nothing.
func rollback(c *Conn) error {
	_, err := c.Exec("ROLLBACK")
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code() == sqlite3.SQLITE_ERROR {
		return nil
	}
	return err
}

func (w *write) run(c *Conn) error {
	if !w.stage.CompareAndSwap(stageWaiting, stageBegun) && w.stage.Load() == stageAbandoned {
		return context.Canceled // the caller has gone
	}
	return w.fn(c)
}

// answer tells the caller how it ended: the transaction's error before its own.
func (w *write) answer(err error) {
	if err != nil {
		w.err = err
	}
	close(w.done)
}

// retry repeats fn while another process has the file locked, until ctx ends. SQLite's own waiting grows to
// 100 ms between looks, far beyond what its transactions take, so this looks more often.
func (d *DB) retry(ctx context.Context, fn func() error) error {
	for {
		err := fn()
		if !isBusy(err) {
			return err
		}
		if retry.Sleep(ctx, jitter(busyPause)) != nil {
			return err
		}
	}
}
