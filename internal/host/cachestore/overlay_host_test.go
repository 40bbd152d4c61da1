//go:build testhost

package cachestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/tree"
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

// TestEvictionInOrder: while the volume lacks room, for bytes or for files, the cache that was used longest ago leaves first, and those stay that need not leave.
func TestEvictionInOrder(t *testing.T) {
	for name, full := range map[string]struct {
		volume string
		// each of three caches has so many files of this size, and one more has these.
		files, size         int
		moreFiles, moreSize int
	}{
		"bytes": {"size=40m", 1, 10 << 20, 1, 7 << 20},
		"files": {"size=40m,nr_inodes=400", 100, 1, 45, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Overlay{})
			if err := unix.Mount("tmpfs", w.o.Dir, "tmpfs", 0, full.volume); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(w.o.Dir, unix.MNT_DETACH) })
			keep := func(key string, files, size int) {
				w.cache.Key = key
				w.attach()
				for n := range files {
					w.write(fmt.Sprint(n), strings.Repeat("x", size))
				}
				w.mustCommit()
			}
			now := time.Now()
			for i, key := range []string{"000000000000000a", "000000000000000b", "000000000000000c"} {
				keep(key, full.files, full.size)
				used := now.Add(time.Duration(i-10) * time.Second)
				if key == "000000000000000a" { // the first that was made is not the first that leaves
					used = now.Add(-time.Second)
				}
				if err := os.Chtimes(w.path(key, currentFile), used, used); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Evict(now); err != nil {
				t.Fatal(err)
			}
			if held, err := w.Held(); err != nil || len(held) != 3 {
				t.Fatalf("with room enough it has %+v, %v", held, err)
			}
			keep("000000000000000d", full.moreFiles, full.moreSize)
			if err := w.Evict(now); err != nil {
				t.Fatal(err)
			}
			var keys []string
			held, err := w.Held()
			for _, h := range held {
				keys = append(keys, h.Key)
			}
			if want := []string{"000000000000000d", "000000000000000a", "000000000000000c"}; err != nil || !slices.Equal(keys, want) {
				t.Fatalf("it has %q, %v; want %q", keys, err, want)
			}
		})
	}
}

// TestFullVolume: a run that fills the volume of the caches, down to its last file, takes none of them along, whether it may write or not, and also if a cache may
// have as much.
func TestFullVolume(t *testing.T) {
	fills := map[string]func(w *world) error{
		"bytes": func(w *world) error { return os.WriteFile(w.at("big"), make([]byte, 64<<20), 0o644) },
		"files": func(w *world) (err error) {
			for n := 0; err == nil; n++ {
				err = os.WriteFile(w.at(fmt.Sprint(n)), nil, 0o644)
			}
			return err
		},
	}
	ends := map[string]func(w *world) error{
		"may not write": func(w *world) error { return w.Discard() },
		"may write":     func(w *world) error { return errors.Join(w.Hide(), w.Trim([]string{w.cache.Name})) },
		"may write another": func(w *world) error {
			w.cache.Size = 1 << 40
			return errors.Join(w.Hide(), w.Trim([]string{"another"}))
		},
	}
	// More than the bounds of a cache, and less, so that a commit might keep it.
	bounds := map[string]struct {
		size  uint64
		files int
	}{"a cache has too much": {20 << 20, 100}, "a cache may have it": {64 << 20, MaxFiles}}
	for filled, fill := range fills {
		for ended, end := range ends {
			for bounded, bound := range bounds {
				t.Run(filled+" "+ended+" "+bounded, func(t *testing.T) {
					w := newWorld(t, Overlay{})
					if err := unix.Mount("tmpfs", w.o.Dir, "tmpfs", 0, "size=40m,nr_inodes=400"); err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = unix.Unmount(w.o.Dir, unix.MNT_DETACH) })
					mine := w.cache
					w.cache.Key = "000000000000000b" // of another repository
					w.attach()
					w.write("other", "1")
					w.mustCommit()
					w.cache = mine
					w.cache.Size, mostFiles = bound.size, bound.files
					t.Cleanup(func() { mostFiles = MaxFiles })
					w.attach()
					w.write("good", "1")
					w.mustCommit()
					w.attach()
					if err := fill(w); !errors.Is(err, unix.ENOSPC) {
						t.Fatalf("the volume is not full: %v", err)
					}
					if err := errors.Join(end(w), w.Evict(time.Now())); err != nil {
						t.Fatal(err)
					}
					if ended == "may write" {
						if o := w.commit(); o.Committed {
							t.Fatalf("%+v", o)
						}
					}
					if err := w.Discard(); err != nil {
						t.Fatal(err)
					}
					if !w.Has("000000000000000b") {
						t.Error("another cache left")
					}
					w.attach()
					w.wantTree(map[string]string{"good": "1"})
					if err := w.Discard(); err != nil { // before its volume goes
						t.Fatal(err)
					}
				})
			}
		}
	}
}

