package tree

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What is made while a walk goes on counts against it, and what was there before does not.
func TestBound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	l := level{dir: dir, names: []string{"file"}}
	before := walk{path: "x", start: time.Now().Add(-time.Second)}
	after := walk{path: "x", start: time.Now().Add(time.Second)}
	for i := range 2 * maxNew {
		if err := before.bound(&l); (err != nil) != (i >= maxNew) || (err != nil && !errors.Is(err, ErrBusy)) {
			t.Fatalf("batch %d: %v", i, err)
		}
		if err := after.bound(&l); err != nil {
			t.Fatal(err)
		}
	}
	late := walk{path: "x", start: time.Now().Add(-2 * maxTime)}
	if err := late.bound(&level{dir: dir}); !errors.Is(err, ErrBusy) {
		t.Errorf("after %s: %v", 2*maxTime, err)
	}
}
