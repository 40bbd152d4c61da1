// Package fingerprint tells whether files have changed: it records, by path, what the system says of each file, and
// compares two such records.
package fingerprint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Set has fingerprints by path.
type Set map[string]string

// Add adds the fingerprints of files, or of directories and all in them. A path that does not exist adds none, so that it
// is noticed as new when it appears.
func (s Set) Add(roots ...string) error { return s.add(Of, roots) }

// AddContent is Add for files that are rewritten without being changed: their fingerprints depend on their mode, owner and
// content alone.
func (s Set) AddContent(roots ...string) error { return s.add(ofContent, roots) }

func (s Set) add(of func(path string, info fs.FileInfo) (string, error), roots []string) error {
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			var info fs.FileInfo
			if err == nil {
				info, err = d.Info()
			}
			if err == nil {
				s[path], err = of(path, info)
			}
			if errors.Is(err, fs.ErrNotExist) {
				delete(s, path)
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("take fingerprints of %s: %w", root, err)
		}
	}
	return nil
}

var errNoStat = errors.New("no stat data")

// Of returns a fingerprint that changes with every change of the file. It includes the change time of the inode, which
// cannot be set back except by setting the clock. Change time and size of a directory are left out: a file that was there
// for a while in between does not matter, and one that stays has a fingerprint of its own.
func Of(path string, info fs.FileInfo) (string, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errNoStat
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
	return print + " to " + target, err
}

// ofContent returns a fingerprint that changes with the mode of a file, its owner, and its content or link target.
func ofContent(path string, info fs.FileInfo) (string, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errNoStat
	}
	print := fmt.Sprintf("%o %d:%d", st.Mode, st.Uid, st.Gid)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return print + " to " + target, err
	case info.Mode().IsRegular():
		sum, err := sha256Of(path)
		return print + " with " + sum, err
	}
	return print, nil
}

func sha256Of(path string) (string, error) {
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

// IsRegular reports whether a fingerprint, which begins with the mode, is of a regular file.
func IsRegular(print string) bool {
	mode, _, _ := strings.Cut(print, " ")
	bits, err := strconv.ParseUint(mode, 8, 32)
	return err == nil && bits&syscall.S_IFMT == syscall.S_IFREG
}

// Differences returns a clause for each file that is not as it was: deleted or changed ones by path, then new ones.
func Differences(now, base Set) []string {
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
