package cachestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newReadOnlyWorld is a world whose only cache can be filled by its host alone, which adds these files at each commit.
func newReadOnlyWorld(t *testing.T, m Mechanism, adds map[string]string) *world {
	t.Helper()
	w := newWorld(t, m)
	w.cache.Name, w.cache.ReadOnly, w.cache.Targets = "actions", true, []string{filepath.Join(w.home, "actionarchivecache")}
	w.o.Fill = func(_ context.Context, name, dir string, below Below) (f Filled, err error) {
		if name != w.cache.Name {
			t.Errorf("filled for %q", name)
		}
		for path, content := range adds {
			if below.Has(path) {
				continue
			}
			if content == "" {
				return f, errors.New("the server is away")
			}
			at := filepath.Join(dir, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644)); err != nil {
				return f, err
			}
			f.Added++
		}
		return f, nil
	}
	return w
}

// testReadOnly is what holds for a read-only cache by every mechanism.
func testReadOnly(t *testing.T, m Mechanism) {
	adds := map[string]string{"actions_checkout/1.tar.gz": "one"}
	w := newReadOnlyWorld(t, m, adds)
	w.attach()
	w.wantTree(map[string]string{})
	if _, ok := m.(Overlay); !ok { // there a job is the agent's own user, and could write what was never fetched
		w.write("forged", "poison")
	} else if err := os.WriteFile(w.at("forged"), nil, 0o644); err == nil {
		t.Error("a job can write to a read-only cache")
	}
	if o := w.commit(); !o.Committed || o.Bytes == 0 {
		t.Fatalf("outcome %+v", o)
	}
	w.attach()
	w.wantTree(map[string]string{"actions_checkout": "a directory", "actions_checkout/1.tar.gz": "one"})
	adds["actions_checkout/2.tar.gz"], adds["actions_checkout/3.tar.gz"] = "two", ""
	w.mustCommit()
	delete(adds, "actions_checkout/3.tar.gz")
	w.attach()
	w.mustCommit()
	w.attach()
	w.wantTree(map[string]string{"actions_checkout": "a directory", "actions_checkout/1.tar.gz": "one", "actions_checkout/2.tar.gz": "two"})
	if err := w.Verify(w.Context()); err != nil {
		t.Fatal(err)
	}

	// After a boot what a disk has lost is found.
	held, err := w.Held()
	if err != nil || len(held) != 1 {
		t.Fatalf("held %v, %v", held, err)
	}
	if err := w.Discard(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(w.path(w.cache.Key, "*/0/actions_checkout/1.tar.gz"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte("???"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.o.BootID = "boot-2"
	if err := w.Verify(w.Context()); err != nil {
		t.Fatal(err)
	}
	if held, err := w.Held(); err != nil || len(held) != 0 {
		t.Errorf("a cache with another content is kept: %v, %v", held, err)
	}
}

func TestReadOnlyCopied(t *testing.T) { testReadOnly(t, Copy{}) }

func TestReadOnlyThatIsFull(t *testing.T) {
	t.Parallel()
	adds := map[string]string{"a/1.tar.gz": strings.Repeat("x", 600<<10)}
	w := newReadOnlyWorld(t, Copy{}, adds)
	w.cache.Size = 1 << 20
	w.attach()
	w.mustCommit()
	adds["a/2.tar.gz"] = strings.Repeat("y", 600<<10)
	w.attach()
	w.mustCommit()
	w.attach()
	w.wantTree(map[string]string{"a": "a directory", "a/2.tar.gz": adds["a/2.tar.gz"]})
}

// What is filled can be the whole cache. It begins with the directories of what was there, the newest first.
func testFilledWhole(t *testing.T, m Mechanism) {
	adds := map[string]string{"pack/1": "one"}
	w := newReadOnlyWorld(t, m, adds)
	w.cache.Connected = true
	w.attach()
	w.mustCommit()
	adds["pack/2"] = "two"
	w.attach()
	w.mustCommit()
	w.o.Fill = func(_ context.Context, _, dir string, below Below) (Filled, error) {
		var joined string
		for _, layer := range below.Dirs {
			for _, name := range []string{"2", "1"} {
				text, _ := os.ReadFile(filepath.Join(layer, "pack", name)) // each is in one of them
				joined += string(text)
			}
		}
		if joined != "twoone" {
			t.Errorf("below are %v, with %q", below.Dirs, joined)
		}
		return Filled{Added: 1, Whole: true}, errors.Join(os.Mkdir(filepath.Join(dir, "pack"), 0o755), os.WriteFile(filepath.Join(dir, "pack/3"), []byte(joined), 0o644))
	}
	w.attach()
	w.mustCommit()
	w.attach()
	w.wantTree(map[string]string{"pack": "a directory", "pack/3": "twoone"})
	if err := w.Discard(); err != nil {
		t.Fatal(err)
	}
	if layers, err := filepath.Glob(w.path(w.cache.Key, "*/0")); err != nil || len(layers) != 1 {
		t.Errorf("layers that are left: %v, %v", layers, err)
	}
}

func TestFilledWholeCopied(t *testing.T) { testFilledWhole(t, Copy{}) }

// One whose layers need each other is deleted when it is full, and not begun again with its newest layer.
func TestConnectedThatIsFull(t *testing.T) {
	t.Parallel()
	adds := map[string]string{"pack/1": strings.Repeat("x", 600<<10)}
	w := newReadOnlyWorld(t, Copy{}, adds)
	w.cache.Size, w.cache.Connected = 1<<20, true
	w.attach()
	w.mustCommit()
	adds["pack/2"] = strings.Repeat("y", 600<<10)
	w.attach()
	if o := w.commit(); o.Committed || o.Bytes != 0 || !strings.Contains(o.Reason, "begins again") {
		t.Errorf("outcome %+v", o)
	}
	if held, err := w.Held(); err != nil || len(held) != 0 {
		t.Errorf("held: %v, %v", held, err)
	}
	w.attach()
	w.wantTree(map[string]string{})
}

// One that is refused is deleted too, or it would be refused again after each run: what is added is too large by itself, or as the whole of it.
func TestConnectedThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, whole := range map[string]bool{"what is added": false, "the whole": true} {
		adds := map[string]string{"pack/1": strings.Repeat("x", 600<<10)}
		w := newReadOnlyWorld(t, Copy{}, adds)
		w.cache.Size, w.cache.Connected = 1<<20, true
		w.attach()
		w.mustCommit()
		fill := w.o.Fill
		w.o.Fill = func(ctx context.Context, name, dir string, below Below) (Filled, error) {
			f, err := fill(ctx, name, dir, below)
			f.Whole = whole
			return f, err
		}
		adds["pack/2"] = strings.Repeat("y", 1<<20+1)
		w.attach()
		if o := w.commit(); o.Committed || !strings.Contains(o.Reason, "begins again") {
			t.Errorf("%s is too large: outcome %+v", name, o)
		}
		if held, err := w.Held(); err != nil || len(held) != 0 {
			t.Errorf("%s is too large: held %v, %v", name, held, err)
		}
	}
}

// What is fetched is committed last: if a server takes all of the time, what the run itself has left is kept.
func TestFetchedLast(t *testing.T) {
	t.Parallel()
	w := newReadOnlyWorld(t, Copy{}, nil)
	fetched, files := w.cache, newWorld(t, Copy{}).cache
	files.Key, files.Targets = "ffeeddccbbaa9988", []string{filepath.Join(w.home, "go")}
	ctx, cancel := context.WithCancel(t.Context())
	w.o.Fill = func(context.Context, string, string, Below) (Filled, error) {
		cancel()
		return Filled{}, ctx.Err()
	}
	w.attach(fetched, files)
	w.cache = files
	w.write("mod", "left by the run")
	outcomes, err := w.Commit(ctx, w.run+1, []string{fetched.Name, files.Name})
	if !errors.Is(err, context.Canceled) || len(outcomes) != 1 || !outcomes[0].Committed {
		t.Errorf("outcomes %+v, %v", outcomes, err)
	}
	if !w.Has(files.Key) || w.Has(fetched.Key) {
		t.Errorf("held: what the run left %t, what was fetched %t", w.Has(files.Key), w.Has(fetched.Key))
	}
}
