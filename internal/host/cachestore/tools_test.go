package cachestore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newToolWorld is a world whose only cache is one of tools.
func newToolWorld(t *testing.T, m Mechanism) *world {
	t.Helper()
	w := newWorld(t, m)
	w.cache.Name, w.cache.Tools, w.cache.Targets = "tools", true, []string{filepath.Join(w.home, "hostedtoolcache")}
	return w
}

// install adds a version of a tool as setup actions do.
func (w *world) install(version, content string) {
	w.Helper()
	w.write(version+"/bin/tool", content)
	w.write(version+".complete", "")
}

// look begins a run after the last one, which keeps nothing is kept.
func (w *world) look() {
	w.Helper()
	if err := w.Discard(); err != nil {
		w.Fatal(err)
	}
	w.attach()
}

// wantTool wants a version of a tool to be whole, with a certain content, or not to be there at all if that is empty.
func (w *world) wantTool(version, want string) {
	w.Helper()
	content, err := os.ReadFile(w.at(version + "/bin/tool"))
	_, markerErr := os.Stat(w.at(version + ".complete"))
	if want == "" && errors.Is(err, fs.ErrNotExist) && errors.Is(markerErr, fs.ErrNotExist) {
		return
	}
	if err != nil || markerErr != nil || string(content) != want {
		w.Fatalf("%s is %q, %v, %v, want %q", version, content, err, markerErr, want)
	}
}

// testTools is what holds for a cache of tools by every mechanism.
func testTools(t *testing.T, m Mechanism) {
	for name, test := range map[string]func(w *world){
		"additions":   testToolsAdded,
		"nothing":     testNothingAdded,
		"changes":     testToolsChanged,
		"unfinished":  testUnfinishedTools,
		"strays":      testToolStrays,
		"full":        testToolsFull,
		"many layers": testManyTools,
		"other kind":  testOtherKind,
		"too large":   testToolTooLarge,
	} {
		t.Run(name, func(t *testing.T) { test(newToolWorld(t, m)) })
	}
}

func TestToolsCopied(t *testing.T) { testTools(t, Copy{}) }

func testToolsAdded(w *world) {
	w.look()
	w.install("go/1.22.1/x64", "go")
	o := w.commit()
	if !o.Committed || o.Bytes == 0 || !strings.Contains(o.Reason, "added 1 to it") {
		w.Fatalf("outcome %+v", o)
	}
	w.look()
	w.wantTool("go/1.22.1/x64", "go")
	w.install("go/1.23.0/x64", "newer")
	w.install("node/20.1.0/arm64", "node")
	w.mustCommit()
	w.look()
	for version, content := range map[string]string{"go/1.22.1/x64": "go", "go/1.23.0/x64": "newer", "node/20.1.0/arm64": "node"} {
		w.wantTool(version, content)
	}
	if err := w.Verify(w.Context()); err != nil {
		w.Fatal(err)
	}
	if held, err := w.Held(); err != nil || len(held) != 1 {
		w.Fatalf("held %v, %v", held, err)
	}
}

func testNothingAdded(w *world) {
	w.look()
	if o := w.commit(); !o.Committed || o.Bytes != 0 {
		w.Fatalf("outcome %+v", o)
	}
	w.look()
	w.install("go/1.22.1/x64", "go")
	w.mustCommit()
	before, err := w.load(w.cache.Key)
	if err != nil {
		w.Fatal(err)
	}
	w.look()
	w.mustCommit()
	after, err := w.load(w.cache.Key)
	if err != nil || len(after.Layers) != 1 || after.Layers[0] != before.Layers[0] {
		w.Fatalf("a run that added nothing made %+v of %+v, %v", after, before, err)
	}
}

