package cachestore

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/tree"
)

// A cache of tools has what setup actions place in the directory that RUNNER_TOOL_CACHE names: TOOL/VERSION/ARCH, and beside it the marker
// ARCH.complete, without which they do not use it (actions/toolkit, packages/tool-cache/src/tool-cache.ts: find and _completeToolPath).
//
// A run adds to it whole versions alone. What was there when its view began, of the image or of an earlier run, stays as it was. So no layer hides
// or changes anything of another one or of the image, and each is sound without the others.
const (
	toolDepth      = 3 // of TOOL/VERSION/ARCH
	completeSuffix = ".complete"
)

// keepNewTools deletes what a run has left in the changes of its view, except whole versions of tools that were not there before. It returns how many
// those are. It is safe to repeat. No process of a job may be left.
func keepNewTools(root string, overlay bool, hadBefore func(path string) bool) (added int, err error) {
	k := toolKeeper{root: root, overlay: overlay, hadBefore: hadBefore}
	w := walker{do: k.entry, after: k.leave}
	err = w.walk(root)
	return k.added, err
}

type toolKeeper struct {
	root string
	// overlay: there may be marks of overlayfs.
	overlay   bool
	hadBefore func(path string) bool
	added     int
}

func (k *toolKeeper) entry(e entry) error {
	depth := strings.Count(e.path, "/") + 1
	switch {
	case depth < toolDepth && e.kind() == unix.S_IFDIR:
		return nil
	case depth == toolDepth && k.isNew(e):
		if e.kind() == unix.S_IFDIR {
			k.added++
		}
		return errSkipped
	}
	return k.remove(e)
}

// isNew reports whether an entry is a version that the run has added, or its marker.
func (k *toolKeeper) isNew(e entry) bool {
	arch := strings.TrimSuffix(e.name, completeSuffix)
	other, dir, marker := arch, e.stat, e.stat
	var err error
	if arch == e.name {
		other, err = arch+completeSuffix, unix.Fstatat(int(e.dir.Fd()), arch+completeSuffix, &marker, unix.AT_SYMLINK_NOFOLLOW)
	} else {
		err = unix.Fstatat(int(e.dir.Fd()), other, &dir, unix.AT_SYMLINK_NOFOLLOW)
	}
	return err == nil && dir.Mode&unix.S_IFMT == unix.S_IFDIR && marker.Mode&unix.S_IFMT == unix.S_IFREG && checkName(other) == nil &&
		!k.hadBefore(e.path) && !k.hadBefore(path.Join(path.Dir(e.path), other))
}

func (k *toolKeeper) remove(e entry) error {
	if err := tree.Remove(filepath.Join(k.root, e.path)); err != nil {
		return fmt.Errorf("delete %q: %w", shorten(e.path), err)
	}
	return errSkipped
}

// leave ends a directory above versions. It may hide nothing below it, and without a version it is not needed.
func (k *toolKeeper) leave(e entry) error {
	err := unix.Unlinkat(int(e.dir.Fd()), e.name, unix.AT_REMOVEDIR)
	if err == nil {
		return nil
	}
	if !errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("delete %q: %w", shorten(e.path), err)
	}
	if !k.overlay {
		return nil
	}
	dir, err := e.open()
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Fremovexattr(int(dir.Fd()), overlayOpaque); err != nil && !errors.Is(err, unix.ENODATA) {
		return fmt.Errorf("strip %q: %w", shorten(e.path), err)
	}
	return nil
}
