package cachestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/tree"
)

// world is a store with a home directory of jobs.
type world struct {
	*testing.T
	*Store
	home  string
	cache Cache
	run   int64
}

const testSize = 64 << 20

func newWorld(t *testing.T, m Mechanism) *world {
	t.Helper()
	w := &world{T: t, home: filepath.Join(t.TempDir(), "home")}
	if err := os.Mkdir(w.home, 0o755); err != nil {
		t.Fatal(err)
	}
	w.cache = Cache{
		Key: "00112233445566ff", Name: "go", Size: testSize, Keep: time.Hour,
		Targets: []string{filepath.Join(w.home, "go/pkg/mod"), filepath.Join(w.home, ".cache/go-build")},
	}
	w.Store = w.open(Options{Dir: filepath.Join(t.TempDir(), "caches"), Mechanism: m, BootID: "boot-1"})
	t.Cleanup(func() { _ = w.Hide() })
	return w
}

func (w *world) open(o Options) *Store {
	w.Helper()
	o.Owner = tree.Owner{UID: os.Geteuid(), GID: os.Getegid()}
	s, err := New(o)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// attach begins a run, which sees the caches.
func (w *world) attach(caches ...Cache) {
	w.Helper()
	if len(caches) == 0 {
		caches = []Cache{w.cache}
	}
	w.run++
	if err := tree.Renew(w.home, w.o.Owner, 0o755); err != nil {
		w.Fatal(err)
	}
	names, err := w.Attach(w.Context(), w.run, w.home, caches, nil)
	if err != nil || len(names) != len(caches) {
		w.Fatalf("attached %q of %d caches: %v", names, len(caches), err)
	}
}

// commit ends the run, and returns what became of its only cache.
func (w *world) commit() Outcome {
	w.Helper()
	w.run++
	outcomes, err := w.Commit(w.Context(), w.run, []string{w.cache.Name})
	if err != nil || len(outcomes) != 1 {
		w.Fatalf("outcomes %v, %v", outcomes, err)
	}
	return outcomes[0]
}

func (w *world) mustCommit() {
	w.Helper()
	if o := w.commit(); !o.Committed {
		w.Fatalf("not committed: %s", o.Reason)
	}
}

// at is a path of the job in the cache.
func (w *world) at(path string) string { return filepath.Join(w.cache.Targets[0], path) }

func (w *world) write(path, content string) {
	w.Helper()
	if err := os.MkdirAll(filepath.Dir(w.at(path)), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(w.at(path), []byte(content), 0o644); err != nil {
		w.Fatal(err)
	}
}

// tree is what the job sees: each path with its content.
func (w *world) tree() map[string]string {
	w.Helper()
	seen := map[string]string{}
	root, err := filepath.EvalSymlinks(w.cache.Targets[0])
	if err != nil {
		w.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, content := strings.TrimPrefix(path, root+"/"), "a directory"
		switch d.Type() {
		case 0:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(data)
		case fs.ModeSymlink:
			if content, err = os.Readlink(path); err != nil {
				return err
			}
			content = "-> " + content
		}
		seen[name] = content
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return seen
}

func (w *world) wantTree(want map[string]string) {
	w.Helper()
	if got := w.tree(); !maps.Equal(got, want) {
		w.Fatalf("the job sees %v, want %v", got, want)
	}
}

// testMechanism is what holds for every mechanism.
func testMechanism(t *testing.T, m Mechanism) {
	for name, test := range map[string]func(w *world){
		"life":             testLife,
		"discard":          testDiscard,
		"both paths":       testBothPaths,
		"crashes":          testCrashes,
		"attach again":     testAttachAgain,
		"random runs":      testRandomRuns,
		"emptied":          testEmptied,
		"hard links":       testHardLinks,
		"refusals":         testRefusals,
		"left out":         testLeftOut,
		"stripped":         testStripped,
		"corruption":       testCorruption,
		"boot":             testBoot,
		"eviction":         testEviction,
		"stale":            testStale,
		"other paths":      testOtherPaths,
		"links in homes":   testLinkedHome,
		"keys and targets": testBadCaches,
		"dropped":          testDrop,
		"cut commits":      testCutCommit,
	} {
		t.Run(name, func(t *testing.T) { test(newWorld(t, m)) })
	}
}

func TestCopy(t *testing.T) { testMechanism(t, Copy{}) }

func testLife(w *world) {
	w.attach()
	w.wantTree(map[string]string{})
	w.write("a/b", "one")
	w.mustCommit()
	if seen, err := os.ReadDir(w.cache.Targets[0]); err == nil && len(seen) > 0 {
		w.Fatalf("after the run its home has %v", seen)
	}

	w.attach()
	w.wantTree(map[string]string{"a": "a directory", "a/b": "one"})
	w.write("a/c", "two")
	if err := os.Remove(w.at("a/b")); err != nil {
		w.Fatal(err)
	}
	w.mustCommit()

	w.attach()
	w.wantTree(map[string]string{"a": "a directory", "a/c": "two"})
	held, err := w.Held()
	if err != nil || len(held) != 1 || held[0].Key != w.cache.Key || held[0].Name != "go" || held[0].Bytes == 0 || held[0].CommittedAt.IsZero() {
		w.Fatalf("held %+v, %v", held, err)
	}
	if err := w.Remove(w.cache.Key); err != nil {
		w.Fatal(err)
	}
	if o := w.commit(); o.Committed {
		w.Fatalf("a cache that was deleted while a run had it is committed: %s", o.Reason)
	}
	w.attach()
	w.wantTree(map[string]string{})
}

func testDiscard(w *world) {
	w.attach()
	w.write("kept", "1")
	w.mustCommit()
	w.attach()
	w.write("kept", "poison")
	w.write("more", "poison")
	if err := w.Discard(); err != nil {
		w.Fatal(err)
	}
	if _, err := os.Lstat(w.path(viewDir)); !errors.Is(err, fs.ErrNotExist) {
		w.Fatalf("a discarded view is left: %v", err)
	}
	w.attach()
	w.wantTree(map[string]string{"kept": "1"})
	w.write("kept", "poison")
	if outcomes, err := w.Commit(w.Context(), w.run+1, []string{"another"}); err != nil || len(outcomes) > 0 {
		w.Fatal(outcomes, err)
	}
	w.attach()
	w.wantTree(map[string]string{"kept": "1"})
}

func testBothPaths(w *world) {
	w.attach()
	w.write("one", "1")
	if err := os.WriteFile(filepath.Join(w.cache.Targets[1], "two"), []byte("2"), 0o600); err != nil {
		w.Fatal(err)
	}
	w.mustCommit()
	w.attach()
	w.wantTree(map[string]string{"one": "1"})
	data, err := os.ReadFile(filepath.Join(w.cache.Targets[1], "two"))
	if err != nil || string(data) != "2" {
		w.Fatalf("the second path has %q, %v", data, err)
	}
}

// testCrashes cuts a commit after each of its steps.
func testCrashes(w *world) {
	w.attach()
	w.write("old", "1")
	w.mustCommit()
	w.attach()
	w.write("new", "2")
	c := w.loadView().Caches[0]
	if err := w.Hide(); err != nil {
		w.Fatal(err)
	}
	below, err := w.shownBy(c.Key, c.Base)
	if err != nil {
		w.Fatal(err)
	}
	l, _, err := w.seal(w.Context(), c, below)
	if err != nil {
		w.Fatal(err)
	}
	// The layer is there, and nothing names it. The view has lost its changes.
	if o := w.commit(); o.Committed || !strings.Contains(o.Reason, "interrupted") {
		w.Fatalf("an interrupted commit was repeated: %+v", o)
	}
	if _, err := os.Lstat(w.path(c.Key, l.ID)); !errors.Is(err, fs.ErrNotExist) {
		w.Fatalf("the layer that nothing names is left: %v", err)
	}
	w.attach()
	w.wantTree(map[string]string{"old": "1"})

	// It is committed, and the view is still there.
	w.write("new", "3")
	v := w.loadView()
	if err := w.Hide(); err != nil {
		w.Fatal(err)
	}
	if _, err := w.commitMeasured(w.Context(), v.Caches[0], below); err != nil {
		w.Fatal(err)
	}
	if o := w.commit(); o.Committed {
		w.Fatalf("the same view was committed twice: %+v", o)
	}
	w.attach()
	w.wantTree(map[string]string{"old": "1", "new": "3"})
}

func testAttachAgain(w *world) {
	w.attach()
	w.write("a", "1")
	names, err := w.Attach(w.Context(), w.run, w.home, []Cache{w.cache}, nil)
	if err != nil || !slices.Equal(names, []string{"go"}) {
		w.Fatal(names, err)
	}
	w.wantTree(map[string]string{"a": "1"})
}

// testRandomRuns compares what runs see with a model of it.
func testRandomRuns(w *world) {
	r := rand.New(rand.NewPCG(17, 11))
	model := map[string]string{}
	for range 60 {
		w.attach()
		w.wantTree(withDirectories(model))
		next := maps.Clone(model)
		for range r.IntN(6) {
			w.change(r, next)
		}
		if r.IntN(4) == 0 {
			if err := w.Discard(); err != nil {
				w.Fatal(err)
			}
			continue
		}
		w.mustCommit()
		model = next
		if err := w.Verify(w.Context()); err != nil {
			w.Fatal(err)
		}
	}
	if st, err := w.load(w.cache.Key); err != nil || len(st.Layers) > mostLayers {
		w.Fatalf("%d layers, %v", len(st.Layers), err)
	}
}

// testEmptied has a run make a directory again, empty.
func testEmptied(w *world) {
	w.attach()
	w.write("d/a", "1")
	w.write("d/e/b", "1")
	w.mustCommit()
	w.attach()
	if err := errors.Join(os.RemoveAll(w.at("d")), os.MkdirAll(w.at("d/e"), 0o755)); err != nil {
		w.Fatal(err)
	}
	w.mustCommit()
	w.attach()
	w.wantTree(map[string]string{"d": "a directory", "d/e": "a directory"})
	w.write("d/e/b", "1")
	w.mustCommit()
	w.attach()
	if err := errors.Join(os.RemoveAll(w.at("d/e")), os.Mkdir(w.at("d/e"), 0o755)); err != nil {
		w.Fatal(err)
	}
	w.mustCommit()
	w.attach()
	w.wantTree(map[string]string{"d": "a directory", "d/e": "a directory"})
}

// testHardLinks has links inside of a cache, which stay, and to a file elsewhere, which a job could change later.
func testHardLinks(w *world) {
	w.attach()
	w.write("a", "1")
	if err := os.Link(w.at("a"), w.at("b")); err != nil {
		w.Fatal(err)
	}
	w.mustCommit()
	w.attach()
	w.wantTree(map[string]string{"a": "1", "b": "1"})
	// Where the job sees a mount of its own it cannot make a link to elsewhere, so the rule is tried by itself.
	dir := w.TempDir()
	inside, elsewhere := filepath.Join(dir, "in/a"), filepath.Join(dir, "elsewhere")
	err := errors.Join(os.Mkdir(filepath.Dir(inside), 0o755), os.WriteFile(inside, nil, 0o644), os.Link(inside, elsewhere))
	if err != nil {
		w.Fatal(err)
	}
	var refusal *RefusedError
	if _, err := measure(filepath.Dir(inside), testSize); !errors.As(err, &refusal) {
		w.Fatalf("a file with a hard link elsewhere: %v", err)
	}
}

// change does one random thing to the cache and to the model, which has the files.
func (w *world) change(r *rand.Rand, model map[string]string) {
	w.Helper()
	dirs := []string{"a", "b", "a/c", "a/c/d"}
	dir := dirs[r.IntN(len(dirs))]
	path := fmt.Sprintf("%s/f%d", dir, r.IntN(3))
	switch r.IntN(5) {
	case 0: // a directory goes
		if err := os.RemoveAll(w.at(dir)); err != nil {
			w.Fatal(err)
		}
		maps.DeleteFunc(model, func(p, _ string) bool { return strings.HasPrefix(p, dir+"/") })
	case 1: // a directory is made again, with a file that may be the same as before
		content := model[path]
		if err := os.RemoveAll(w.at(dir)); err != nil {
			w.Fatal(err)
		}
		maps.DeleteFunc(model, func(p, _ string) bool { return strings.HasPrefix(p, dir+"/") })
		w.write(path, content)
		model[path] = content
	case 2: // a file is touched
		if _, ok := model[path]; ok {
			at := time.Unix(int64(1e9+r.IntN(1e6)), 0)
			if err := os.Chtimes(w.at(path), at, at); err != nil {
				w.Fatal(err)
			}
		}
	case 3:
		if _, ok := model[path]; ok {
			if err := os.Remove(w.at(path)); err != nil {
				w.Fatal(err)
			}
			delete(model, path)
		}
	default:
		content := fmt.Sprint(r.IntN(5))
		w.write(path, content)
		model[path] = content
	}
	// Of directories the model knows only those with files.
	for i := len(dirs) - 1; i >= 0; i-- {
		_ = os.Remove(w.at(dirs[i]))
	}
}

func withDirectories(files map[string]string) map[string]string {
	all := maps.Clone(files)
	for path := range files {
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			all[dir] = "a directory"
		}
	}
	return all
}

// testRefusals has what a commit refuses as a whole.
func testRefusals(w *world) {
	w.attach()
	w.write("kept", "1")
	w.mustCommit()
	for name, attack := range map[string]struct {
		do   func() error
		want string
	}{
		"a sparse file": {func() error { return os.Truncate(w.at("kept"), 1<<40) }, "size"},
		"sizes that are too large together": {func() error {
			return errors.Join(os.Truncate(w.at("kept"), testSize-1<<20), os.WriteFile(filepath.Join(w.cache.Targets[1], "x"), make([]byte, 2<<20), 0o600))
		}, "size"},
		"a name with a line break":    {func() error { return os.WriteFile(w.at("a\nb"), nil, 0o600) }, "printable"},
		"a name with an escape":       {func() error { return os.WriteFile(w.at("a\x1b[2J"), nil, 0o600) }, "printable"},
		"a name that is no text":      {func() error { return os.WriteFile(w.at("a\xff"), nil, 0o600) }, "printable"},
		"a name for readers of lists": {func() error { return os.WriteFile(w.at("a\u0085b"), nil, 0o600) }, "printable"},
		"too many files": {func() error {
			var errs []error
			for n := range 99 { // in two directories
				errs = append(errs, os.MkdirAll(w.at(fmt.Sprintf("%d/%d", n%2, n)), 0o755))
			}
			return errors.Join(errs...)
		}, "more than"},
		"too deep": {func() error { return os.MkdirAll(w.at(strings.Repeat("d/", MaxDepth+1)), 0o755) }, "deep"},
	} {
		w.attach()
		mostFiles = 100
		if err := attack.do(); err != nil {
			w.Fatalf("%s: %v", name, err)
		}
		o := w.commit()
		mostFiles = MaxFiles
		if o.Committed || !strings.Contains(o.Reason, attack.want) {
			w.Errorf("%s: %+v, want a reason with %q", name, o, attack.want)
		}
		w.attach()
		w.wantTree(map[string]string{"kept": "1"})
		if err := w.Discard(); err != nil {
			w.Fatal(err)
		}
	}
}

// testLeftOut has what a commit deletes, while it keeps the rest.
func testLeftOut(w *world) {
	w.attach()
	outside := filepath.Join(w.home, "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		w.Fatal(err)
	}
	w.write("d/plain", "1")
	links := map[string]string{
		"absolute": outside, "up": "../../../secret", "d/up": "../../x", "through": "sub/../../../x", "d/over": "in/..", "root": "/",
		"self": "self", "in": "d/plain", "d/in": "../d/plain", "empty-parent": "./d", "d/top": "..",
	}
	for name, target := range links {
		if err := os.Symlink(target, w.at(name)); err != nil {
			w.Fatal(err)
		}
	}
	if err := unix.Mkfifo(w.at("pipe"), 0o666); err != nil {
		w.Fatal(err)
	}
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		w.Fatal(err)
	}
	defer unix.Close(socket)
	short := filepath.Join(os.TempDir(), fmt.Sprintf("s%d", os.Getpid()))
	if err := unix.Bind(socket, &unix.SockaddrUnix{Name: short}); err != nil {
		w.Fatal(err)
	}
	defer os.Remove(short)
	w.mustCommit()
	w.attach()
	w.wantTree(map[string]string{
		"d": "a directory", "d/plain": "1", "self": "-> self", "in": "-> d/plain", "d/in": "-> ../d/plain", "empty-parent": "-> ./d", "d/top": "-> ..",
	})
}

func testStripped(w *world) {
	w.attach()
	w.write("program", "1")
	w.write("closed/file", "2")
	err := errors.Join(os.Chmod(w.at("program"), 0o755|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky), os.Chmod(w.at("closed"), 0o500|fs.ModeSetgid))
	if err != nil {
		w.Fatal(err)
	}
	attribute := unix.Setxattr(w.at("program"), "user.mark", []byte("x"), 0)
	w.mustCommit()
	w.attach()
	info, err := os.Stat(w.at("program"))
	if err != nil || info.Mode() != 0o755 {
		w.Fatalf("the program has the mode %v, %v", info.Mode(), err)
	}
	if info, err = os.Stat(w.at("closed")); err != nil || info.Mode() != fs.ModeDir|0o700 {
		w.Fatalf("the directory has the mode %v, %v", info.Mode(), err)
	}
	if attribute == nil {
		if n, err := unix.Getxattr(w.at("program"), "user.mark", make([]byte, 8)); err == nil {
			w.Fatalf("an extended attribute of %d bytes has survived", n)
		}
	}
}

func testCorruption(w *world) {
	for name, damage := range map[string]func(layer, list string) error{
		"content of the same size": func(layer, _ string) error { return overwrite(filepath.Join(layer, "0/a"), "2") },
		"a file more":              func(layer, _ string) error { return os.WriteFile(filepath.Join(layer, "0/z"), nil, 0o644) },
		"a file less":              func(layer, _ string) error { return os.Remove(filepath.Join(layer, "0/b")) },
		"another mode":             func(layer, _ string) error { return os.Chmod(filepath.Join(layer, "0/a"), 0o4755) },
		"another link": func(layer, _ string) error {
			return errors.Join(os.Remove(filepath.Join(layer, "0/l")), os.Symlink("b", filepath.Join(layer, "0/l")))
		},
		"a link for a file": func(layer, _ string) error {
			return errors.Join(os.Remove(filepath.Join(layer, "0/a")), os.Symlink("/etc/passwd", filepath.Join(layer, "0/a")))
		},
		"a list of another digest": func(_, list string) error { return os.Truncate(list, 10) },
		"no list":                  func(_, list string) error { return os.Remove(list) },
		"no layer":                 func(layer, _ string) error { return os.RemoveAll(layer) },
	} {
		w.attach()
		w.write("a", "1")
		w.write("b", "1")
		if err := os.Symlink("a", w.at("l")); err != nil {
			w.Fatal(err)
		}
		w.mustCommit()
		st, err := w.load(w.cache.Key)
		if err != nil {
			w.Fatal(err)
		}
		dir := w.path(w.cache.Key, st.Layers[0].ID)
		if err := damage(dir, dir+".list"); err != nil {
			w.Fatalf("%s: %v", name, err)
		}
		w.reboot("after " + name)
		if held, err := w.Held(); err != nil || len(held) > 0 {
			w.Errorf("%s: the cache is kept: %+v, %v", name, held, err)
			_ = w.Remove(w.cache.Key)
		}
	}
	if err := os.MkdirAll(w.path(w.cache.Key), 0o700); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(w.path(w.cache.Key, currentFile), []byte(`{"paths":1,"layers":[{"id":"../../../etc"}]}`), 0o600); err != nil {
		w.Fatal(err)
	}
	w.attach()
	w.wantTree(map[string]string{})
}

func overwrite(path, content string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	err = os.WriteFile(path, []byte(content), 0)
	return errors.Join(err, os.Chtimes(path, info.ModTime(), info.ModTime()))
}

// reboot opens the store in another boot, and verifies it.
func (w *world) reboot(id string) {
	w.Helper()
	if err := w.Hide(); err != nil {
		w.Fatal(err)
	}
	o := w.o
	o.BootID = id
	w.Store = w.open(o)
	if err := w.Verify(w.Context()); err != nil {
		w.Fatal(err)
	}
}

func testBoot(w *world) {
	w.attach()
	w.write("a", "1")
	w.mustCommit()
	used := time.Now().Add(-time.Minute).Truncate(time.Second)
	if err := os.Chtimes(w.path(w.cache.Key, currentFile), used, used); err != nil {
		w.Fatal(err)
	}
	w.attach() // a run that is cut short
	w.write("a", "2")
	if err := os.Chtimes(w.path(w.cache.Key, currentFile), used, used); err != nil {
		w.Fatal(err)
	}
	w.reboot("boot-2")
	if held, err := w.Held(); err != nil || len(held) != 1 || !held[0].UsedAt.Equal(used) {
		w.Fatalf("held %+v, %v: want one that was used at %s", held, err, used)
	}
	if o := w.commit(); o.Committed {
		w.Fatalf("the view of another boot was committed: %+v", o)
	}
	w.attach()
	w.wantTree(map[string]string{"a": "1"})
	// What was not verified in this boot is verified when it is used.
	for boot, damage := range []string{"1", "2"} {
		if err := w.Hide(); err != nil {
			w.Fatal(err)
		}
		o := w.o
		o.BootID = fmt.Sprint("later boot ", boot)
		w.Store = w.open(o)
		st, err := w.load(w.cache.Key)
		if err != nil {
			w.Fatal(err)
		}
		if err := overwrite(filepath.Join(w.path(w.cache.Key), st.Layers[0].ID, "0/a"), damage); err != nil {
			w.Fatal(err)
		}
		cut, cancel := context.WithCancel(w.Context())
		cancel()
		if names, err := w.Attach(cut, 1000, w.home, []Cache{w.cache}, nil); err == nil || len(names) > 0 {
			w.Fatalf("attached %q within no time", names)
		}
		w.attach()
		if damage == "1" {
			w.wantTree(map[string]string{"a": "1"})
			continue
		}
		w.wantTree(map[string]string{})
		break
	}
}

// cutAfter is a context that ends when it has been asked so often.
type cutAfter struct {
	context.Context
	left int
}

func (c *cutAfter) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// testCutCommit: a commit that takes too long ends, between two files or in one, and the cache stays as it was. With time enough it is kept.
func testCutCommit(w *world) {
	w.attach()
	w.write("a", "1")
	w.mustCommit()
	cuts := 0
	for calls := 0; ; calls++ {
		w.attach()
		w.wantTree(map[string]string{"a": "1"})
		w.write("b", "2")
		w.write("large", strings.Repeat("x", 1<<20))
		w.run++
		outcomes, err := w.Commit(&cutAfter{w.Context(), calls}, w.run, []string{w.cache.Name})
		if err == nil {
			if len(outcomes) != 1 || !outcomes[0].Committed {
				w.Fatalf("with %d calls: %+v", calls, outcomes)
			}
			break
		}
		if cuts++; !errors.Is(err, context.DeadlineExceeded) {
			w.Fatalf("with %d calls: %v", calls, err)
		}
		if err := w.Discard(); err != nil {
			w.Fatal(err)
		}
	}
	if cuts < 7 { // before it, at three entries, and at the four reads of the large file
		w.Errorf("it could be cut at %d places only", cuts)
	}
	w.attach()
	w.wantTree(map[string]string{"a": "1", "b": "2", "large": strings.Repeat("x", 1<<20)})
}

func testEviction(w *world) {
	now := time.Now()
	for i := range MaxCaches + 2 {
		w.cache.Key = fmt.Sprintf("%016x", i)
		w.attach()
		w.write("a", "1")
		w.mustCommit()
		used := now.Add(time.Duration(i-100) * time.Second)
		if err := os.Chtimes(w.path(w.cache.Key, currentFile), used, used); err != nil {
			w.Fatal(err)
		}
	}
	if err := w.Evict(now); err != nil {
		w.Fatal(err)
	}
	held, err := w.Held()
	if err != nil || len(held) != MaxCaches || held[0].Key != w.cache.Key || held[MaxCaches-1].Key != fmt.Sprintf("%016x", 2) {
		w.Fatalf("held %+v, %v", held, err)
	}
	if err := w.Evict(now.Add(w.cache.Keep - 90*time.Second)); err != nil {
		w.Fatal(err)
	}
	if held, err = w.Held(); err != nil || len(held) != 8 {
		w.Fatalf("held %d caches, %v: want those that were used within %s", len(held), err, w.cache.Keep)
	}
	w.o.MinimumFree = 1 << 62
	if err := w.Evict(now); err != nil {
		w.Fatal(err)
	}
	if held, err = w.Held(); err != nil || len(held) != 0 {
		w.Fatalf("held %+v, %v: want none on a full disk", held, err)
	}
}

// testStale commits a view whose base another commit has replaced.
func testStale(w *world) {
	w.attach()
	w.write("a", "1")
	w.mustCommit()
	w.attach()
	w.write("a", "2")
	st, err := w.load(w.cache.Key)
	if err != nil {
		w.Fatal(err)
	}
	layers, err := w.merge(attached{Cache: w.cache}, st.Layers)
	if err != nil {
		w.Fatal(err)
	}
	st.Layers = layers
	if err := w.save(w.cache.Key, st); err != nil {
		w.Fatal(err)
	}
	if o := w.commit(); o.Committed {
		w.Fatalf("a stale view was committed: %+v", o)
	}
	w.attach()
	w.wantTree(map[string]string{"a": "1"})
	w.run -= 2
	if o := w.commit(); o.Committed {
		w.Fatalf("a view of a later assignment was committed: %+v", o)
	}
}

func testOtherPaths(w *world) {
	w.attach()
	w.write("a", "1")
	w.mustCommit()
	w.cache.Targets = w.cache.Targets[:1]
	w.attach()
	w.wantTree(map[string]string{})
}

// testLinkedHome attaches below a home that leads elsewhere.
func testLinkedHome(w *world) {
	elsewhere := w.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(w.home, "go")); err != nil {
		w.Fatal(err)
	}
	names, err := w.Attach(w.Context(), 1, w.home, []Cache{w.cache}, nil)
	if err == nil || len(names) > 0 {
		w.Fatalf("attached %q through a link: %v", names, err)
	}
	if v := w.loadView(); len(v.Caches) > 0 {
		w.Fatalf("what was not attached can be committed: %+v", v)
	}
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) > 0 {
		w.Fatalf("there are %v, %v", entries, err)
	}
}

