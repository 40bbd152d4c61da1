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
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/remuda-ci/remuda/internal/host/reset/fingerprint"
	"github.com/remuda-ci/remuda/internal/host/tree"
)

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
