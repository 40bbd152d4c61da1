// Package tree deletes, renews and copies directory trees that an attacker has written and may still be writing.
//
// It works from directory to directory by file descriptors and single names, never by paths: so it follows no symbolic
// link, no tree is too deep for it, and a directory that is swapped for another thing while it works leads nowhere else.
// It crosses no mount: one that it meets is an error that names it. What cannot be deleted as it stands, because it is
// immutable, append-only or in a directory without write permission, is made deletable first, as far as the caller's
// rights go: it needs none beyond those over the tree.
package tree

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Remove deletes whatever is at path, with all below it. A missing path is not an error. A mount there or below is
// ErrMount.
func Remove(path string) error {
	parent, name, err := split(path)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	return removeAt(parent, name, path)
}

// removeAt deletes a name in a directory; path is what errors call it.
func removeAt(parent int, name, path string) error {
	for range maxRounds {
		err := unlink(parent, name, 0, func() { unlockIn(parent, name) })
		switch {
		case done(err):
			return nil
		case !errors.Is(err, unix.EISDIR):
			return failed("delete", path, err)
		}
		gone, err := removeDirAt(parent, name, path)
		if gone || err != nil {
			return err
		}
	}
	return failed("delete", path, ErrBusy)
}

// removeDirAt deletes a directory. It returns false without an error if that became something else or was filled again.
func removeDirAt(parent int, name, path string) (gone bool, err error) {
	dir, err := openBelow(parent, name)
	switch {
	case swapped(err):
		return false, nil
	case err != nil:
		return false, failed("open", path, err)
	}
	if err := errors.Join(emptyDir(dir, path, nil), dir.Close()); err != nil {
		return false, err
	}
	err = unlink(parent, name, unix.AT_REMOVEDIR, func() { unlockIn(parent, name) })
	switch {
	case done(err):
		return true, nil
	case swapped(err), filled(err):
		return false, nil
	}
	return false, failed("delete", path, err)
}

// unlink deletes a name in a directory. If that is denied, it calls unlock and tries once more. A mount is ErrMount.
func unlink(parent int, name string, flags int, unlock func()) error {
	err := unix.Unlinkat(parent, name, flags)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		unlock()
		err = unix.Unlinkat(parent, name, flags)
	}
	if errors.Is(err, unix.EBUSY) {
		return ErrMount
	}
	return err
}

// unlockIn is unlock for a directory that is open as a path only. If it cannot be opened for reading it stays as it is.
func unlockIn(parent int, name string) {
	if dir, err := openAt(parent, ".", name, unix.O_RDONLY|unix.O_DIRECTORY); err == nil {
		defer dir.Close()
		unlock(dir, name)
	}
}

// swapped reports whether the error means that a name is no longer a directory.
func swapped(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// filled reports whether the error means that a directory is not empty.
func filled(err error) bool { return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) }

// done reports whether the error means that a name is gone.
func done(err error) bool { return err == nil || errors.Is(err, unix.ENOENT) }

// level is a directory that is being emptied.
type level struct {
	name string
	id   identity
	// dir is nil while the walk is more than maxOpen levels below. It is opened again from below then.
	dir *os.File
	// names are those that have been read and not handled yet. The next round finds again what is not deleted.
	names  []string
	rounds int
}

const (
	// maxOpen bounds the open files and, with batch, the memory of a walk, however deep the tree.
	maxOpen = 32
	// batch is how many names are read at a time.
	batch = 1024
)

// walk empties a directory from the leaves up. It is a loop with a stack, and only the lowest levels are
// open.
type walk struct {
	path   string // of the first level
	levels []level
	start  time.Time
	keep   []string
	newer  int // batches of names created since the start
}

func emptyDir(dir *os.File, path string, keep []string) error {
	id, err := identityOf(int(dir.Fd()))
	if err != nil {
		return failed("open", path, err)
	}
	w := walk{path: path, start: time.Now(), keep: keep}
	w.levels = []level{{id: id, dir: dir}}
	defer w.close()
	for len(w.levels) > 0 {
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

// close closes what the walk has opened: all levels except the first.
func (w *walk) close() {
	for i := range w.levels {
		if i > 0 && w.levels[i].dir != nil {
			w.levels[i].dir.Close()
		}
	}
}

// step handles the next name of the lowest level, or that level itself if it has no names left.
func (w *walk) step() error {
	l := &w.levels[len(w.levels)-1]
	if len(l.names) == 0 {
		names, err := l.dir.Readdirnames(batch)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, unix.ENOENT) {
			return failed("read", w.where(""), err)
		}
		if len(w.levels) == 1 {
			names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(w.keep, name) })
		}
		if len(names) == 0 && err != nil {
			return w.finish(l)
		}
		l.names = names
		return w.bound(l)
	}
	name := l.names[len(l.names)-1]
	l.names = l.names[:len(l.names)-1]
	return w.delete(l, name)
}

// bound ends a walk that another process keeps going.
func (w *walk) bound(l *level) error {
	if len(l.names) > 0 && bornAfter(w.start, int(l.dir.Fd()), l.names[len(l.names)-1]) {
		w.newer++
	}
	if w.newer > maxNew || time.Since(w.start) > maxTime {
		return failed("empty", w.where(""), ErrBusy)
	}
	return nil
}

func bornAfter(start time.Time, dir int, name string) bool {
	var st unix.Statx_t
	err := unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st)
	return err == nil && st.Mask&unix.STATX_BTIME != 0 && time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).After(start)
}

