package cachestore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/tree"
)

// measure checks the bounds of a tree that a job has written, before anything is read of it. It returns what the tree takes: for each file the
// larger of its length and its blocks, so that a sparse file counts in full.
func measure(root string, limit uint64) (bytes uint64, err error) {
	links := map[uint64]*linked{}
	w := walker{do: func(e entry) error {
		if e.kind() == unix.S_IFREG && e.stat.Nlink > 1 {
			l := links[e.stat.Ino]
			if l == nil {
				links[e.stat.Ino] = &linked{path: e.path, want: uint64(e.stat.Nlink), seen: 1}
			} else {
				l.seen++
				return nil
			}
		}
		bytes += takes(e.stat)
		if bytes > limit {
			return tooLarge("it has more than %d MiB, which is its size", limit>>20)
		}
		return nil
	}}
	if err := w.walk(root); err != nil {
		return 0, err
	}
	for _, l := range links {
		if l.seen != l.want {
			return 0, refused("%q has a hard link elsewhere", shorten(l.path))
		}
	}
	return bytes, nil
}

// linked is a file with several names.
type linked struct {
	path       string
	want, seen uint64
}

// takes is what a file counts for, in bytes.
func takes(st unix.Stat_t) uint64 { return max(uint64(max(st.Size, 0)), uint64(st.Blocks)*512) }

// sealed is a tree that was made a layer.
type sealed struct {
	bytes uint64
	// leftOut counts what is no plain content, and was deleted.
	leftOut int
}

// sealer makes what a job has left a layer: all of it belongs to the user of jobs, has no bits and attributes but plain permissions, and is files,
// directories, links that stay inside, and the marks of overlayfs. Sockets, pipes, devices and links that lead out are deleted.
//
// No process of the job may be left. The tree may have been changed by an earlier call that was cut short.
type sealer struct {
	owner tree.Owner
	// overlay keeps the marks of overlayfs.
	overlay bool
	// below is what the layers below show; nil without overlayfs.
	below func(path string) (shown, bool)
	list  *listWriter
	// cut says why the sealing must end; nil: it goes on. It is asked at each entry and between the reads of a file.
	cut   func() error
	done  sealed
	buf   []byte
	sum   hash.Hash
	links map[uint64]bool
	// pending are the directories above the present entry that are not in the list yet: one that was only copied up has nothing to add.
	pending []line
	// hidden is the opaque directory that the walk is in: what the layers have below it is not shown.
	hidden string
}

func (s *sealer) seal(root string) error {
	s.buf, s.sum, s.links = make([]byte, 256<<10), sha256.New(), map[uint64]bool{}
	if err := s.top(root); err != nil {
		return err
	}
	w := walker{do: s.entry, after: s.leave}
	return w.walk(root)
}

// add puts an entry into the list, after the directories that it is in.
func (s *sealer) add(l line) error {
	for _, dir := range append(s.pending, l) {
		if err := s.list.add(dir); err != nil {
			return err
		}
	}
	s.pending = s.pending[:0]
	return nil
}

// lower returns what the layers below show at the place of an entry.
func (s *sealer) lower(e entry) (shown, bool) {
	if s.below == nil || s.hidden != "" {
		return shown{}, false
	}
	return s.below(e.path)
}

// leave ends a directory. One that is as below, with nothing in it, is not needed.
func (s *sealer) leave(e entry) error {
	if s.hidden == e.path {
		s.hidden = ""
	}
	last := len(s.pending) - 1
	if last < 0 || s.pending[last].path != e.path {
		return nil
	}
	dir := s.pending[last]
	s.pending = s.pending[:last]
	have, ok := s.lower(e)
	if ok && dir.kind == kindDirectory && (have.line.kind == kindDirectory || have.line.kind == kindOpaque) && have.line.mode == dir.mode {
		if err := unix.Unlinkat(int(e.dir.Fd()), e.name, unix.AT_REMOVEDIR); err != nil {
			return fmt.Errorf("delete %q: %w", e.path, err)
		}
		return nil
	}
	s.done.bytes += takes(e.stat)
	return s.add(dir)
}

// top strips the root of the tree, which the job may have changed too.
func (s *sealer) top(root string) error {
	dir, err := os.Open(root)
	if err != nil {
		return err
	}
	defer dir.Close()
	return s.plain(int(dir.Fd()), 0o755, false)
}

func (s *sealer) entry(e entry) error {
	if err := s.cut(); err != nil {
		return err
	}
	switch e.kind() {
	case unix.S_IFDIR:
		return s.directory(e)
	case unix.S_IFREG:
		return s.file(e)
	case unix.S_IFLNK:
		return s.link(e)
	case unix.S_IFCHR:
		if s.overlay && e.stat.Rdev == 0 {
			return s.add(line{kind: kindWhiteout, path: e.path})
		}
	}
	return s.leaveOut(e)
}

func (s *sealer) leaveOut(e entry) error {
	s.done.leftOut++
	return deleteEntry(e)
}

func deleteEntry(e entry) error {
	if err := unix.Unlinkat(int(e.dir.Fd()), e.name, 0); err != nil {
		return fmt.Errorf("delete %q: %w", e.path, err)
	}
	return errSkipped
}

