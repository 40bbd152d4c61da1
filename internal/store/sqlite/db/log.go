package db

import (
	"errors"
	"fmt"
	"io"
	"os"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// damagedLog says what a person can do about a log that is shorter than what was written to it, or has other
// content. The log is checked from its beginning only while no process has the file open, so it is then that
// what is left of it can be used.
const damagedLog = "its -wal file is damaged, perhaps truncated or replaced while in use; nothing more is read or written: " +
	"stop every controld and agentd that uses the database, copy the file with its -wal, and start them again. Writes that the -wal file " +
	"has lost are lost"

// logDamaged reports whether err shows that the log is damaged: a page that it should have is beyond its end, or
// the first page is not that of a database although the file begins as one.
func (d *DB) logDamaged(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() {
	case sqlite3.SQLITE_IOERR_SHORT_READ:
		return true
	case sqlite3.SQLITE_NOTADB:
		return beginsAsDatabase(d.path)
	}
	return false
}

// beginsAsDatabase reports whether a file has the header of SQLite (https://www.sqlite.org/fileformat.html).
func beginsAsDatabase(path string) bool {
	const magic = "SQLite format 3\x00"
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	header := make([]byte, len(magic))
	_, err = io.ReadFull(f, header)
	return err == nil && string(header) == magic
}

// errDamagedLog is the error of every call after the log was found damaged. A commit would be lost behind the
// damage, and a checkpoint would copy the damage into the file.
func (d *DB) errDamagedLog(what string) error {
	return &lifecycle.UnavailableError{What: what, Err: fmt.Errorf("database %s: %s", d.path, damagedLog)}
}
