package host

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/tree"
)

// keptDiagnostics is a copy of the runner's _diag as the last run left it: what GitHub's support asks for first. Only the user that cleans
// the host can read it, which is root where tasks are units: the logs name repositories and may quote what a job printed.
const keptDiagnostics = "state/diag"

// How much of _diag is kept: the newest files, and the end of each. A job can write to _diag as much as it likes.
const (
	mostDiagnostics     = 20
	largestDiagnostic   = 1 << 20 // bytes
	diagnosticsLookedAt = 1000    // files
)

// keepDiagnostics copies _diag before the clean-up renews the runner's directory. Without one, the last copy stays. A failure is logged and
// is not an error: the next run does not need the copy.
func (h *Host) keepDiagnostics() {
	if err := h.copyDiagnostics(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.log.Warn("cannot keep the runner's diagnostics", logkey.Error, err)
	}
}

func (h *Host) copyDiagnostics() error {
	// A job may put links here. Nothing outside the runner's directory is reached through a Root.
	runner, err := os.OpenRoot(h.path("runner"))
	if err != nil {
		return err
	}
	defer runner.Close()
	names, err := newestDiagnostics(runner)
	if err != nil || len(names) == 0 {
		return err
	}
	fresh := h.path(keptDiagnostics) + ".new"
	if err := tree.Renew(fresh, self(), 0o700); err != nil {
		return err
	}
	for _, name := range names {
		if err := copyEnd(runner, filepath.Join("_diag", name), filepath.Join(fresh, name)); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	if err := tree.Remove(h.path(keptDiagnostics)); err != nil {
		return err
	}
	return os.Rename(fresh, h.path(keptDiagnostics))
}

// newestDiagnostics lists the regular files of _diag, newest first.
func newestDiagnostics(runner *os.Root) ([]string, error) {
	dir, err := runner.Open("_diag")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(diagnosticsLookedAt)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	var names []string
	for _, info := range files[:min(len(files), mostDiagnostics)] {
		names = append(names, info.Name())
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
	begin := max(0, info.Size()-largestDiagnostic)
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(f, begin, largestDiagnostic))
	return errors.Join(err, out.Close())
}