func (s *sealer) directory(e entry) error {
	f, err := e.open()
	if err != nil {
		return err
	}
	defer f.Close()
	fd := int(f.Fd())
	opaque := s.overlay && hasAttribute(fd, overlayOpaque, "y")
	mode := e.stat.Mode&0o777 | 0o700
	if err := s.plain(fd, mode, opaque); err != nil {
		return fmt.Errorf("strip %q: %w", e.path, err)
	}
	kind := kindDirectory
	if opaque {
		kind = kindOpaque
		if s.hidden == "" {
			s.hidden = e.path
		}
	}
	s.pending = append(s.pending, line{kind: kind, mode: mode, path: e.path})
	return nil
}

func (s *sealer) file(e entry) error {
	f, err := e.open()
	if err != nil {
		return err
	}
	defer f.Close()
	mode := e.stat.Mode & 0o777
	if err := s.plain(int(f.Fd()), mode, false); err != nil {
		return fmt.Errorf("strip %q: %w", e.path, err)
	}
	digest, size, err := s.digest(f)
	if err != nil {
		return fmt.Errorf("read %q: %w", e.path, err)
	}
	l := line{kind: kindFile, mode: mode, size: size, digest: digest, path: e.path}
	if s.isBelow(e, l) {
		return deleteEntry(e)
	}
	if !s.links[e.stat.Ino] {
		s.done.bytes += takes(e.stat)
	}
	if e.stat.Nlink > 1 {
		s.links[e.stat.Ino] = true
	}
	return s.add(l)
}

// isBelow reports whether the layers below have the very file. Tools such as the go command renew the times of what they use, which has overlayfs
// copy the file, and later go by them to delete what is not used. So the file below gets the new times.
func (s *sealer) isBelow(e entry, l line) bool {
	have, ok := s.lower(e)
	if !ok || have.line != l {
		return false
	}
	times := []unix.Timespec{e.stat.Mtim, e.stat.Mtim}
	return unix.UtimesNanoAt(unix.AT_FDCWD, have.at, times, unix.AT_SYMLINK_NOFOLLOW) == nil
}

func (s *sealer) digest(f *os.File) (digest string, size int64, err error) {
	s.sum.Reset()
	size, err = io.CopyBuffer(struct{ io.Writer }{s.sum}, cutReader{f, s.cut}, s.buf)
	return hex.EncodeToString(s.sum.Sum(nil)), size, err
}

// cutReader reads until it is cut.
type cutReader struct {
	from io.Reader
	cut  func() error
}

func (r cutReader) Read(p []byte) (int, error) {
	if err := r.cut(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

// link keeps a symbolic link that stays inside its tree. One that leads out would have a later job write elsewhere.
func (s *sealer) link(e entry) error {
	target, err := readLink(e)
	if err != nil {
		return err
	}
	if !staysInside(e.path, target) {
		return s.leaveOut(e)
	}
	if err := unix.Fchownat(int(e.dir.Fd()), e.name, s.owner.UID, s.owner.GID, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("strip %q: %w", e.path, err)
	}
	return s.add(line{kind: kindLink, digest: digestOf(target), path: e.path})
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func readLink(e entry) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(e.dir.Fd()), e.name, buf)
	if err != nil {
		return "", fmt.Errorf("read link %q: %w", e.path, err)
	}
	return string(buf[:n]), nil
}

// staysInside reports whether a link at a path of a tree points to a place in it. Its text alone decides: after a name that may be a link
// itself, ".." may lead anywhere, so it may only come first.
func staysInside(at, target string) bool {
	if target == "" || path.IsAbs(target) || strings.ContainsRune(target, 0) {
		return false
	}
	up, named := 0, false
	for element := range strings.SplitSeq(target, "/") {
		switch {
		case element == "" || element == ".":
		case element != "..":
			named = true
		case named:
			return false
		default:
			up++
		}
	}
	return up <= strings.Count(at, "/")
}

// The extended attributes of overlayfs, which users cannot set through it. See Documentation/filesystems/overlayfs.rst of Linux.
const overlayOpaque = "trusted.overlay.opaque"

func hasAttribute(fd int, name, value string) bool {
	buf := make([]byte, 16)
	n, err := unix.Fgetxattr(fd, name, buf)
	return err == nil && string(buf[:n]) == value
}

// plain gives a file the owner of jobs and a mode, and removes all of its extended attributes except the mark of an opaque directory.
func (s *sealer) plain(fd int, mode uint32, opaque bool) error {
	if err := unix.Fchown(fd, s.owner.UID, s.owner.GID); err != nil {
		return err
	}
	if err := stripAttributes(fd, opaque); err != nil {
		return err
	}
	return unix.Fchmod(fd, mode) // last: the access control list, which was removed, has set the bits of the group
}

func stripAttributes(fd int, opaque bool) error {
	size, err := unix.Flistxattr(fd, nil)
	if errors.Is(err, unix.ENOTSUP) || (err == nil && size == 0) {
		return nil
	}
	if err != nil {
		return err
	}
	names := make([]byte, size)
	if size, err = unix.Flistxattr(fd, names); err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names[:size]), "\x00"), "\x00") {
		if name == "" || (opaque && name == overlayOpaque) || name == "security.selinux" { // which the system's policy sets
			continue
		}
		if err := unix.Fremovexattr(fd, name); err != nil && !errors.Is(err, unix.ENODATA) {
			return fmt.Errorf("remove attribute %s: %w", name, err)
		}
	}
	return nil
}
