package slate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// starting are files and directories of what starts by itself, or is read by what does, and that nobody touches while a
// host serves runs. Not among them: the directories of generators, which are new with each reload of systemd.
var starting = []string{
	"/etc/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd/system", "/usr/lib/systemd/system-generators",
	"/etc/init.d", "/etc/rc.local", "/etc/rcS.d", "/etc/rc2.d", "/etc/rc3.d", "/etc/rc5.d",
	"/etc/crontab", "/etc/anacrontab", "/etc/cron.d", "/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly",
	"/var/spool/cron", "/var/spool/at",
	"/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	"/etc/sudoers", "/etc/sudoers.d", "/etc/doas.conf", "/etc/pam.d", "/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow",
	"/etc/ssh", "/root/.ssh", "/root/.profile", "/root/.bashrc",
	"/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/bashrc", "/etc/environment", "/etc/environment.d", "/etc/skel",
	"/etc/udev/rules.d", "/etc/modules-load.d", "/etc/modprobe.d", "/etc/binfmt.d", "/etc/tmpfiles.d", "/etc/sysctl.d",
}

// remade are directories of what starts by itself that generators write to as well, such as netplan's: with each reload of
// systemd they do it again, so these are compared by content.
var remade = []string{"/run/systemd/system", "/run/systemd/system.control", "/run/udev/rules.d"}

// transient is where systemd writes units that were made by a call.
const transient = "/run/systemd/transient"

// prints are fingerprints by path.
type prints map[string]string

// take adds the fingerprints of a file, or of a directory and all in it. What is not there has none, which is a
// fingerprint too: it is seen when it appears.
func (p prints) take(root string) error {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		print, err := fingerprint(path, info)
		if err != nil {
			return err
		}
		p[path] = print
		return nil
	})
	if err != nil {
		return fmt.Errorf("take fingerprints of %s: %w", root, err)
	}
	return nil
}

var errUnknown = errors.New("the system tells nothing of the file")

// fingerprint changes with every change of the file. Nobody can set back the time of the change of its inode, but by
// setting the clock. That and the size of a directory are left out: a file that comes and goes in it is no matter, and one
// that stays is seen by itself.
func fingerprint(path string, info fs.FileInfo) (string, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errUnknown
	}
	print := fmt.Sprintf("%o %d:%d", st.Mode, st.Uid, st.Gid)
	if info.IsDir() {
		return print, nil
	}
	print += fmt.Sprintf(" %d bytes, modified %d.%09d, changed %d.%09d, inode %d",
		st.Size, st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec, st.Ctim.Nsec, st.Ino)
	if info.Mode()&fs.ModeSymlink == 0 {
		return print, nil
	}
	target, err := os.Readlink(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return print + " to " + target, err
}

// difference is a sentence about a file that is not as it was.
func differences(now, base prints) []string {
	var changed []string
	for _, path := range slices.Sorted(maps.Keys(base)) {
		switch print, ok := now[path]; {
		case !ok:
			changed = append(changed, fmt.Sprintf("%q was deleted", path))
		case print != base[path]:
			changed = append(changed, fmt.Sprintf("%q is [%s], was [%s]", path, print, base[path]))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if _, ok := base[path]; !ok {
			changed = append(changed, fmt.Sprintf("%q is new", path))
		}
	}
	return changed
}

// starters are the fingerprints of what starts by itself.
func (p Plan) starters() (prints, error) {
	all := prints{}
	for _, path := range starting {
		if err := all.take(p.at(path)); err != nil {
			return nil, err
		}
	}
	for _, path := range remade {
		if err := all.takeContent(p.at(path)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ownPrints are the fingerprints of what is ours.
func (p Plan) ownPrints() (prints, error) {
	all := prints{}
	for _, path := range p.Unchanged {
		if err := all.take(path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// regular reports whether a fingerprint, which begins with the mode, is of a regular file.
func regular(print string) bool {
	mode, _, _ := strings.Cut(print, " ")
	bits, err := strconv.ParseUint(mode, 8, 32)
	return err == nil && bits&syscall.S_IFMT == syscall.S_IFREG
}

// generated are the fingerprints of the units that generators make.
func (p Plan) generated() (prints, error) {
	all := prints{}
	for _, dir := range generatedDirs {
		if err := all.takeContent(p.at(dir)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// takeContent is take for what is made anew without being changed: its fingerprints change with the content.
func (p prints) takeContent(root string) error {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			p[path], err = contentPrint(path, d)
		}
		if errors.Is(err, fs.ErrNotExist) {
			delete(p, path)
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("take fingerprints of the content of %s: %w", root, err)
	}
	return nil
}

// contentPrint is a fingerprint that changes with the mode of a file, its owner, and its content or where it leads.
func contentPrint(path string, d fs.DirEntry) (string, error) {
	info, err := d.Info()
	if err != nil {
		return "", err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errUnknown
	}
	print := fmt.Sprintf("%o %d:%d", st.Mode, st.Uid, st.Gid)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return print + " to " + target, err
	case info.Mode().IsRegular():
		sum, err := sumOf(path)
		return print + " with " + sum, err
	}
	return print, nil
}

// sumOf is the SHA-256 of a regular file.
func sumOf(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ofLogins are the units in which logind holds what users run. They come and go; their processes are looked at one by one.
var ofLogins = []string{"session-*.scope", "user-*.slice"}

// transients are the names of the units made by a call that are not ours.
func (p Plan) transients() ([]string, error) {
	entries, err := os.ReadDir(p.at(transient))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list transient units: %w", err)
	}
	var names []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".d")
		if !matches(slices.Concat(p.Units, p.OwnUnits, ofLogins), name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// room is what is free on the file system of a path. A file system that does not count files has total files 0.
type room struct{ bytes, files, totalFiles uint64 }

func roomAt(path string) (room, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return room{}, fmt.Errorf("look at disk of %s: %w", path, err)
	}
	return room{bytes: st.Bavail * uint64(st.Bsize), files: st.Ffree, totalFiles: st.Files}, nil
}
