//go:build testhost

package cachestore

import (
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
