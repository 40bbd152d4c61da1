package cachestore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// The bounds of a cache, beside its size. Real ones stay well below: a Go module cache of 5 GB has some 200,000 files, and the
// deepest path of npm's cache has 8 elements.
const (
	MaxFiles = 1_000_000
	MaxDepth = 64
	// maxName is what the kernel allows, in bytes.
	maxName = 255
)

// mostFiles is MaxFiles, except in tests.
var mostFiles = MaxFiles

// RefusedError says why a view does not become the next committed state.
type RefusedError struct {
	Reason string
	// TooLarge: it has more than the size of its cache.
	TooLarge bool
}

func (e *RefusedError) Error() string { return "the cache is not kept: " + e.Reason }

func refused(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}

func tooLarge(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...), TooLarge: true}
}

// entry is one name in a tree.
type entry struct {
	dir  *os.File // that it is in
	name string
	path string // from the root of the tree
	stat unix.Stat_t
}

func (e entry) kind() uint32 { return e.stat.Mode & unix.S_IFMT }

// open opens the very file for reading, and waits for nothing.
func (e entry) open() (*os.File, error) {
	flags := unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOATIME
	if e.kind() == unix.S_IFDIR {
		flags |= unix.O_DIRECTORY
	}
	fd, err := unix.Openat(int(e.dir.Fd()), e.name, flags, 0)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", e.path, err)
	}
	return os.NewFile(uintptr(fd), e.path), nil
}

// walker walks a tree by file descriptors and single names, in the order of names, a directory before what is in it. It follows no link and
// crosses no mount.
type walker struct {
	files int
	// do is called for each entry, and after for each directory when all below it is done. Either may be nil.
	do    func(e entry) error
	after func(e entry) error
}

func (w *walker) walk(root string) error {
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %q: %w", root, err)
	}
	dir := os.NewFile(uintptr(fd), root)
	defer dir.Close()
	return w.in(dir, "", 1)
}

func (w *walker) in(dir *os.File, at string, depth int) error {
	if depth > MaxDepth {
		return refused("%q is more than %d directories deep", shorten(at), MaxDepth)
	}
	names, err := w.names(dir, at)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := w.one(entry{dir: dir, name: name, path: path.Join(at, name)}, depth); err != nil {
			return err
		}
	}
	return nil
}

// names are the sorted names in a directory. A directory may have more than fit into memory, so they are counted while they are read.
func (w *walker) names(dir *os.File, at string) ([]string, error) {
	var names []string
	for {
		some, err := dir.Readdirnames(namesAtOnce)
		names = append(names, some...)
		if w.files+len(names) > mostFiles {
			return nil, refused("it has more than %d files", mostFiles)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("list %q: %w", at, err)
		}
	}
	slices.Sort(names)
	w.files += len(names)
	return names, nil
}

const namesAtOnce = 4096

func (w *walker) one(e entry, depth int) error {
	if err := checkName(e.name); err != nil {
		return err
	}
	if err := unix.Fstatat(int(e.dir.Fd()), e.name, &e.stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("look at %q: %w", e.path, err)
	}
	if w.do != nil {
		err := w.do(e)
		if errors.Is(err, errSkipped) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if e.kind() == unix.S_IFDIR {
		dir, err := e.open()
		if err != nil {
			return err
		}
		err = w.in(dir, e.path, depth+1)
		dir.Close()
		if err != nil {
			return err
		}
		if w.after != nil {
			return w.after(e)
		}
	}
	return nil
}

// errSkipped says that the walk is done with an entry: do has deleted it, or what is in it is not of interest.
var errSkipped = errors.New("skipped")

// checkName refuses names that no tool writes and that would deceive the reader of a log.
func checkName(name string) error {
	if len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return refused("the name %q is not printable text", shorten(name))
	}
	return nil
}

// shorten bounds what a job can write into a log.
func shorten(s string) string {
	const most = 120
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
