package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// tree lists a tree: kind and content by path.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case d.IsDir():
			all[name] = "directory"
		case d.Type() == os.ModeSymlink:
			target, err := os.Readlink(path)
			all[name] = "link to " + target
			return err
		default:
			text, err := os.ReadFile(path)
			all[name] = "file " + string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Whatever a job did to the copy, it is equal to the original afterwards.
func TestMirrorTree(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, to string){
		"nothing there": func(*testing.T, string) {},
		"a file":        func(t *testing.T, to string) { put(t, to, "x") },
		"a link": func(t *testing.T, to string) {
			if err := os.Symlink(t.TempDir(), to); err != nil {
				t.Fatal(err)
			}
		},
		"everything wrong": func(t *testing.T, to string) {
			put(t, filepath.Join(to, "extra/file"), "x")
			put(t, filepath.Join(to, "bin"), "a file for a directory")
			put(t, filepath.Join(to, "config.sh/file"), "a directory for a file")
			put(t, filepath.Join(to, "link"), "a file for a link")
		},
		"another content": func(t *testing.T, to string) { put(t, filepath.Join(to, "bin/listener"), "evil") },
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
			put(t, filepath.Join(from, "config.sh"), "config")
			put(t, filepath.Join(from, "bin/listener"), "good")
			put(t, filepath.Join(from, "bin/deep/er/file"), "x")
			if err := os.Symlink("bin/listener", filepath.Join(from, "link")); err != nil {
				t.Fatal(err)
			}
			// Files of one size that are written at once may have the same time.
			old := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
			if err := os.Chtimes(filepath.Join(from, "bin/listener"), old, old); err != nil {
				t.Fatal(err)
			}
			want := tree(t, from)
			prepare(t, to)
			for range 2 {
				if err := mirrorTree(from, to); err != nil {
					t.Fatal(err)
				}
				if got := tree(t, to); len(got) != len(want) {
					t.Errorf("got %v, want %v", got, want)
				}
				for name, content := range want {
					if got := tree(t, to)[name]; got != content {
						t.Errorf("%s is %q, want %q", name, got, content)
					}
				}
			}
			if again := tree(t, from); len(again) != len(want) {
				t.Errorf("the original became %v", again)
			}
		})
	}
}

// Where a file cannot be linked it is copied, and copied again when changed.
func TestCopyFile(t *testing.T) {
	t.Parallel()
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	put(t, from, "good")
	old := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(from, old, old); err != nil {
		t.Fatal(err)
	}
	want, err := os.Lstat(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := copyFile(from, to, want); err != nil {
		t.Fatal(err)
	}
	have, err := os.Lstat(to)
	if err != nil || !sameFile(want, have) {
		t.Errorf("a copy is not the same: %v", err)
	}
	put(t, to, "evil")
	if have, err = os.Lstat(to); err != nil || sameFile(want, have) {
		t.Errorf("a changed copy is the same: %v", err)
	}
}

// Directories that their owner may not write to are made writable, but none
// outside the tree.
func TestUnlockTree(t *testing.T) {
	t.Parallel()
	root, outside := filepath.Join(t.TempDir(), "root"), t.TempDir()
	put(t, filepath.Join(root, "a/b/file"), "x")
	if err := os.Symlink(outside, filepath.Join(root, "a/out")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{outside, filepath.Join(root, "a/b"), filepath.Join(root, "a")} {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	if err := unlockTree(root); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]os.FileMode{
		root: 0o700, filepath.Join(root, "a"): 0o700, filepath.Join(root, "a/b"): 0o700, outside: 0o500,
	} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %s, want %s", dir, info.Mode(), want)
		}
	}
}