// testToolsChanged: what a run changes of a tool that was there stays with the run.
func testToolsChanged(w *world) {
	w.look()
	w.install("go/1.22.1/x64", "go")
	w.install("node/20.1.0/x64", "node")
	w.mustCommit()
	for name, change := range map[string]func() error{
		"a file":              func() error { return os.WriteFile(w.at("go/1.22.1/x64/bin/tool"), []byte("poison"), 0o755) },
		"a file more":         func() error { return os.WriteFile(w.at("go/1.22.1/x64/bin/more"), []byte("poison"), 0o755) },
		"its marker":          func() error { return os.Remove(w.at("go/1.22.1/x64.complete")) },
		"the version":         func() error { return os.RemoveAll(w.at("go/1.22.1")) },
		"the tool":            func() error { return os.RemoveAll(w.at("go")) },
		"the mode":            func() error { return os.Chmod(w.at("go/1.22.1/x64"), 0o700) },
		"a file for the tool": func() error { return errors.Join(os.RemoveAll(w.at("go")), os.WriteFile(w.at("go"), nil, 0o644)) },
		"a link for the tool": func() error { return errors.Join(os.RemoveAll(w.at("go")), os.Symlink("node", w.at("go"))) },
		"it is put in again": func() error {
			err := os.RemoveAll(w.at("go/1.22.1"))
			w.install("go/1.22.1/x64", "poison")
			return err
		},
		"the tool is put in again": func() error {
			err := os.RemoveAll(w.at("go"))
			w.install("go/1.22.1/x64", "poison")
			return err
		},
	} {
		w.look()
		if err := change(); err != nil {
			w.Fatalf("%s: %v", name, err)
		}
		w.mustCommit()
		w.look()
		w.wantTree(map[string]string{
			"go": "a directory", "go/1.22.1": "a directory", "go/1.22.1/x64": "a directory", "go/1.22.1/x64/bin": "a directory",
			"go/1.22.1/x64/bin/tool": "go", "go/1.22.1/x64.complete": "",
			"node": "a directory", "node/20.1.0": "a directory", "node/20.1.0/x64": "a directory", "node/20.1.0/x64/bin": "a directory",
			"node/20.1.0/x64/bin/tool": "node", "node/20.1.0/x64.complete": "",
		})
	}
	// A version beside one that was deleted is kept, and that one is back.
	w.look()
	if err := os.RemoveAll(w.at("go")); err != nil {
		w.Fatal(err)
	}
	w.install("go/1.23.0/x64", "newer")
	w.mustCommit()
	w.look()
	w.wantTool("go/1.22.1/x64", "go")
	w.wantTool("go/1.23.0/x64", "newer")
	if err := w.Verify(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// testUnfinishedTools: a setup action uses no version without its marker, and the next one that wants it begins again.
func testUnfinishedTools(w *world) {
	w.look()
	w.write("go/1.22.1/x64/bin/tool", "half")
	w.write("go/1.23.0/x64.complete", "")
	w.write("go/1.24.0/x64", "a file")
	w.write("go/1.24.0/x64.complete", "")
	w.write("go/1.25.0/x64/bin/tool", "its marker is a directory")
	w.write("go/1.25.0/x64.complete/x", "")
	w.write("go/1.26.0/x64/bin/tool", "its marker is a link")
	if err := os.Symlink("x64/bin/tool", w.at("go/1.26.0/x64.complete")); err != nil {
		w.Fatal(err)
	}
	w.install("node/20.1.0/x64", "node")
	w.mustCommit()
	w.look()
	w.wantTree(map[string]string{
		"node": "a directory", "node/20.1.0": "a directory", "node/20.1.0/x64": "a directory", "node/20.1.0/x64/bin": "a directory",
		"node/20.1.0/x64/bin/tool": "node", "node/20.1.0/x64.complete": "",
	})
}

// testToolStrays: what is no version of a tool is not kept, and links are never followed.
func testToolStrays(w *world) {
	w.look()
	elsewhere := w.TempDir()
	if err := os.WriteFile(filepath.Join(elsewhere, "x64.complete"), nil, 0o644); err != nil {
		w.Fatal(err)
	}
	w.write("file", "1")
	w.write("go/file", "1")
	w.write("empty/1/file", "1")
	err := errors.Join(os.Symlink(elsewhere, w.at("link")), os.Symlink(elsewhere, w.at("go/1.22.1")), os.Mkdir(w.at("go/1.23.0"), 0o755),
		os.Symlink(elsewhere, w.at("go/1.23.0/x64")), os.WriteFile(w.at("go/1.23.0/x64.complete"), nil, 0o644))
	if err != nil {
		w.Fatal(err)
	}
	if o := w.commit(); !o.Committed || o.Bytes != 0 {
		w.Fatalf("outcome %+v", o)
	}
	if _, err := os.Stat(filepath.Join(elsewhere, "x64.complete")); err != nil {
		w.Fatalf("what a link led to is gone: %v", err)
	}
}

// testToolsFull: a cache that is full begins again, with what the run has added.
func testToolsFull(w *world) {
	w.cache.Size = 1 << 20
	content := strings.Repeat("x", 600<<10)
	w.look()
	w.install("go/1.22.1/x64", content)
	w.mustCommit()
	w.look()
	w.install("go/1.23.0/x64", content)
	if o := w.commit(); !o.Committed || !strings.Contains(o.Reason, "it was full") {
		w.Fatalf("outcome %+v", o)
	}
	w.look()
	w.wantTool("go/1.22.1/x64", "")
	w.wantTool("go/1.23.0/x64", content)
	if err := w.Verify(w.Context()); err != nil {
		w.Fatal(err)
	}
}

func testManyTools(w *world) {
	for _, n := range strings.Split("abcdefghijkl", "") {
		w.look()
		w.install("go/1."+n+"/x64", n)
		w.mustCommit()
	}
	w.look()
	for _, n := range strings.Split("abcdefghijkl", "") {
		w.wantTool("go/1."+n+"/x64", n)
	}
	if st, err := w.load(w.cache.Key); err != nil || len(st.Layers) > w.mostLayers() {
		w.Fatalf("%d layers, %v", len(st.Layers), err)
	}
}

// testOtherKind: a cache of files that becomes one of tools begins empty.
func testOtherKind(w *world) {
	w.cache.Tools = false
	w.look()
	w.write("file", "1")
	w.mustCommit()
	w.cache.Tools = true
	w.look()
	w.wantTree(map[string]string{})
}

func testToolTooLarge(w *world) {
	w.cache.Size = 1 << 20
	w.look()
	w.install("go/1.22.1/x64", "go")
	w.mustCommit()
	w.look()
	w.install("go/1.23.0/x64", strings.Repeat("x", 2<<20))
	if o := w.commit(); o.Committed {
		w.Fatalf("outcome %+v", o)
	}
	w.look()
	w.wantTool("go/1.22.1/x64", "go")
	w.wantTool("go/1.23.0/x64", "")
}

// testImage makes the tools of an image.
func testImage(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "hostedtoolcache")
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "go/1.21.0/x64/bin"), 0o755),
		os.WriteFile(filepath.Join(dir, "go/1.21.0/x64/bin/tool"), []byte("of the image"), 0o755),
		os.WriteFile(filepath.Join(dir, "go/1.21.0/x64.complete"), nil, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestImage: what a job could change is no image, and its identity changes with the tools that are in it.
func TestImage(t *testing.T) {
	t.Parallel()
	dir := testImage(t)
	first, err := readImage(dir)
	if err != nil || strings.Join(first.Above, " ") != "go go/1.21.0" || first.Dir != dir {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := readImage(dir); err != nil || again.Identity != first.Identity {
		t.Errorf("the same image has the identity %s, and then %s, %v", first.Identity, again.Identity, err)
	}
	later := first
	for _, change := range []func() error{
		func() error { return os.MkdirAll(filepath.Join(dir, "go/1.22.0/x64"), 0o755) },
		func() error { return os.Mkdir(filepath.Join(dir, "node"), 0o755) },
		func() error { return os.RemoveAll(filepath.Join(dir, "go/1.22.0")) },
		func() error { return os.Chtimes(filepath.Join(dir, "go/1.21.0/x64"), time.Time{}, time.Unix(1, 0)) }, // it was built again
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		next, err := readImage(dir)
		if err != nil || next.Identity == later.Identity || next.Identity == first.Identity {
			t.Errorf("identity %s of %q, after %s, %v", next.Identity, next.Above, later.Identity, err)
		}
		later = next
	}
	for _, path := range []string{"", "go", "go/1.21.0", "go/1.21.0/x64", "go/1.21.0/x64.complete"} {
		at := filepath.Join(dir, path)
		info, err := os.Stat(at)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(at, 0o777); err != nil {
			t.Fatal(err)
		}
		if i, err := readImage(dir); err == nil || i.Dir != "" {
			t.Errorf("an image in which all can write to %q: %+v, %v", path, i, err)
		}
		if err := os.Chmod(at, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	if i, err := readImage(filepath.Join(dir, "missing")); err != nil || i.Dir != "" {
		t.Errorf("no image: %+v, %v", i, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if i, err := readImage(link); err == nil || i.Dir != "" {
		t.Errorf("a link to an image: %+v, %v", i, err)
	}
}
