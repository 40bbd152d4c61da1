package reset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/remuda-ci/remuda/internal/host/reset/fingerprint"
	"github.com/remuda-ci/remuda/internal/tree"
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

// displayDirs are the directories for sockets in /tmp that systemd-tmpfiles makes at boot: x11.conf of its tmpfiles.d.
var displayDirs = []string{".X11-unix", ".ICE-unix", ".XIM-unix", ".font-unix", ".Test-unix"}

// displayMode is the mode of these directories.
const displayMode = 0o777 | fs.ModeSticky

// privateTmp matches the directory that a unit with PrivateTmp= has in /tmp and /var/tmp: see systemd.exec(5).
var privateTmp = regexp.MustCompile(`^systemd-private-[0-9a-f]{32}-(.+\.[a-z]+)-[A-Za-z0-9]{6}$`)

// sockets returns the fingerprints of what stays in the emptied directories: displayDirs and sockets.
func (p Plan) sockets() (fingerprint.Set, error) {
	found := fingerprint.Set{}
	for _, dir := range p.Empty {
		err := eachEntry(dir.Path, func(e fs.DirEntry) error {
			path := filepath.Join(dir.Path, e.Name())
			if !slices.Contains(displayDirs, e.Name()) {
				return p.socket(found, path)
			}
			info, err := os.Lstat(path)
			if err != nil || !info.IsDir() {
				return ignoreMissing(err)
			}
			if found[path], err = fingerprint.Of(path, info); err != nil {
				return err
			}
			return eachEntry(path, func(e fs.DirEntry) error { return p.socket(found, filepath.Join(path, e.Name())) })
		})
		if err != nil {
			return nil, fmt.Errorf("list sockets: %w", err)
		}
	}
	return found, nil
}

// socket adds a path to found if it is a socket that does not belong to the user.
func (p Plan) socket(found fingerprint.Set, path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSocket == 0 {
		return ignoreMissing(err)
	}
	if owner := ownerOf(info).UID; owner < 0 || owner == p.UID {
		return nil
	}
	found[path], err = fingerprint.Of(path, info)
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// namesAtOnce bounds how many names of a directory are read at a time.
const namesAtOnce = 1024

// eachEntry calls do for each file in a directory. There may be very many.
func eachEntry(dir string, do func(e fs.DirEntry) error) error {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(namesAtOnce)
		for _, e := range entries {
			if err := do(e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// keptNames returns the names in an emptied directory that stay: what the baseline has, and the private directories of
// running units. Those belong to root and are closed to others, so a job cannot have made one.
func (p Plan) keptNames(ctx context.Context, conn *dbus.Conn, dir string, base fingerprint.Set) ([]string, error) {
	kept := unchangedIn(dir, base)
	var units []string
	private := map[string][]string{} // the directories of a unit
	err := eachEntry(dir, func(e fs.DirEntry) error {
		if unit, ok := privateUnit(dir, e.Name()); ok {
			units = append(units, unit)
			private[unit] = append(private[unit], e.Name())
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list private directories: %w", err)
	}
	if len(units) == 0 {
		return kept, nil
	}
	states, err := conn.ListUnitsByNamesContext(ctx, units)
	if err != nil {
		return nil, fmt.Errorf("list private directories: %w", err)
	}
	for _, u := range states {
		if u.ActiveState != "inactive" && u.ActiveState != "failed" {
			kept = append(kept, private[u.Name]...)
			delete(private, u.Name)
		}
	}
	return kept, nil
}

// unchangedIn returns the names in a directory that are as the baseline has them.
func unchangedIn(dir string, base fingerprint.Set) []string {
	var names []string
	for path, print := range base {
		if filepath.Dir(path) != dir {
			continue
		}
		if info, err := os.Lstat(path); err == nil {
			if now, err := fingerprint.Of(path, info); err == nil && now == print {
				names = append(names, filepath.Base(path))
			}
		}
	}
	return names
}

// privateUnit returns the unit whose private directory this is, if its name says so and only root can have made it.
func privateUnit(dir, name string) (string, bool) {
	match := privateTmp.FindStringSubmatch(name)
	if match == nil || strings.ContainsRune(name, '\n') {
		return "", false
	}
	info, err := os.Lstat(filepath.Join(dir, name))
	return match[1], err == nil && info.IsDir() && info.Mode().Perm()&0o077 == 0 && ownerOf(info).UID == 0
}

// emptyTemporary empties the directories of the system, Plan.Empty.
func (p Plan) emptyTemporary(ctx context.Context, conn *dbus.Conn, base fingerprint.Set) error {
	for _, dir := range p.Empty {
		kept, err := p.keptNames(ctx, conn, dir.Path, base)
		if err != nil {
			return err
		}
		for _, name := range kept {
			if path := filepath.Join(dir.Path, name); slices.Contains(displayDirs, name) {
				if err := tree.Clear(path, tree.Owner{}, displayMode, unchangedIn(path, base)...); err != nil {
					return err
				}
			}
		}
		if err := tree.Clear(dir.Path, dir.Owner, dir.Mode, kept...); err != nil {
			return err
		}
	}
	return nil
}
