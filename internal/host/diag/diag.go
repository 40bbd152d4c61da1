// Package diag keeps the diagnostic logs of actions/runner when a host is cleaned.
package diag

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/remuda-ci/remuda/internal/tree"
)

// How much of _diag is looked at and kept: the newest files, and the end of each. A job can write to _diag as much as it likes.
const (
	mostFiles     = 20
	largestFile   = 1 << 20 // bytes
	filesLookedAt = 1000    // files
)

// Keep copies the newest files of _diag in the runner's directory to a directory that only the calling user can read. It replaces the
// last copy, which stays if the runner has no diagnostics. The error is fs.ErrNotExist where there is no _diag.
func Keep(runner, to string) error {
	// A job may put links here. Nothing outside the runner's directory is reached through a Root.
	root, err := os.OpenRoot(runner)
	if err != nil {
		return err
	}
	defer root.Close()
	names, err := Newest(root, "", mostFiles)
	if err != nil || len(names) == 0 {
		return err
	}
	fresh := to + ".new"
	if err := tree.Renew(fresh, tree.Owner{UID: os.Getuid(), GID: os.Getgid()}, 0o700); err != nil {
		return err
	}
	for _, name := range names {
		if err := copyEnd(root, name, filepath.Join(fresh, filepath.Base(name))); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	if err := tree.Remove(to); err != nil {
		return err
	}
	return os.Rename(fresh, to)
}

// Newest lists at most so many regular files of _diag whose names have a prefix, as paths below the runner's directory, newest first.
func Newest(runner *os.Root, prefix string, most int) ([]string, error) {
	dir, err := runner.Open("_diag")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(filesLookedAt)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && strings.HasPrefix(e.Name(), prefix) {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	var names []string
	for _, info := range files[:min(len(files), most)] {
		names = append(names, filepath.Join("_diag", info.Name()))
	}
	return names, nil
}

// copyEnd copies the end of a file that a job may still be writing or replacing.
func copyEnd(runner *os.Root, from, to string) error {
	f, err := runner.OpenFile(from, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	begin := max(0, info.Size()-largestFile)
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(f, begin, largestFile))
	return errors.Join(err, out.Close())
}
