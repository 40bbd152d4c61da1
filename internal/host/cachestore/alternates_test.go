package cachestore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testBorrowers: no repository that reads from a mirror outlives the run, since it lacks objects once the mirror is gone.
func testBorrowers(t *testing.T, m Mechanism) {
	w := newWorld(t, m)
	w.o.Lender = filepath.Join(w.home, "gitmirror")
	reads := w.o.Lender + "/objects\n"
	w.attach()
	w.write("vcs/1/HEAD", "ref")
	w.write("vcs/1/objects/info/alternates", reads)
	w.write("vcs/2/HEAD", "ref")
	w.write("vcs/2/objects/info/alternates", "/elsewhere/objects\n")
	w.write("tool/file", "text")
	w.write("tool/.git/HEAD", "ref")
	w.write("tool/.git/objects/info/alternates", "/elsewhere/objects\n"+reads)
	w.write("no/alternates", reads)
	w.write("long/objects/info/alternates", strings.Repeat("/elsewhere/objects\n", 10_000)+reads)
	w.write("long/HEAD", "ref")
	w.mustCommit()
	w.attach()
	w.wantTree(map[string]string{
		"vcs": "a directory", "vcs/2": "a directory", "vcs/2/HEAD": "ref", "vcs/2/objects": "a directory", "vcs/2/objects/info": "a directory",
		"vcs/2/objects/info/alternates": "/elsewhere/objects\n", "tool": "a directory", "tool/file": "text", "no": "a directory", "no/alternates": reads,
	})

	// Its own repository that begins to read from the mirror goes back to what it was.
	w.write("vcs/2/objects/info/alternates", reads)
	w.write("vcs/2/objects/new", "an object")
	w.mustCommit()
	w.attach()
	if _, ok := m.(Overlay); ok {
		if got, err := os.ReadFile(w.at("vcs/2/objects/info/alternates")); err != nil || string(got) != "/elsewhere/objects\n" {
			t.Errorf("it reads from %q, %v", got, err)
		}
	}
	w.write("objects/info/alternates", reads)
	if o := w.commit(); o.Committed || !strings.Contains(o.Reason, "reads objects from") {
		t.Errorf("a cache that is such a repository: %+v", o)
	}
}

func TestBorrowersCopied(t *testing.T) { testBorrowers(t, Copy{}) }
