package tree

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// identity identifies a directory for as long as it exists.
type identity struct{ dev, ino uint64 }

func identityOf(fd int) (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return identity{}, err
	}
	return identity{dev: st.Dev, ino: st.Ino}, nil
}

// openBelow opens the directory name in parent for reading. It is an error when that is a link (ELOOP), another kind of
// file (ENOTDIR) or a mount (ErrMount). A directory that its owner may not read is made readable.
func openBelow(parent int, name string) (*os.File, error) {
	f, err := openPermitted(parent, name, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_XDEV)
	if errors.Is(err, ErrMount) && movedAway(parent, name) {
		return nil, unix.ENOENT
	}
	return f, err
}

// movedAway reports whether a directory was moved out of parent while it was opened. The kernel has the same error for that
// and for a mount. If it does not say what is a mount, the directory counts as one.
func movedAway(parent int, name string) bool {
	var st unix.Statx_t
	err := unix.Statx(parent, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, 0, &st)
	if err != nil {
		return errors.Is(err, unix.ENOENT)
	}
	return st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0
}

// openTop opens a directory that may be a mount but not a link.
func openTop(parent int, name string) (*os.File, error) {
	return openPermitted(parent, name, unix.RESOLVE_NO_SYMLINKS)
}

// openPermitted opens a directory, and makes it readable first if its owner may not read it.
func openPermitted(parent int, name string, resolve uint64) (*os.File, error) {
	f, err := openDir(parent, name, resolve)
	if errors.Is(err, unix.EACCES) && permit(parent, name) == nil {
		f, err = openDir(parent, name, resolve)
	}
	return f, err
}

// openAbove opens the directory that dir is in, on the same mount.
func openAbove(dir *os.File) (*os.File, error) {
	return openDir(int(dir.Fd()), "..", unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_XDEV)
}

func openDir(parent int, name string, resolve uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: resolve}
	fd, err := retried(func() (int, error) { return unix.Openat2(parent, name, &how) })
	switch {
	case errors.Is(err, unix.EXDEV):
		return nil, ErrMount
	case err != nil:
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openAt opens a name in a directory, which may not be a link. The file is called shown.
func openAt(parent int, name, shown string, flags int) (*os.File, error) {
	fd, err := retried(func() (int, error) {
		return unix.Openat(parent, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), shown), nil
}

// pin opens what has a name as a path only. What is done through its procPath is done to that very file.
func pin(parent int, name string) (int, error) {
	return retried(func() (int, error) {
		return unix.Openat(parent, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
}

func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// permit gives the owner every right to the directory name in parent.
func permit(parent int, name string) error {
	fd, err := pin(parent, name)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.ENOTDIR
	}
	return unix.Chmod(procPath(fd), 0o700)
}

// The attributes of chattr(1) that keep a file from being deleted: FS_IMMUTABLE_FL and FS_APPEND_FL of linux/fs.h.
const keeping = 0x10 | 0x20

// unlock makes a name in a directory deletable: it gives the owner write permission on the directory, and removes the
// attributes of the directory and of the named file. It reports no failure, since the deletion will.
func unlock(dir *os.File, name string) {
	ready(dir)
	pinned, err := pin(int(dir.Fd()), name)
	if err != nil {
		return
	}
	defer unix.Close(pinned)
	var st unix.Stat_t
	// Only these two types have attributes, and to open one of the others may block or have an effect.
	if unix.Fstat(pinned, &st) != nil || (st.Mode&unix.S_IFMT != unix.S_IFREG && st.Mode&unix.S_IFMT != unix.S_IFDIR) {
		return
	}
	opened, err := retried(func() (int, error) {
		return unix.Open(procPath(pinned), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return
	}
	defer unix.Close(opened)
	unkeep(opened)
}

// ready makes a directory writable for its owner.
func ready(dir *os.File) {
	fd := int(dir.Fd())
	unkeep(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&0o700 != 0o700 {
		_ = unix.Fchmod(fd, st.Mode&0o7777|0o700)
	}
}

// unkeep removes the attributes. Many file systems have none.
func unkeep(fd int) {
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err == nil && flags&keeping != 0 {
		_ = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags&^keeping))
	}
}
