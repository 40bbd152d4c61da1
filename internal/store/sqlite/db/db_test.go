package db_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db/dbtest"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// insert adds a row to the simplest table.
func insert(c *db.Conn, name string) error {
	_, err := c.Exec("INSERT INTO guards (name, version, doc) VALUES (?1, 1, '')", name)
	return err
}

func write(file *db.DB, name string) error {
	return file.Write(context.Background(), "insert "+name, func(c *db.Conn) error { return insert(c, name) })
}

// names are the rows that have been committed.
func names(t *testing.T, file *db.DB) []string {
	t.Helper()
	var found []string
	err := file.Read(context.Background(), "list", func(c *db.Conn) error {
		found = nil
		return c.Each("SELECT name FROM guards ORDER BY name", nil, func(rows *sql.Rows) error {
			var name string
			err := rows.Scan(&name)
			found = append(found, name)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// script runs SQL on a file as another program would.
func script(t *testing.T, path, text string) {
	t.Helper()
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Exec(text); err != nil {
		t.Fatal(err)
	}
}

func TestOpenKeepsWhatIsThere(t *testing.T) {
	racepass.CoveredBy(t, "TestOpenAtOnce")
	path := filepath.Join(t.TempDir(), "a file?with=odd#name%20.db")
	first, err := db.Open(path, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(write(first, "a"), first.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the last to close left a log behind: %v", err)
	}
	if got := names(t, dbtest.Open(t, path, db.Options{})); len(got) != 1 {
		t.Errorf("after opening again: got %v, want the one row", got)
	}
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("mode of %s: got %o, want 600", path+suffix, mode)
		}
	}
}

func TestOpenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "remuda.db")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			file, err := db.Open(path, db.Options{Light: i%2 == 0})
			if err == nil {
				err = errors.Join(write(file, fmt.Sprint(i)), file.Close())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := names(t, dbtest.Open(t, path, db.Options{})); len(got) != 8 {
		t.Errorf("got %v, want 8 rows", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	racepass.CoveredBy(t, "TestOpenAtOnce")
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("text"), []byte(strings.Repeat("this is not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	script(t, in("foreign"), "CREATE TABLE customers (name TEXT)")
	for name, version := range map[string]int{"newer": 99, "older": 7} {
		dbtest.Open(t, in(name), db.Options{})
		script(t, in(name), fmt.Sprintf("PRAGMA user_version = %d", version))
	}
	tests := []struct{ path, says string }{
		{in("missing/remuda.db"), "create the directory first"},
		{dir, "choose a path for a file"},
		{in("text"), "choose another path"},
		{in("foreign"), "belongs to another program"},
		{in("newer"), "use the newer program"},
		{in("older"), "use the program that writes it"},
	}
	for _, test := range tests {
		t.Run(filepath.Base(test.path), func(t *testing.T) {
			_, err := db.Open(test.path, db.Options{Wait: 50 * time.Millisecond})
			if err == nil || !strings.Contains(err.Error(), test.path) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got error %v, want one that names %s and says %q", err, test.path, test.says)
			}
		})
	}
	if text, err := os.ReadFile(in("text")); err != nil || !strings.HasPrefix(string(text), "this is not") {
		t.Errorf("the text file was changed: %v", err)
	}
	script(t, in("foreign"), "DROP TABLE customers") // still theirs, and sound
}

func TestFullDisk(t *testing.T) {
	racepass.CoveredBy(t, "TestOpenAtOnce")
	path := dbtest.File(t)
	file := dbtest.Open(t, path, db.Options{})
	limit := func(pages int) {
		t.Helper()
		err := file.Write(t.Context(), "limit", func(c *db.Conn) error {
			var now int64
			return c.Get(fmt.Sprintf("PRAGMA max_page_count = %d", pages), nil, &now)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit(1) // no more than there are
	var err error
	written := 0
	for ; err == nil && written < 10_000; written++ {
		err = write(file, fmt.Sprintf("%04d %s", written, strings.Repeat("x", 500)))
	}
	wantFault(t, err, path, "free some space")
	if got := len(names(t, file)); got != written-1 {
		t.Errorf("%d rows were acknowledged, %d are there", written-1, got)
	}
	limit(10_000)
	if err := write(file, "afterwards"); err != nil {
		t.Errorf("with space again: %v", err)
	}
}

func wantFault(t *testing.T, err error, path, says string) {
	t.Helper()
	if !errors.Is(err, lifecycle.ErrUnavailable) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), says) {
		t.Errorf("got error %v, want one that is unavailable, names %s and says %q", err, path, says)
	}
}

func TestReadOnly(t *testing.T) {
	racepass.CoveredBy(t, "TestOpenAtOnce")
	dir := t.TempDir()
	path := filepath.Join(dir, "remuda.db")
	file, err := db.Open(path, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(write(file, "a"), file.Close(), os.Chmod(path, 0o444), os.Chmod(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	asNobody(t, func() {
		for name, path := range map[string]string{"read-only file": path, "read-only directory": filepath.Join(dir, "new.db")} {
			_, err := db.Open(path, db.Options{Wait: 50 * time.Millisecond})
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "writable for this user") {
				t.Errorf("%s: got error %v, want one that names it and says what to do", name, err)
			}
		}
	})
}

func TestClose(t *testing.T) {
	racepass.CoveredBy(t, "TestOpenAtOnce")
	for _, light := range []bool{false, true} {
		file, err := db.Open(dbtest.File(t), db.Options{Light: light})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(file.Close(), file.Close()); err != nil {
			t.Errorf("closing twice: %v", err)
		}
		nothing := func(*db.Conn) error { return nil }
		for name, err := range map[string]error{
			"write": file.Write(t.Context(), "write", nothing), "read": file.Read(t.Context(), "read", nothing),
		} {
			if !errors.Is(err, lifecycle.ErrUnavailable) {
				t.Errorf("%s after Close: got error %v, want unavailable", name, err)
			}
		}
	}
}
