package db_test

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db/dbtest"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// TestReadOnlyChangesNothing: what is open elsewhere is read as it is now, what
// is not stays as it was, and a write fails.
func TestReadOnlyChangesNothing(t *testing.T) {
	racepass.CoveredBy(t, "TestOpenAtOnce")
	path := dbtest.File(t)
	file := dbtest.Open(t, path, db.Options{})
	if err := write(file, "a"); err != nil {
		t.Fatal(err)
	}
	reader := dbtest.Open(t, path, db.Options{ReadOnly: true})
	if got := names(t, reader); len(got) != 1 {
		t.Errorf("beside a writer: %v, want the one row", got)
	}
	if err := write(reader, "b"); !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("a write: %v, want unavailable", err)
	}
	if err := errors.Join(write(file, "c"), reader.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	before := sum(t, path)
	if got := names(t, dbtest.Open(t, path, db.Options{ReadOnly: true})); len(got) != 2 {
		t.Errorf("alone: %v, want two rows", got)
	}
	if sum(t, path) != before {
		t.Error("the file was changed")
	}
}

func sum(t *testing.T, path string) [sha256.Size]byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(data)
}

// TestReadOnlyRefuses: a file that is not there is not made, and one of another
// version stays at it.
func TestReadOnlyRefuses(t *testing.T) {
	racepass.CoveredBy(t, "TestOpenAtOnce")
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, setting := range map[string]string{"older": "PRAGMA user_version = 3", "newer": "PRAGMA user_version = 99"} {
		if err := dbtest.Open(t, in(name), db.Options{}).Close(); err != nil {
			t.Fatal(err)
		}
		script(t, in(name), setting)
	}
	script(t, in("foreign"), "CREATE TABLE customers (name TEXT)")
	for name, says := range map[string]string{
		"missing": "nothing has been kept there yet", "older": "has version 3, this program reads 8: use the program that writes it",
		"newer": "use the newer program", "foreign": "belongs to another program", ".": "name the database itself",
	} {
		_, err := db.Open(in(name), db.Options{ReadOnly: true})
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), in(name)) {
			t.Errorf("%s: %v, want its path and %q", name, err, says)
		}
	}
	if _, err := os.Stat(in("missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file that was missing: %v", err)
	}
	if _, err := db.Open(in("older"), db.Options{ReadOnly: true}); err == nil {
		t.Error("the older file was brought up to date")
	}
}