// testDrop: a cache that an operator dropped is gone before the next run sees it, what is attached goes on, and a bad key attaches nothing.
func testDrop(w *world) {
	w.attach()
	w.write("a", "1")
	w.mustCommit()
	w.attach()
	if names, err := w.Attach(w.Context(), w.run, w.home, []Cache{w.cache}, []string{w.cache.Key}); err != nil || len(names) != 1 {
		w.Fatalf("attached again: %q, %v", names, err)
	}
	w.wantTree(map[string]string{"a": "1"})
	w.mustCommit()
	w.run++
	if err := tree.Renew(w.home, w.o.Owner, 0o755); err != nil {
		w.Fatal(err)
	}
	if names, err := w.Attach(w.Context(), w.run, w.home, []Cache{w.cache}, []string{"../../etc"}); err == nil || len(names) > 0 {
		w.Fatalf("attached %q, %v", names, err)
	}
	other := strings.Repeat("e", 16)
	if names, err := w.Attach(w.Context(), w.run, w.home, []Cache{w.cache}, []string{other, w.cache.Key}); err != nil || len(names) != 1 {
		w.Fatalf("attached %q, %v", names, err)
	}
	w.wantTree(map[string]string{})
	w.write("b", "2")
	w.mustCommit()
	w.attach()
	w.wantTree(map[string]string{"b": "2"})
}

func testBadCaches(w *world) {
	for _, bad := range []Cache{
		{Key: "../../../../etc", Name: "x", Targets: w.cache.Targets},
		{Key: w.cache.Key, Name: "x", Targets: []string{"/etc"}},
		{Key: w.cache.Key, Name: "x"},
	} {
		if names, err := w.Attach(w.Context(), 1, w.home, []Cache{bad}, nil); err == nil || len(names) > 0 {
			w.Errorf("attached %+v", bad)
		}
		if err := w.Discard(); err != nil {
			w.Fatal(err)
		}
	}
	if err := w.Remove("../x"); err == nil {
		w.Error("deleted what is no key")
	}
}
