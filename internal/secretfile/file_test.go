package secretfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/secretfile"
)

var token = secretfile.Kind{Noun: "token", Least: 4}

var longAgo = time.Now().Add(-time.Hour)

// aged writes a file that changed an hour ago, or later.
func aged(t *testing.T, path, text string, later time.Duration) {
	t.Helper()
	at := longAgo.Add(later)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// TestFileIsReadAgain: once it has changed, and not before.
func TestFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	get := token.File(path)
	if _, err := get(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("without a file: %v", err)
	}
	holds := func(want ...lifecycle.Secret) {
		t.Helper()
		if got, err := get(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d secrets, %v", len(got), err)
		}
	}
	aged(t, path, "first\n", 0)
	holds("first")
	aged(t, path, "other\n", 0) // the same in size and time: it is not read
	holds("first")
	aged(t, path, "third\n\nfourth", time.Minute)
	holds("third", "fourth")

	aged(t, path, "abc", 2*time.Minute)
	for range 2 {
		if got, err := get(); got != nil || err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "abc") {
			t.Errorf("a short one: %d secrets, %v", len(got), err)
		}
	}
}

// TestFileThatCannotBeRead is tried again, although it has not changed: it may be the fault of the machine.
func TestFileThatCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	aged(t, path, "first\n", 0)
	get := token.File(path)
	withoutDescriptors(t, func() {
		if got, err := get(); got != nil || !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), path) {
			t.Errorf("without a free descriptor: %d secrets, %v", len(got), err)
		}
	})
	if got, err := get(); err != nil || !slices.Equal(got, []lifecycle.Secret{"first"}) {
		t.Errorf("afterwards: %d secrets, %v", len(got), err)
	}
}

// withoutDescriptors runs do while this process can open no file.
func withoutDescriptors(t *testing.T, do func()) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}
