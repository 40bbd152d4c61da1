package tree

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Renew replaces whatever stands at path by an empty directory of the given owner and mode (permission bits, setgid and
// sticky). A directory that is itself a mount is emptied in its place, like Clear. An attacker must not be able to write
// to the directory above.
func Renew(path string, owner Owner, mode fs.FileMode) error {
	parent, name, err := split(path)
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	if err := removeAt(parent, name, path); err != nil {
		if errors.Is(err, ErrMount) && isMount(parent, name) {
			return Clear(path, owner, mode)
		}
		return err
	}
	if err := unix.Mkdirat(parent, name, 0o700); err != nil {
		return failed("create", path, err)
	}
	dir, err := openBelow(parent, name)
	if err != nil {
		return failed("open", path, err)
	}
	defer dir.Close()
	return own(dir, path, owner, mode)
}

// isMount reports whether a directory cannot be opened below its parent only because it is a mount.
func isMount(parent int, name string) bool {
	dir, err := openBelow(parent, name)
	if err == nil {
		dir.Close()
	}
	return errors.Is(err, ErrMount)
}

// Clear empties a directory in its place, except for the names to keep, and gives it that owner and mode and nothing else:
// access control lists, attributes and extended attributes of users are removed too.
func Clear(path string, owner Owner, mode fs.FileMode, keep ...string) error {
	parent, name, err := split(path)
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	dir, err := openTop(parent, name)
	if err != nil {
		return failed("open", path, err)
	}
	defer dir.Close()
	if err := emptyDir(dir, path, keep); err != nil {
		return err
	}
	return own(dir, path, owner, mode)
}

// own gives a directory its owner and mode, and removes everything else that could be set.
func own(dir *os.File, path string, owner Owner, mode fs.FileMode) error {
	if err := ownFD(int(dir.Fd()), owner, mode); err != nil {
		return failed("give away", path, err)
	}
	return nil
}

func ownFD(fd int, owner Owner, mode fs.FileMode) error {
	unkeep(fd)
	if err := strip(fd); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	// A change of the owner clears setuid and setgid, so the mode comes after it.
	given := int(st.Uid) != owner.UID || int(st.Gid) != owner.GID
	if given {
		if err := unix.Fchown(fd, owner.UID, owner.GID); err != nil {
			return err
		}
	}
	if bits := modeBits(mode); given || st.Mode&0o7777 != bits {
		return unix.Fchmod(fd, bits)
	}
	return nil
}

// modeBits is a mode in the kernel's terms.
func modeBits(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	if mode&fs.ModeSetuid != 0 {
		bits |= unix.S_ISUID
	}
	if mode&fs.ModeSetgid != 0 {
		bits |= unix.S_ISGID
	}
	if mode&fs.ModeSticky != 0 {
		bits |= unix.S_ISVTX
	}
	return bits
}

// strip removes the extended attributes that users set: access control lists, which outlive a change of owner, and user.*.
func strip(fd int) error {
	size, err := unix.Flistxattr(fd, nil)
	if errors.Is(err, unix.ENOTSUP) || (err == nil && size == 0) {
		return nil
	}
	if err != nil {
		return err
	}
	list := make([]byte, size)
	if size, err = unix.Flistxattr(fd, list); err != nil {
		return err
	}
	for name := range strings.SplitSeq(string(list[:size]), "\x00") {
		if !strings.HasPrefix(name, "system.posix_acl_") && !strings.HasPrefix(name, "user.") {
			continue
		}
		if err := unix.Fremovexattr(fd, name); err != nil && !errors.Is(err, unix.ENODATA) {
			return err
		}
	}
	return nil
}
