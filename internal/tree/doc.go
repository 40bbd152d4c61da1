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
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

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