// TestRoomForAView: a view that can be kept takes the room of caches that were used longer ago.
func TestRoomForAView(t *testing.T) {
	w := newWorld(t, Overlay{})
	if err := unix.Mount("tmpfs", w.o.Dir, "tmpfs", 0, "size=40m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(w.o.Dir, unix.MNT_DETACH) })
	mine := w.cache
	w.cache.Key = "000000000000000b"
	w.attach()
	w.write("other", strings.Repeat("x", 20<<20))
	w.mustCommit()
	w.cache = mine
	for _, content := range []int{1, 18 << 20} {
		w.attach()
		w.write("a", strings.Repeat("y", content))
		if err := errors.Join(w.Hide(), w.Trim([]string{w.cache.Name}), w.Evict(time.Now())); err != nil {
			t.Fatal(err)
		}
		w.mustCommit()
		if has := w.Has("000000000000000b"); has != (content == 1) {
			t.Fatalf("after a view of %d bytes the other cache is there: %t", content, has)
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

func TestToolsOverlaid(t *testing.T) { testTools(t, Overlay{}) }

// TestToolsOfTheImage: jobs see them below what earlier runs have added, and whatever they do to them, nothing of it is kept, copied or counted.
func TestToolsOfTheImage(t *testing.T) {
	w := newToolWorld(t, Overlay{})
	w.o.Owner = tree.Owner{UID: 12345, GID: 12345}
	w.cache.ImageDir = testImage(t)
	before := treeOf(t, w.cache.ImageDir)
	w.look()
	w.wantTool("go/1.21.0/x64", "of the image")
	for _, path := range []string{"", "go", "go/1.21.0"} { // a setup action adds something there
		var st unix.Stat_t
		if err := unix.Stat(w.at(path), &st); err != nil || st.Uid != 12345 {
			t.Errorf("%q belongs to %d, %v", path, st.Uid, err)
		}
	}
	w.install("go/1.22.0/x64", "added")
	w.install("go/1.21.0/arm64", "another machine")
	w.install("node/20.1.0/x64", "node")
	w.mustCommit()
	if st, err := w.load(w.cache.Key); err != nil || len(st.Layers) != 1 || st.Image == "" {
		t.Fatalf("%+v, %v", st, err)
	}
	for name, change := range map[string]func() error{
		"a file":    func() error { return os.WriteFile(w.at("go/1.21.0/x64/bin/tool"), []byte("poison"), 0o755) },
		"more":      func() error { return os.WriteFile(w.at("go/1.21.0/x64/bin/more"), []byte("poison"), 0o755) },
		"touched":   func() error { return os.Chtimes(w.at("go/1.21.0/x64/bin/tool"), time.Now(), time.Now()) },
		"a marker":  func() error { return os.Remove(w.at("go/1.21.0/x64.complete")) },
		"a version": func() error { return os.RemoveAll(w.at("go/1.21.0")) },
		"hidden": func() error {
			err := os.RemoveAll(w.at("go"))
			w.install("go/1.21.0/x64", "poison")
			return err
		},
	} {
		w.look()
		if err := change(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w.mustCommit()
		w.look()
		for version, content := range map[string]string{
			"go/1.21.0/x64": "of the image", "go/1.22.0/x64": "added", "go/1.21.0/arm64": "another machine", "node/20.1.0/x64": "node",
		} {
			w.wantTool(version, content)
		}
		if _, err := os.Lstat(w.at("go/1.21.0/x64/bin/more")); err == nil {
			t.Errorf("%s: a file more is kept", name)
		}
		if st, err := w.load(w.cache.Key); err != nil || len(st.Layers) != 1 {
			t.Errorf("%s: %d layers, %v", name, len(st.Layers), err)
		}
	}
	if after := treeOf(t, w.cache.ImageDir); after != before {
		t.Errorf("the image was\n%s\nand is\n%s", before, after)
	}

	// The image gets a version that a run has added too. They are not mixed.
	if err := os.MkdirAll(filepath.Join(w.cache.ImageDir, "go/1.22.0/x64"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.look()
	w.wantTool("go/1.21.0/x64", "of the image")
	w.wantTool("node/20.1.0/x64", "")
	if _, err := os.Lstat(w.at("go/1.22.0/x64/bin")); err == nil {
		t.Error("the version of the image is mixed with that of a run")
	}

	// An image that others can write to is not shown.
	if err := os.Chmod(filepath.Join(w.cache.ImageDir, "go"), 0o777); err != nil {
		t.Fatal(err)
	}
	w.look()
	w.wantTree(map[string]string{})
}

// treeOf is all that is in a directory, with times, owners and modes.
func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		fmt.Fprintln(&all, path, info.Mode(), info.ModTime(), st.Uid, st.Ctim, info.Size())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestReadOnlyOverlaid(t *testing.T) { testReadOnly(t, Overlay{}) }

func TestBorrowersOverlaid(t *testing.T) { testBorrowers(t, Overlay{}) }

func TestFilledWholeOverlaid(t *testing.T) { testFilledWhole(t, Overlay{}) }

// TestReadOnlyOfTheImage: what the image has is below what the host has fetched, and belongs to root as that does.
func TestReadOnlyOfTheImage(t *testing.T) {
	adds := map[string]string{"actions_checkout/1.tar.gz": "fetched although the image has it", "actions_cache/2.tar.gz": "fetched"}
	w := newReadOnlyWorld(t, Overlay{}, adds)
	w.o.Owner, w.cache.ImageDir = tree.Owner{UID: 12345, GID: 12345}, filepath.Join(t.TempDir(), "actionarchivecache")
	if err := os.MkdirAll(filepath.Join(w.cache.ImageDir, "actions_checkout"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.cache.ImageDir, "actions_checkout/1.tar.gz"), []byte("of the image"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.attach()
	w.mustCommit()
	w.attach()
	w.wantTree(map[string]string{
		"actions_checkout": "a directory", "actions_checkout/1.tar.gz": "of the image", "actions_cache": "a directory", "actions_cache/2.tar.gz": "fetched",
	})
	var st unix.Stat_t
	if err := unix.Stat(w.at("actions_cache/2.tar.gz"), &st); err != nil || int(st.Uid) != os.Geteuid() {
		t.Errorf("an archive belongs to %d, %v", st.Uid, err)
	}
	if err := os.Remove(w.at("actions_checkout/1.tar.gz")); err == nil {
		t.Error("an archive can be deleted")
	}
}
