// Package db is the one SQLite file of the embedded default: its schema, its connections, and writes that
// share their commits. Several processes use the file at once: every controld and, through Options.Light, every
// agentd of the machine.
package db

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Options say how to open the file. The zero value is what controld uses.
type Options struct {
	// Now is the clock of the store; time.Now if nil.
	Now func() time.Time
	// Logger gets the rows that cannot be read; none if nil.
	Logger hclog.Logger
	// Wait bounds how long a call waits for another process that has the file locked; 5 s if zero.
	// Transactions last about a millisecond, so a longer wait means that a process hangs in one.
	Wait time.Duration
	// Light is for an agent, which does two reads a second: one connection
	// with a small cache, and the clearing of expired rows left to controld.
	Light bool
	// ReadOnly is for commands that only read: the file is not made, its schema not
	// brought up to date, and every write fails. It needs no right to write. Beside a
	// file that no process has open SQLite leaves an empty -wal and a -shm file.
	ReadOnly bool
}

const defaultWait = 5 * time.Second

// DB is the open file.
type DB struct {
	path   string
	now    func() time.Time
	logger hclog.Logger
	wait   time.Duration

	pool  *sql.DB
	conns []*Conn
	// readers and writer hold the connections that are free. In a light DB
	// they are one channel with one connection.
	readers chan *Conn
	writer  chan *Conn

	writes chan []*write
	purge  *purge // nil when that is left to others

	unsettled     int // writes since checkpointDue; the writer's own
	checkpointDue chan struct{}

	closing   chan struct{} // closed when Close begins
	loops     sync.WaitGroup
	closeOnce sync.Once
	closeErr  error

	rowsRead, commits atomic.Int64
	// damaged is set once the log was found damaged: see damagedLog.
	damaged atomic.Bool
}

// Open opens the file, creates it if it is not there, and brings its schema up
// to date, unless it is only to be read. Its errors name the file and what to do.
func Open(path string, o Options) (*DB, error) {
	d := &DB{
		path: path, now: o.Now, logger: o.Logger, wait: o.Wait,
		writes: make(chan []*write), checkpointDue: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	if d.now == nil {
		d.now = time.Now
	}
	if d.logger == nil {
		d.logger = hclog.NewNullLogger()
	}
	if d.wait <= 0 {
		d.wait = defaultWait
	}
	ready, connect := createFile, func() error { return d.connect(o.Light) }
	if o.ReadOnly {
		ready, connect = findFile, d.connectReader
	}
	if err := ready(path); err != nil {
		return nil, err
	}
	if err := connect(); err != nil {
		return nil, errors.Join(err, d.disconnect())
	}
	d.loops.Go(d.writeLoop)
	return d, nil
}

// Close waits for the calls under way and closes the file. Later calls get an ErrUnavailable.
func (d *DB) Close() error {
	d.closeOnce.Do(func() {
		close(d.closing)
		d.loops.Wait()
		<-d.writer
		if d.readers != d.writer {
			for range cap(d.readers) {
				<-d.readers
			}
		}
		if err := d.disconnect(); err != nil {
			d.closeErr = fmt.Errorf("close database %s: %w", d.path, err)
		}
	})
	return d.closeErr
}

// Now is the store's clock.
func (d *DB) Now() time.Time { return d.now() }

// Logger is for rows that cannot be read.
func (d *DB) Logger() hclog.Logger { return d.logger }

// RowsRead is how many rows queries have returned since Open.
func (d *DB) RowsRead() int64 { return d.rowsRead.Load() }

// Commits is how many transactions were committed since Open.
func (d *DB) Commits() int64 { return d.commits.Load() }

// busyPause is the mean time between two looks at a locked file.
const busyPause = 2 * time.Millisecond

// jitter is a time between half of d and one and a half of it, so that two processes do not keep meeting.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// code is SQLite's primary result code in err; ok is false without one.
func code(err error) (primary int, ok bool) {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0, false
	}
	return e.Code() & 0xff, true
}

// isFault tells an error of the database from one that a write returned by itself.
func isFault(err error) bool {
	_, ok := code(err)
	return ok
}

func isBusy(err error) bool {
	primary, _ := code(err)
	return primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_LOCKED
}

// remedies say what a person can do about a result code.
var remedies = map[int]string{
	sqlite3.SQLITE_BUSY:     "another process keeps it locked: find out which, and end it if it hangs",
	sqlite3.SQLITE_CANTOPEN: "the file and its directory must exist and be writable for this user",
	sqlite3.SQLITE_CORRUPT:  "the file is damaged: move it away with its -wal and -shm files, or restore it",
	sqlite3.SQLITE_FULL:     "free some space on its disk",
	sqlite3.SQLITE_IOERR:    "its disk fails: look into the kernel's log",
	sqlite3.SQLITE_NOTADB:   "the file is something else: choose another path, or move it away",
	sqlite3.SQLITE_READONLY: "make the file and its directory writable for this user",
}

// fault gives an error of the database its file and remedy, as ErrUnavailable. Others pass as they are.
func (d *DB) fault(what string, err error) error {
	primary, ok := code(err)
	if !ok {
		return err
	}
	cause := fmt.Errorf("database %s: %w", d.path, err)
	if d.logDamaged(err) {
		d.damaged.Store(true)
		return &lifecycle.UnavailableError{What: what, Err: fmt.Errorf("%w: %s", cause, damagedLog)}
	}
	if remedy, ok := remedies[primary]; ok {
		cause = fmt.Errorf("%w: %s", cause, remedy)
	}
	return &lifecycle.UnavailableError{What: what, Err: cause}
}
