//go:build testhost

// These need root and a mount namespace of their own: they run in a container with systemd (make test-host).

package tree_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/tree"
)

func mount(t *testing.T, source, target, kind string, flags uintptr) {
	t.Helper()
	check(t, unix.Mount(source, target, kind, flags, ""))
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) })
}

// A mount in the tree is an error that names it, and what is mounted stays as it is.
func TestMounts(t *testing.T) {
	plant := map[string]func(t *testing.T, dir, outside string) (mounted string){
		"a directory": func(t *testing.T, dir, outside string) string {
			put(t, dir+"/a/b/file", "x")
			mount(t, outside, dir+"/a/b", "", unix.MS_BIND)
			return dir + "/a/b"
		},
		"a file": func(t *testing.T, dir, outside string) string {
			put(t, dir+"/a/file", "x")
			mount(t, outside+"/file", dir+"/a/file", "", unix.MS_BIND)
			return dir + "/a/file"
		},
		"the tree into itself": func(t *testing.T, dir, _ string) string {
			put(t, dir+"/a/b/file", "x")
			mount(t, dir, dir+"/a/b", "", unix.MS_BIND)
			return dir + "/a/b"
		},
		"the top": func(t *testing.T, dir, outside string) string {
			check(t, os.Mkdir(dir, 0o755))
			mount(t, outside, dir, "", unix.MS_BIND)
			return dir
		},
		"another file system": func(t *testing.T, dir, _ string) string {
			check(t, os.MkdirAll(dir+"/a/b", 0o755))
			mount(t, "tmpfs", dir+"/a/b", "tmpfs", 0)
			return dir + "/a/b"
		},
	}
	for name, plant := range plant {
		t.Run(name, func(t *testing.T) {
			dir, outside := filepath.Join(t.TempDir(), "dir"), t.TempDir()
			put(t, outside+"/file", "precious")
			mounted := plant(t, dir, outside)
			err := tree.Remove(dir)
			if !errors.Is(err, tree.ErrMount) || !strings.Contains(err.Error(), fmt.Sprintf("%q", mounted)) {
				t.Errorf("error %v, want one about %s", err, mounted)
			}
			want := map[string]string{".": "directory", "file": "file precious"}
			if diff := cmp.Diff(want, list(t, outside)); diff != "" {
				t.Errorf("outside (-want +got):\n%s", diff)
			}
			check(t, unix.Unmount(mounted, unix.MNT_DETACH))
			check(t, tree.Remove(dir))
		})
	}
}

// A directory that is a mount itself, as of a volume for the work, is renewed in its place.
func TestRenewOfAMount(t *testing.T) {
	dir := t.TempDir()
	mount(t, "tmpfs", dir, "tmpfs", 0)
	for range 2 {
		put(t, dir+"/a/file", "x")
		check(t, tree.Renew(dir, tree.Owner{UID: 12, GID: 34}, 0o750))
		var st unix.Stat_t
		check(t, unix.Lstat(dir, &st))
		if st.Uid != 12 || st.Gid != 34 || st.Mode != unix.S_IFDIR|0o750 || len(list(t, dir)) != 1 {
			t.Errorf("owner %d:%d, mode %o, holds %v", st.Uid, st.Gid, st.Mode, list(t, dir))
		}
	}
	put(t, dir+"/a/file", "x")
	check(t, tree.Mirror(original(t), dir, tree.Owner{UID: 12, GID: 34}))
	if list(t, dir)["bin/listener"] != "file good" {
		t.Errorf("holds %v", list(t, dir))
	}
}

// chattr sets the attributes of a file; the letters are those of chattr(1).
func chattr(t *testing.T, path string, flags int) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	check(t, err)
	defer unix.Close(fd)
	check(t, unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags))
}

func TestAttributes(t *testing.T) {
	const immutable, appendOnly = 0x10, 0x20
	for name, flags := range map[string]int{"immutable": immutable, "append-only": appendOnly, "both": immutable | appendOnly} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			put(t, dir+"/a/b/file", "x")
			put(t, dir+"/a/b/file2", "x")
			check(t, os.Mkdir(dir+"/a/empty", 0o755))
			for _, path := range []string{"/a/b/file", "/a/b", "/a/empty", "/a", ""} {
				chattr(t, dir+path, flags)
			}
			check(t, tree.Renew(dir, tree.Owner{UID: 12, GID: 34}, 0o755))
			put(t, dir+"/a/file", "x")
			chattr(t, dir+"/a/file", flags)
			chattr(t, dir+"/a", flags)
			chattr(t, dir, flags)
			check(t, tree.Clear(dir, tree.Owner{}, 0o755))
			put(t, dir+"/bin/listener", "x")
			chattr(t, dir+"/bin/listener", flags)
			chattr(t, dir+"/bin", flags)
			check(t, tree.Mirror(original(t), dir, tree.Owner{}))
			check(t, tree.Remove(dir))
		})
	}
}

// Files of a mirror stay root's, so that a job can replace but not rewrite them; its directories are the job's.
func TestMirrorGivesDirectoriesAway(t *testing.T) {
	from, to := original(t), filepath.Join(t.TempDir(), "to")
	check(t, tree.Mirror(from, to, tree.Owner{UID: 12, GID: 34}))
	for path, want := range map[string]uint32{"": 12, "/bin": 12, "/bin/deep/er": 12, "/bin/listener": 0, "/link": 0} {
		if got := inode(t, to+path).Uid; got != want {
			t.Errorf("%s belongs to %d, want %d", path, got, want)
		}
	}
	check(t, tree.Copy(from, to, tree.Owner{UID: 12, GID: 34}))
	for _, path := range []string{"", "/bin", "/bin/listener", "/link"} {
		if got := inode(t, to+path).Uid; got != 12 {
			t.Errorf("%s belongs to %d, want 12", path, got)
		}
	}
}

// maxWideMemory is what may be allocated at one time more than before: names of a batch for each open level.
const maxWideMemory = 32 << 20

func TestVeryWide(t *testing.T) {
	dir := t.TempDir()
	mount(t, "tmpfs", dir, "tmpfs", 0)
	for i := range 100000 {
		check(t, os.WriteFile(fmt.Sprintf("%s/file-%d", dir, i), nil, 0o644))
	}
	for i := range 100 {
		check(t, os.Mkdir(fmt.Sprintf("%s/dir-%d", dir, i), 0o755))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	check(t, tree.Clear(dir, tree.Owner{}, 0o755))
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > maxWideMemory {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}
