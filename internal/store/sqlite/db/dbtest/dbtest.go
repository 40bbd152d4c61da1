// Package dbtest gives tests database files of their own.
package dbtest

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// File returns the path of a new file, which has all tables and no row. It is a copy of
// one that was made once: to make the tables costs most of opening a new file.
func File(t testing.TB) string {
	t.Helper()
	content, err := empty()
	path := filepath.Join(t.TempDir(), "remuda.db")
	if err := errors.Join(err, os.WriteFile(path, content, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

var empty = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "remuda-dbtest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "remuda.db")
	file, err := db.Open(path, db.Options{})
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil { // which leaves no log
		return nil, err
	}
	return os.ReadFile(path)
})

// Open opens the file at path and closes it with the test.
func Open(t testing.TB, path string, o db.Options) *db.DB {
	t.Helper()
	file, err := db.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return file
}
