//go:build testhost

package cachestore

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestOverlay needs root.
func TestOverlay(t *testing.T) { testMechanism(t, Overlay{}) }

// TestEvictionFromAVolume: the free space of a volume of its own counts against its own size.
func TestEvictionFromAVolume(t *testing.T) {
	w := newWorld(t, Overlay{})
	if err := unix.Mount("tmpfs", w.o.Dir, "tmpfs", 0, "size=40m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(w.o.Dir, unix.MNT_DETACH) })
	w.o.MinimumFree = 1 << 40
	for key, content := range map[string]int{"000000000000000a": 1 << 20, "000000000000000b": 38 << 20} {
		w.cache.Key = key
		w.attach()
		w.write("a", strings.Repeat("x", content))
		w.mustCommit()
		if err := w.Evict(time.Now()); err != nil {
			t.Fatal(err)
		}
		held, err := w.Held()
		if kept := slices.ContainsFunc(held, func(h Held) bool { return h.Key == key }); err != nil || kept != (content == 1<<20) {
			t.Fatalf("after a cache of %d bytes in a volume of 40 MiB it has %+v, %v", content, held, err)
		}
	}
}

// TestViewOfAnotherBoot: a job of an earlier boot has led the target of its view to a mount elsewhere, which stays.
func TestViewOfAnotherBoot(t *testing.T) {
	w := newWorld(t, Overlay{})
	w.attach()
	if err := w.Hide(); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	mount := filepath.Join(elsewhere, "pkg/mod")
	err := errors.Join(os.MkdirAll(mount, 0o755), os.RemoveAll(filepath.Join(w.home, "go")), os.Symlink(elsewhere, filepath.Join(w.home, "go")),
		unix.Mount("tmpfs", mount, "tmpfs", 0, ""), os.WriteFile(filepath.Join(mount, "file"), nil, 0o600))
	t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) })
	if err != nil {
		t.Fatal(err)
	}
	o := w.o
	o.BootID = "boot-2"
	w.Store = w.open(o)
	if err := w.Discard(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(mount, "file")); err != nil {
		t.Fatalf("the mount elsewhere is gone: %v", err)
	}
}
