package tree_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/tree"
)

// original makes what is to be mirrored.
func original(t *testing.T) string {
	t.Helper()
	from := filepath.Join(t.TempDir(), "from")
	put(t, from+"/config.sh", "config")
	put(t, from+"/bin/listener", "good")
	put(t, from+"/bin/deep/er/file", "x")
	put(t, from+"/read-only/file", "x")
	check(t, os.Symlink("bin/listener", from+"/link"))
	// Files of one size that are written at once may have the same time.
	old := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	check(t, os.Chtimes(from+"/bin/listener", old, old))
	check(t, os.Chmod(from+"/read-only", 0o555))
	t.Cleanup(func() { _ = os.Chmod(from+"/read-only", 0o755) })
	return from
}

// damages are what a job may have left where the mirror should be.
var damages = map[string]func(t *testing.T, to string){
	"nothing there": func(*testing.T, string) {},
	"a file":        func(t *testing.T, to string) { put(t, to, "x") },
	"a link": func(t *testing.T, to string) {
		check(t, os.Symlink(t.TempDir(), to))
	},
	"everything wrong": func(t *testing.T, to string) {
		put(t, to+"/extra/file", "x")
		put(t, to+"/bin", "a file for a directory")
		put(t, to+"/config.sh/file", "a directory for a file")
		put(t, to+"/link", "a file for a link")
		check(t, os.Symlink("/etc", to+"/read-only"))
	},
	"another content":     func(t *testing.T, to string) { put(t, to+"/bin/listener", "evil") },
	"another link":        func(t *testing.T, to string) { check(t, os.MkdirAll(to, 0o755)); check(t, os.Symlink("x", to+"/link")) },
	"without permissions": func(t *testing.T, to string) { put(t, to+"/bin/x/y", "x"); check(t, os.Chmod(to+"/bin", 0)) },
	"very deep":           func(t *testing.T, to string) { check(t, os.MkdirAll(to+"/bin", 0o755)); nest(t, to+"/bin", 300) },
}

// Whatever a job did to the copy, it is equal to the original afterwards.
func TestMirrorAndCopy(t *testing.T) {
	t.Parallel()
	for verb, do := range map[string]func(from, to string, owner tree.Owner) error{"Mirror": tree.Mirror, "Copy": tree.Copy} {
		for name, damage := range damages {
			t.Run(verb+" "+name, func(t *testing.T) {
				t.Parallel()
				from, to := original(t), filepath.Join(t.TempDir(), "to")
				want := list(t, from)
				damage(t, to)
				for range 2 {
					check(t, do(from, to, self()))
					if diff := cmp.Diff(want, list(t, to)); diff != "" {
						t.Errorf("copy (-want +got):\n%s", diff)
					}
				}
				if diff := cmp.Diff(want, list(t, from)); diff != "" {
					t.Errorf("original (-want +got):\n%s", diff)
				}
				info, err := os.Stat(to + "/read-only")
				check(t, err)
				if info.Mode() != 0o555|fs.ModeDir {
					t.Errorf("mode %s, want that of the original", info.Mode())
				}
				check(t, os.Chmod(to+"/read-only", 0o755)) // or the test could not delete it
			})
		}
	}
}

// inode tells a file from another.
func inode(t *testing.T, path string) (st unix.Stat_t) {
	t.Helper()
	check(t, unix.Lstat(path, &st))
	return st
}

// A copy stays as long as it is like its original. Its owner cannot write into the original.
func TestCopyIsKept(t *testing.T) {
	t.Parallel()
	from, to := original(t), filepath.Join(t.TempDir(), "to")
	defer os.Chmod(to+"/read-only", 0o755)
	check(t, tree.Copy(from, to, self()))
	first := inode(t, to+"/bin/listener")
	if first.Ino == inode(t, from+"/bin/listener").Ino {
		t.Error("the copy is the original")
	}
	check(t, tree.Copy(from, to, self()))
	if again := inode(t, to+"/bin/listener"); again.Ino != first.Ino {
		t.Error("the same was copied again")
	}
	put(t, to+"/bin/listener", "evil") // of the same size
	check(t, tree.Copy(from, to, self()))
	if text, err := os.ReadFile(to + "/bin/listener"); err != nil || string(text) != "good" {
		t.Errorf("it holds %q (%v)", text, err)
	}
}

// A mirror is made of links, so that it costs neither time nor disk. One that is whole is not touched: that would be
// seen in the times of the original.
func TestMirrorLinks(t *testing.T) {
	t.Parallel()
	from, to := original(t), filepath.Join(filepath.Dir(t.TempDir()), "to")
	defer os.Chmod(to+"/read-only", 0o755)
	check(t, tree.Mirror(from, to, self()))
	first := inode(t, from+"/bin/listener")
	if inode(t, to+"/bin/listener").Ino != first.Ino {
		t.Error("it is a copy")
	}
	check(t, tree.Mirror(from, to, self()))
	if again := inode(t, from+"/bin/listener"); again.Ctim != first.Ctim {
		t.Error("the original was touched")
	}
}

func TestMirrorOfWhatCannotBe(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	check(t, unix.Mkfifo(from+"/pipe", 0o644))
	if err := tree.Mirror(from, t.TempDir()+"/to", self()); err == nil {
		t.Error("a pipe was mirrored")
	}
	if err := tree.Mirror(from+"/none", t.TempDir()+"/to", self()); err == nil {
		t.Error("nothing was mirrored")
	}
}
