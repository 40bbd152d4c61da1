package tree

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Mirror makes the tree to equal to from. What is missing or differs is hard-linked, or copied where that is not possible;
// what is not in from is deleted. The directories of to get the given owner. Files keep theirs if possible: then the owner
// of the directories can replace a file but not write to it, which would change the original too.
func Mirror(from, to string, owner Owner) error {
	return mirroring{owner: owner, link: true}.tree(from, to)
}

// Copy makes the tree to equal to from, with everything in it a copy that belongs to the given owner.
func Copy(from, to string, owner Owner) error { return mirroring{owner: owner}.tree(from, to) }

// mirroring holds what is the same for a whole tree.
type mirroring struct {
	owner Owner
	// link says that files are linked, or copied with the owner that they have.
	link bool
}

func (m mirroring) tree(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return failed("open", from, err)
	}
	defer source.Close()
	parent, name, err := split(to)
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	target, err := replaceDir(parent, name, to)
	if errors.Is(err, ErrMount) {
		target, err = openTop(parent, name)
	}
	if err != nil {
		return err
	}
	defer target.Close()
	return m.dir(source, target, to)
}

// replaceDir opens a directory, and makes it one if it is not.
func replaceDir(parent int, name, path string) (*os.File, error) {
	dir, err := openBelow(parent, name)
	if err == nil {
		return dir, nil
	}
	if errors.Is(err, ErrMount) {
		return nil, failed("open", path, err)
	}
	if err := removeAt(parent, name, path); err != nil {
		return nil, err
	}
	if err := unix.Mkdirat(parent, name, 0o700); err != nil {
		return nil, failed("create", path, err)
	}
	if dir, err = openBelow(parent, name); err != nil {
		return nil, failed("open", path, err)
	}
	return dir, nil
}

// dir mirrors a directory, recursively: as deep as the original, which an attacker cannot write to.
func (m mirroring) dir(from, to *os.File, path string) error {
	names, err := from.Readdirnames(-1)
	if err != nil {
		return failed("read", from.Name(), err)
	}
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	ready(to)
	if err := removeOthers(to, path, wanted); err != nil {
		return err
	}
	for _, name := range names {
		if err := m.entry(from, to, name, filepath.Join(path, name)); err != nil {
			return err
		}
	}
	info, err := from.Stat()
	if err != nil {
		return failed("look at", from.Name(), err)
	}
	return own(to, path, m.owner, info.Mode())
}

// removeOthers deletes all names except those that are wanted. Each round except the last deletes something.
func removeOthers(dir *os.File, path string, wanted map[string]bool) error {
	for range maxRounds {
		deleted := false
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return failed("read", path, err)
		}
		for {
			names, err := dir.Readdirnames(batch)
			for _, name := range names {
				if wanted[name] {
					continue
				}
				deleted = true
				if err := removeAt(int(dir.Fd()), name, filepath.Join(path, name)); err != nil {
					return err
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return failed("read", path, err)
			}
		}
		if !deleted {
			return nil
		}
	}
	return failed("empty", path, ErrBusy)
}

func (m mirroring) entry(from, to *os.File, name, path string) error {
	source, target := int(from.Fd()), int(to.Fd())
	var want, have unix.Stat_t
	if err := unix.Fstatat(source, name, &want, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return failed("look at", filepath.Join(from.Name(), name), err)
	}
	if want.Mode&unix.S_IFMT == unix.S_IFDIR {
		return m.below(from, to, name, path)
	}
	err := unix.Fstatat(target, name, &have, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == nil:
		if m.same(want, have) && (want.Mode&unix.S_IFMT != unix.S_IFLNK || sameTarget(source, target, name)) {
			return nil
		}
		if err := removeAt(target, name, path); err != nil {
			return err
		}
	case !errors.Is(err, unix.ENOENT):
		return failed("look at", path, err)
	}
	switch want.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		err = m.symlink(source, target, name)
	case unix.S_IFREG:
		err = m.file(from, to, name, want)
	default:
		err = errors.New("it is neither a file nor a link nor a directory: take it out of the original")
	}
	if err != nil {
		return failed("mirror", path, err)
	}
	return nil
}

func (m mirroring) below(from, to *os.File, name, path string) error {
	shown := filepath.Join(from.Name(), name)
	source, err := openAt(int(from.Fd()), name, shown, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return failed("open", shown, err)
	}
	defer source.Close()
	target, err := replaceDir(int(to.Fd()), name, path)
	if err != nil {
		return err
	}
	defer target.Close()
	return m.dir(source, target, path)
}

// same reports whether two names are one file, or one is a copy that has not changed since. With the owner of the original,
// no other user can have set its times.
func (m mirroring) same(want, have unix.Stat_t) bool {
	if want.Mode&unix.S_IFMT == unix.S_IFLNK {
		return have.Mode&unix.S_IFMT == unix.S_IFLNK && m.ownerOf(want) == (Owner{UID: int(have.Uid), GID: int(have.Gid)})
	}
	if want.Dev == have.Dev && want.Ino == have.Ino {
		return m.link
	}
	return have.Mode == want.Mode && have.Size == want.Size && have.Mtim == want.Mtim &&
		m.ownerOf(want) == (Owner{UID: int(have.Uid), GID: int(have.Gid)})
}

// ownerOf returns the owner of a copy. Only root can give files away.
func (m mirroring) ownerOf(original unix.Stat_t) Owner {
	switch {
	case !m.link:
		return m.owner
	case os.Geteuid() == 0:
		return Owner{UID: int(original.Uid), GID: int(original.Gid)}
	}
	return Owner{UID: os.Geteuid(), GID: os.Getegid()}
}

// linkBuffer holds any target of a link and one byte more: PATH_MAX of linux/limits.h.
const linkBuffer = unix.PathMax + 1

func readlink(dir int, name string) (string, error) {
	buf := make([]byte, linkBuffer)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

func sameTarget(source, target int, name string) bool {
	want, err := readlink(source, name)
	have, err2 := readlink(target, name)
	return err == nil && err2 == nil && want == have
}

func (m mirroring) symlink(source, target int, name string) error {
	points, err := readlink(source, name)
	if err != nil {
		return err
	}
	if err := unix.Symlinkat(points, target, name); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(source, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	owner := m.ownerOf(st)
	return unix.Fchownat(target, name, owner.UID, owner.GID, unix.AT_SYMLINK_NOFOLLOW)
}

func (m mirroring) file(from, to *os.File, name string, want unix.Stat_t) error {
	source, target := int(from.Fd()), int(to.Fd())
	if m.link && unix.Linkat(source, name, target, name, 0) == nil {
		return nil
	}
	in, err := openAt(source, name, name, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := openAt(target, name, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = m.finishCopy(int(out.Fd()), want)
	}
	return errors.Join(err, out.Close())
}

// finishCopy sets the times last: a copy that was interrupted has the wrong ones.
func (m mirroring) finishCopy(fd int, want unix.Stat_t) error {
	owner := m.ownerOf(want)
	if err := unix.Fchown(fd, owner.UID, owner.GID); err != nil {
		return err
	}
	if err := unix.Fchmod(fd, want.Mode&0o7777); err != nil {
		return err
	}
	times := []unix.Timespec{want.Mtim, want.Mtim}
	return unix.UtimesNanoAt(unix.AT_FDCWD, procPath(fd), times, 0)
}
