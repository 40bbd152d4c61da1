package tree_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/tree"
)

// self is the only owner that a test without rights of root can name.
func self() tree.Owner { return tree.Owner{UID: os.Getuid(), GID: os.Getgid()} }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(t, os.WriteFile(path, []byte(text), 0o755))
}

// list tells kind and content of everything below a directory, by path.
func list(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	check(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case d.IsDir():
			all[name] = "directory"
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			all[name] = "link to " + target
			return err
		case d.Type().IsRegular():
			text, err := os.ReadFile(path)
			all[name] = "file " + string(text)
			return err
		default:
			all[name] = d.Type().String()
		}
		return nil
	}))
	return all
}

// nest makes a chain of directories, which no path is long enough to name, with a file in the last one.
func nest(t *testing.T, dir string, levels int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(t, err)
	for i := range levels {
		name := fmt.Sprintf("level-%d", i)
		check(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		check(t, errors.Join(err, unix.Close(fd)))
		fd = next
	}
	file, err := unix.Openat(fd, "file", unix.O_CREAT|unix.O_CLOEXEC, 0o644)
	check(t, errors.Join(err, unix.Close(file), unix.Close(fd)))
}

// hostile are trees at a path. Nothing outside is to be touched.
var hostile = map[string]func(t *testing.T, path, outside string){
	"nothing": func(*testing.T, string, string) {},
	"a file":  func(t *testing.T, path, _ string) { put(t, path, "x") },
	"a link to a directory": func(t *testing.T, path, outside string) {
		check(t, os.Symlink(outside, path))
	},
	"links within": func(t *testing.T, path, outside string) {
		put(t, path+"/a/b/file", "x")
		check(t, os.Symlink(outside, path+"/a/out"))
		check(t, os.Symlink(outside+"/file", path+"/a/b/out"))
		check(t, os.Symlink("..", path+"/a/up"))
	},
	"a second name of a file outside": func(t *testing.T, path, outside string) {
		check(t, os.Mkdir(path, 0o755))
		check(t, os.Link(outside+"/file", path+"/file"))
	},
	"without permissions": func(t *testing.T, path, _ string) {
		put(t, path+"/a/b/file", "x")
		put(t, path+"/a/c/file", "x")
		check(t, os.Chmod(path+"/a/b", 0o500))
		check(t, os.Chmod(path+"/a/c", 0))
		check(t, os.Chmod(path+"/a", 0o100))
		check(t, os.Chmod(path, 0o400))
	},
	"odd names": func(t *testing.T, path, _ string) {
		for _, name := range []string{"a\nb", " ", "...", "-rf", "\xff\xfe", strings.Repeat("x", 255), "a\nb.d/c\nd"} {
			put(t, filepath.Join(path, name), "x")
		}
	},
	"odd kinds": func(t *testing.T, path, _ string) {
		check(t, os.MkdirAll(path+"/d", 0o755))
		check(t, syscall.Mkfifo(path+"/pipe", 0))
		check(t, syscall.Mknod(path+"/d/socket", syscall.S_IFSOCK, 0))
	},
	"500 levels": func(t *testing.T, path, _ string) {
		check(t, os.Mkdir(path, 0o755))
		nest(t, path, 500)
	},
	"deep and wide": func(t *testing.T, path, _ string) {
		dir := path
		for range 40 { // more levels than are held open
			for i := range 5 {
				put(t, fmt.Sprintf("%s/file-%d", dir, i), "x")
				put(t, fmt.Sprintf("%s/dir-%d/file", dir, i), "x")
			}
			dir += "/dir-4"
		}
	},
	"3,000 files": func(t *testing.T, path, _ string) {
		check(t, os.Mkdir(path, 0o755))
		fd, err := unix.Open(path, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		check(t, err)
		for i := range 3000 { // more than are read at a time
			check(t, unix.Mknodat(fd, fmt.Sprintf("file-%d", i), unix.S_IFREG|0o644, 0))
		}
		check(t, unix.Close(fd))
	},
}

// each runs a test on every hostile tree, and looks at what is outside afterwards.
func each(t *testing.T, test func(t *testing.T, path string)) {
	t.Helper()
	for name, plant := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, outside := filepath.Join(t.TempDir(), "tree"), t.TempDir()
			put(t, outside+"/file", "precious")
			check(t, os.Chmod(outside, 0o500))
			plant(t, path, outside)
			test(t, path)
			want := map[string]string{".": "directory", "file": "file precious"}
			if diff := cmp.Diff(want, list(t, outside)); diff != "" {
				t.Errorf("outside (-want +got):\n%s", diff)
			}
			if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o500 {
				t.Errorf("outside has mode %v (%v)", info.Mode(), err)
			}
			check(t, os.Chmod(outside, 0o700)) // or the test could not delete it
		})
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, path string) {
		check(t, tree.Remove(path))
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is still there: %v", err)
		}
	})
}

// Its path has more than 100,000 bytes, where the kernel takes 4,096.
func TestRemoveVeryDeep(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tree")
	check(t, os.Mkdir(path, 0o755))
	nest(t, path, 10000)
	check(t, tree.Remove(path))
}

func TestRemoveBelowNothing(t *testing.T) {
	t.Parallel()
	check(t, tree.Remove(t.TempDir()+"/not/there"))
}

// Paths that mean nothing, or too much, are refused.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/", ".", "..", "a/../..", "a\x00b"} {
		if err := tree.Remove(path); !errors.Is(err, unix.EINVAL) {
			t.Errorf("%q: error %v, want EINVAL", path, err)
		}
	}
}

