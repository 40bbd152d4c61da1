package db

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

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
	if remedy, ok := remedies[primary]; ok {
		cause = fmt.Errorf("%w: %s", cause, remedy)
	}
	return &lifecycle.UnavailableError{What: what, Err: cause}
}
