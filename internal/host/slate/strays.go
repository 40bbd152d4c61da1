package slate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/remuda-ci/remuda/internal/host/tree"
)

// open are the directories of the system in and below which there are some that everybody may write to, as /run/lock,
// /var/crash and /dev/mqueue, with POSIX message queues, are. Which ones depends on what is installed, so they are looked
// for. Elsewhere the image is the operator's, such as a cache in /opt: nothing is deleted there.
var open = []string{"/dev", "/run", "/var"}

// openDepth is how far below they are looked for: /var/lib/php/sessions is that far.
const openDepth = 3

// stores hold what is not the system's own, in directories without number.
var stores = []string{"/var/lib/docker", "/var/lib/containerd", "/var/lib/containers", "/run/user"}

// strays calls for each thing of the user's that lies where everybody may write and nothing is renewed.
func (p Plan) strays(do func(path string) error) error {
	for _, dir := range open {
		if err := p.straysIn(p.at(dir), openDepth, do); err != nil {
			return fmt.Errorf("look for files of user %s: %w", p.User, err)
		}
	}
	runtime := p.at("/run/user/" + strconv.Itoa(p.UID)) // gone with his manager, which he may have outwitted
	if _, err := os.Lstat(runtime); err != nil {
		return ignoreMissing(err)
	}
	return do(runtime)
}

// straysIn looks in a directory and so far below it. What a file system of somebody's own does not show even to root is left
// out: it is mounted, and told of with the mounts.
func (p Plan) straysIn(dir string, deeper int, do func(path string) error) error {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return ignoreUnseen(err)
	}
	everybodys := info.Mode().Perm()&0o002 != 0
	if !everybodys && deeper == 0 {
		return nil
	}
	err = eachEntry(dir, func(e fs.DirEntry) error {
		path := filepath.Join(dir, e.Name())
		if everybodys {
			info, err := e.Info()
			if err != nil {
				return ignoreUnseen(err)
			}
			if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == p.UID {
				return do(path)
			}
		}
		if !e.IsDir() || deeper == 0 || p.lookedAfter(path) {
			return nil
		}
		return p.straysIn(path, deeper-1, do)
	})
	return ignoreUnseen(err)
}

// lookedAfter reports whether others see to a directory.
func (p Plan) lookedAfter(path string) bool {
	return slices.Contains(p.places(), path) ||
		slices.ContainsFunc(p.Empty, func(dir Dir) bool { return dir.Path == path }) ||
		slices.ContainsFunc(stores, func(store string) bool { return p.at(store) == path })
}

func ignoreUnseen(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return ignoreMissing(err)
}

// strayRounds is how often it is looked: names are passed over while others are deleted.
const strayRounds = 50

// removeStrays deletes them.
func (p Plan) removeStrays() error {
	for range strayRounds {
		found := false
		err := p.strays(func(path string) error {
			found = true
			return tree.Remove(path)
		})
		if err != nil || !found {
			return err
		}
	}
	return fmt.Errorf("delete files of user %s: there are new ones after %d rounds: withdraw the host", p.User, strayRounds)
}

// checkStrays tells of no more than fits.
func (p Plan) checkStrays(d *Doubts) {
	err := p.strays(func(path string) error {
		d.add("%q of user %s is left: delete it", path, p.User)
		if d.More > 0 {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		d.found(err)
	}
}
