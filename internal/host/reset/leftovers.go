package reset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/remuda-ci/remuda/internal/host/tree"
)

// writableParents are the directories of the system that have world-writable directories in them, such as /run/lock,
// /var/crash and, with POSIX message queues, /dev/mqueue. Which ones there are depends on what is installed, so they are
// searched for. Elsewhere the image is the operator's, such as a cache in /opt, and nothing is deleted.
var writableParents = []string{"/dev", "/run", "/var"}

// writableDepth is how many levels below they are searched for: /var/lib/php/sessions is that deep.
const writableDepth = 3

// excluded are not searched: they hold any number of directories that are not the system's own.
var excluded = []string{"/var/lib/docker", "/var/lib/containerd", "/var/lib/containers", "/run/user"}

// leftovers calls do for each file of the user in a world-writable directory that no other step renews.
func (p Plan) leftovers(do func(path string) error) error {
	for _, dir := range writableParents {
		if err := p.leftoversIn(p.at(dir), writableDepth, do); err != nil {
			return fmt.Errorf("look for files of user %s: %w", p.User, err)
		}
	}
	runtime := p.at("/run/user/" + strconv.Itoa(p.UID)) // goes with the user's manager, unless a job has prevented that
	if _, err := os.Lstat(runtime); err != nil {
		return ignoreMissing(err)
	}
	return do(runtime)
}

// leftoversIn searches a directory and so many levels below it. A user's own file system (FUSE) may hide its files even
// from root. They are left out here, since the mount itself is found.
func (p Plan) leftoversIn(dir string, deeper int, do func(path string) error) error {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return ignoreUnseen(err)
	}
	worldWritable := info.Mode().Perm()&0o002 != 0
	if !worldWritable && deeper == 0 {
		return nil
	}
	err = eachEntry(dir, func(e fs.DirEntry) error {
		path := filepath.Join(dir, e.Name())
		if worldWritable {
			info, err := e.Info()
			if err != nil {
				return ignoreUnseen(err)
			}
			if ownerOf(info).UID == p.UID {
				return do(path)
			}
		}
		if !e.IsDir() || deeper == 0 || p.isHandledElsewhere(path) {
			return nil
		}
		return p.leftoversIn(path, deeper-1, do)
	})
	return ignoreUnseen(err)
}

// isHandledElsewhere reports whether another step takes care of a directory, or none has to.
func (p Plan) isHandledElsewhere(path string) bool {
	return slices.Contains(p.runDirs(), path) ||
		slices.ContainsFunc(p.Empty, func(dir Dir) bool { return dir.Path == path }) ||
		slices.ContainsFunc(excluded, func(store string) bool { return p.at(store) == path })
}

func ignoreUnseen(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return ignoreMissing(err)
}

// leftoverRounds bounds the searches: a search can miss names while others are deleted.
const leftoverRounds = 50

// removeLeftovers deletes them.
func (p Plan) removeLeftovers() error {
	for range leftoverRounds {
		found := false
		err := p.leftovers(func(path string) error {
			found = true
			return tree.Remove(path)
		})
		if err != nil || !found {
			return err
		}
	}
	return fmt.Errorf("delete files of user %s: there are new ones after %d rounds: withdraw the host", p.User, leftoverRounds)
}

// checkLeftovers stops once there are more findings than are listed.
func (p Plan) checkLeftovers(d *Findings) {
	d.addErr(p.leftovers(func(path string) error {
		return d.addMore("%q of user %s is left: delete it", path, p.User)
	}))
}