// delete deletes a file, or goes down into a directory.
func (w *walk) delete(l *level, name string) error {
	err := unlink(int(l.dir.Fd()), name, 0, func() { unlock(l.dir, name) })
	switch {
	case done(err):
		return nil
	case errors.Is(err, unix.EISDIR):
		return w.down(l, name)
	}
	return failed("delete", w.where(name), err)
}

func (w *walk) down(l *level, name string) error {
	dir, err := openBelow(int(l.dir.Fd()), name)
	switch {
	case swapped(err):
		return nil // the next round finds whatever it is now
	case err != nil:
		return failed("open", w.where(name), err)
	}
	id, err := identityOf(int(dir.Fd()))
	if err != nil {
		return errors.Join(failed("open", w.where(name), err), dir.Close())
	}
	w.levels = append(w.levels, level{name: name, id: id, dir: dir})
	// The first level is the caller's, and stays open.
	if i := len(w.levels) - 1 - maxOpen; i > 0 && w.levels[i].dir != nil {
		w.levels[i].dir.Close()
		w.levels[i].dir, w.levels[i].names = nil, nil
	}
	return nil
}

// finish ends a round through the lowest level. The walk leaves the level if it is empty.
func (w *walk) finish(l *level) error {
	if len(w.levels) == 1 {
		return w.finishTop(l)
	}
	above := &w.levels[len(w.levels)-2]
	if above.dir == nil {
		if err := w.reopen(l, above); err != nil {
			return err
		}
	}
	err := unlink(int(above.dir.Fd()), l.name, unix.AT_REMOVEDIR, func() { unlock(above.dir, l.name) })
	switch {
	case done(err), swapped(err): // the next round of the level above handles what is there now
		l.dir.Close()
		w.levels = w.levels[:len(w.levels)-1]
		return nil
	case filled(err):
		return w.again(l)
	}
	return failed("delete", w.where(""), err)
}

// finishTop checks from its start that the first level is empty, since it is not deleted.
func (w *walk) finishTop(l *level) error {
	if err := w.again(l); err != nil {
		return err
	}
	for {
		names, err := l.dir.Readdirnames(batch)
		if slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(w.keep, name) }) {
			_, err := l.dir.Seek(0, io.SeekStart)
			return err
		}
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ENOENT) {
			w.levels = nil
			return nil
		}
		if err != nil {
			return failed("read", w.path, err)
		}
	}
}

func (w *walk) again(l *level) error {
	if l.rounds++; l.rounds >= maxRounds {
		return failed("empty", w.where(""), ErrBusy)
	}
	if _, err := l.dir.Seek(0, io.SeekStart); err != nil {
		return failed("read", w.where(""), err)
	}
	return nil
}

// reopen opens a level again from the one below it, and makes sure that it is that one.
func (w *walk) reopen(l, above *level) error {
	dir, err := openAbove(l.dir)
	if errors.Is(err, unix.EACCES) {
		return failed("empty", w.where(""), ErrBusy) // it was readable on the way down
	}
	if err != nil {
		return failed("open", w.where(".."), err)
	}
	if id, err := identityOf(int(dir.Fd())); err != nil || id != above.id {
		dir.Close()
		return failed("empty", w.where(""), ErrBusy) // moved elsewhere
	}
	above.dir = dir
	return nil
}

// where returns the path of a name in the lowest level, or of the level itself for "". It is only for messages, since it
// may be too long to be opened.
func (w *walk) where(name string) string {
	elements := []string{w.path}
	for _, l := range w.levels[min(1, len(w.levels)):] {
		elements = append(elements, l.name)
	}
	return filepath.Join(append(elements, name)...)
}

// ErrMount is in the chain of the error about a mount in a tree. Unmount it and call again.
var ErrMount = errors.New("something is mounted there")

// ErrBusy is in the chain of the error about a tree that a process fills or moves while it is being worked on. End such
// processes and call again.
var ErrBusy = errors.New("it is being written to")

const (
	// maxRounds is how often a directory is read from its start: once is enough on most file systems, a second time
	// where names are passed over while others are deleted. More is needed only if a process writes at the same time,
	// and it may be about to end.
	maxRounds = 50
	// maxNew is how many batches of names may turn out to have been created during the walk. A process that creates
	// files as fast as they are deleted would keep a single round going forever, as would one that creates ever deeper
	// directories.
	maxNew = 500
	// maxTime ends what those bounds do not, on file systems without birth times. A million files take some ten seconds.
	maxTime = 2 * time.Minute
)

// Owner is the user and group that a file belongs to.
type Owner struct {
	// UID and GID are numbers of this machine. A caller without root's rights can only name itself.
	UID, GID int
}

// maxShown is how much of a path an error shows, in bytes: a tree can be far deeper than a log line is long.
const maxShown = 512

// failed returns an error that says what failed on which path, short enough for a log line.
func failed(verb, path string, err error) error {
	if len(path) > maxShown {
		path = path[:maxShown/2] + "…" + path[len(path)-maxShown/2:]
	}
	return fmt.Errorf("%s %q: %w", verb, path, err)
}

// split opens the directory that path is in, and returns it with the path's last element. The directories on the way
// belong to the caller, so links among them are followed.
func split(path string) (parent int, name string, err error) {
	path = filepath.Clean(path)
	dir, name := filepath.Split(path)
	if name == "" || name == "." || name == ".." || strings.ContainsRune(path, 0) {
		return -1, "", failed("open", path, unix.EINVAL)
	}
	if dir == "" {
		dir = "."
	}
	parent, err = retried(func() (int, error) { return unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return -1, "", failed("open", dir, err)
	}
	return parent, name, nil
}

// retried repeats a call that a signal has interrupted.
func retried(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
