package db_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db/dbtest"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// TestDamagedLog: a log that was truncated or overwritten in use is no failing disk. The error says what to do, and
// nothing is written from then on that would spoil the file too: what is left of the log is there after a restart.
func TestDamagedLog(t *testing.T) {
	racepass.CoveredBy(t, "TestOpenAtOnce")
	const rows = 60
	for name, damage := range map[string]func(log *os.File, size int64) error{
		"truncated": func(log *os.File, size int64) error { return log.Truncate(size / 2) },
		"empty":     func(log *os.File, _ int64) error { return log.Truncate(0) },
		"overwritten": func(log *os.File, size int64) error {
			_, err := io.CopyN(io.NewOffsetWriter(log, size/2), neverEnds{}, size-size/2)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := dbtest.File(t)
			file, err := db.Open(path, db.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for n := range rows {
				if err := write(file, fmt.Sprintf("%04d %s", n, strings.Repeat("x", 500))); err != nil {
					t.Fatal(err)
				}
			}
			log, err := os.OpenFile(path+"-wal", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			info, err := log.Stat()
			if err := errors.Join(err, damage(log, info.Size())); err != nil {
				t.Fatal(err)
			}
			const says = "its -wal file is damaged"
			err = file.Read(t.Context(), "list", func(c *db.Conn) error { _, err := c.Exec("SELECT name FROM guards"); return err })
			wantFault(t, err, path, says)
			_, err = db.Open(path, db.Options{}) // beside it
			wantFault(t, err, path, says)
			for range 2 {
				wantFault(t, write(file, "lost"), path, says)
			}
			if err := file.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			usable(t, path, rows)
		})
	}
}

// usable opens a copy of a file and its log, as after a restart of all processes, and wants it sound.
func usable(t *testing.T, path string, most int) {
	t.Helper()
	again := filepath.Join(t.TempDir(), "again.db")
	for _, part := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + part)
		if err := errors.Join(err, os.WriteFile(again+part, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	file := dbtest.Open(t, again, db.Options{})
	left := len(names(t, file))
	if err := write(file, "later"); err != nil || left > most || len(names(t, file)) != left+1 {
		t.Errorf("%d of %d rows are left, and a write: %v", left, most, err)
	}
	t.Logf("%d of %d rows are left", left, most)
	var verdict string
	err := file.Read(t.Context(), "check", func(c *db.Conn) error { return c.Get("PRAGMA integrity_check", nil, &verdict) })
	if err != nil || verdict != "ok" {
		t.Errorf("integrity: %q (%v)", verdict, err)
	}
}

// neverEnds reads as the letter g.
type neverEnds struct{}

func (neverEnds) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'g'
	}
	return len(p), nil
}