func TestClearIsInPlace(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, path string) {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() {
			if err := tree.Clear(path, self(), 0o755); err == nil {
				t.Error("what is no directory was emptied")
			}
			return
		}
		check(t, tree.Clear(path, self(), 0o755))
		again, err := os.Lstat(path)
		check(t, err)
		if !os.SameFile(info, again) {
			t.Error("the directory is another one")
		}
		if diff := cmp.Diff(map[string]string{".": "directory"}, list(t, path)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestClearKeeps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, path := range []string{"keep/inside", "keep2", "gone/keep", "gone2"} {
		put(t, filepath.Join(dir, path), "x")
	}
	for range 2 {
		check(t, tree.Clear(dir, self(), 0o755, "keep", "keep2", "not there"))
		want := map[string]string{".": "directory", "keep": "directory", "keep/inside": "file x", "keep2": "file x"}
		if diff := cmp.Diff(want, list(t, dir)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestRenew(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, path string) {
		check(t, tree.Renew(path, self(), 0o755))
		if diff := cmp.Diff(map[string]string{".": "directory"}, list(t, path)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestModes(t *testing.T) {
	t.Parallel()
	renew := map[string]func(string, fs.FileMode) error{
		"Renew": func(path string, mode fs.FileMode) error { return tree.Renew(path, self(), mode) },
		"Clear": func(path string, mode fs.FileMode) error { return tree.Clear(path, self(), mode) },
	}
	for name, renew := range renew {
		for _, mode := range []fs.FileMode{0o755, 0o700, 0o500, 0o775 | fs.ModeSetgid, 0o777 | fs.ModeSticky} {
			t.Run(name+" "+mode.String(), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "dir")
				put(t, dir+"/file", "x")
				check(t, os.Chmod(dir, 0o3751))
				for range 2 {
					check(t, renew(dir, mode))
					info, err := os.Lstat(dir)
					check(t, err)
					if got := info.Mode(); got != mode|fs.ModeDir {
						t.Errorf("mode %s, want %s", got, mode)
					}
				}
			})
		}
	}
}

// What a job sets on a directory beside its mode would be inherited by what the next one makes there.
func TestClearTakesAttributesOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check(t, unix.Setxattr(dir, "user.planted", []byte("x"), 0))
	// The default access control list user::rwx,group::rwx,other::rwx, in the format of linux/posix_acl_xattr.h.
	none := "\xff\xff\xff\xff"
	acl := "\x02\x00\x00\x00" + "\x01\x00\x07\x00" + none + "\x04\x00\x07\x00" + none + "\x20\x00\x07\x00" + none
	check(t, unix.Setxattr(dir, "system.posix_acl_default", []byte(acl), 0))
	check(t, tree.Clear(dir, self(), 0o755))
	if size, err := unix.Listxattr(dir, nil); err != nil || size != 0 {
		t.Errorf("%d bytes of names are left (%v)", size, err)
	}
}

// A process that writes at the same time may win, and what it moves about leads nowhere. It writes a bounded number of
// times: how much there is to delete must not depend on how the scheduler shares a busy machine. TestBound shows that a
// removal ends though its writer does not.
func TestAgainstAWriter(t *testing.T) {
	t.Parallel()
	const writes = 20 // beside each removal
	writers := map[string]func(dir, outside string, i int){
		"makes files": func(dir, _ string, i int) {
			_ = os.WriteFile(fmt.Sprintf("%s/a/b/file-%d", dir, i), nil, 0o644)
			_ = os.MkdirAll(dir+"/a/b", 0o755)
		},
		"goes deeper": func(dir, _ string, i int) {
			_ = os.MkdirAll(dir+"/a/b"+strings.Repeat("/d", i%100), 0o755)
		},
		"swaps a directory and a link": func(dir, outside string, _ int) {
			_ = os.MkdirAll(dir+"/a", 0o755)
			_ = os.Mkdir(dir+"/a/b", 0o755)
			_ = os.Symlink(outside, dir+"/link")
			_ = unix.Renameat2(unix.AT_FDCWD, dir+"/a/b", unix.AT_FDCWD, dir+"/link", unix.RENAME_EXCHANGE)
		},
		"moves directories up": func(dir, _ string, i int) {
			_ = os.MkdirAll(dir+"/a"+strings.Repeat("/d", 60), 0o755)
			_ = os.Rename(dir+"/a"+strings.Repeat("/d", 20+i%20), fmt.Sprintf("%s/up-%d", dir, i))
		},
	}
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, outside := t.TempDir()+"/dir", t.TempDir()
			put(t, outside+"/file", "precious")
			put(t, dir+"/a/b/c/file", "x")
			for round := range 5 {
				begun, ended := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(ended)
					for i := range writes {
						write(dir, outside, round*writes+i)
						if i == 0 {
							close(begun)
						}
					}
				}()
				<-begun
				if err := tree.Remove(dir); err != nil && !errors.Is(err, tree.ErrBusy) {
					t.Errorf("error %v, want none or ErrBusy", err)
				}
				<-ended
			}
			check(t, tree.Remove(dir))
			want := map[string]string{".": "directory", "file": "file precious"}
			if diff := cmp.Diff(want, list(t, outside)); diff != "" {
				t.Errorf("outside (-want +got):\n%s", diff)
			}
		})
	}
}

// An error about a tree that is deeper than a log line is long can still be logged.
func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	err := tree.Renew(t.TempDir()+"/not"+strings.Repeat("/there", 600), self(), 0o755)
	if err == nil || len(err.Error()) > 700 || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("error of %d bytes: %v", len(fmt.Sprint(err)), err)
	}
}
