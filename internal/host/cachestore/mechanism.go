package cachestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/tree"
)

// Mechanism makes the views of runs.
type Mechanism interface {
	// Name is a word for logs and for view.json.
	Name() string
	// make makes a view of what is below it, in an empty directory.
	make(dir string, below stack, owner tree.Owner) error
	// show lets the run see the view at a target, which is an empty directory of the owner.
	show(dir string, below stack, target *os.File) error
	// hide undoes show. What is not shown is no error.
	hide(target string) error
	// changes is where a view has what becomes a layer.
	changes(dir string) string
	// layered reports whether changes has only what differs from the layers.
	layered() bool
}

// stack is what a view begins as.
type stack struct {
	// layers are the directories of the layers, the newest first.
	layers []string
	// image is below all of them. A copy has none.
	image image
	// readOnly: jobs change nothing.
	readOnly bool
}

// TryOverlay mounts an overlay once in a directory. An error says why overlayfs cannot be used there.
func TryOverlay(dir string) (err error) {
	probe, err := os.MkdirTemp(dir, "probe")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tree.Remove(probe)) }()
	view, target := filepath.Join(probe, "view"), filepath.Join(probe, "target")
	if err := errors.Join(os.Mkdir(view, 0o700), os.Mkdir(target, 0o700)); err != nil {
		return err
	}
	o := Overlay{}
	if err := o.make(view, stack{}, tree.Owner{UID: os.Geteuid(), GID: os.Getegid()}); err != nil {
		return err
	}
	f, err := os.Open(target)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := o.show(view, stack{}, f); err != nil {
		return err
	}
	return o.hide(target)
}

// Overlay shows views by overlayfs. It needs root.
type Overlay struct{}

var _ Mechanism = Overlay{}

// Name is "overlay".
func (Overlay) Name() string { return "overlay" }

func (Overlay) layered() bool             { return true }
func (Overlay) changes(dir string) string { return filepath.Join(dir, "upper") }

// make makes what overlayfs needs: the place of changes, one for its own work, and a layer without files, since there must be one. That one has
// the directories of the image in which the job is to add something: in the image they are root's.
func (Overlay) make(dir string, below stack, owner tree.Owner) error {
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o755); err != nil {
		return err
	}
	given := []string{"upper", "empty"}
	for _, name := range below.image.Above {
		given = append(given, filepath.Join("empty", name))
	}
	for _, name := range given {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
		if err := os.Chown(path, owner.UID, owner.GID); err != nil {
			return err
		}
	}
	return nil
}

// overlayOptions keep overlayfs from marks that a layer must not have: without them a layer is understood by itself, wherever it lies.
const overlayOptions = "index=off,metacopy=off,redirect_dir=nofollow,xino=off"

func (o Overlay) show(dir string, below stack, target *os.File) error {
	lower := append(append([]string{}, below.layers...), filepath.Join(dir, "empty"))
	if below.image.Dir != "" {
		lower = append(lower, below.image.Dir)
	}
	options := fmt.Sprintf("%s,lowerdir=%s,upperdir=%s,workdir=%s", overlayOptions, strings.Join(lower, ":"), o.changes(dir), filepath.Join(dir, "work"))
	if strings.ContainsAny(strings.ReplaceAll(strings.Join(lower, ""), ":", "?"), `,?\`) {
		return fmt.Errorf("mount overlay: a directory of %s has one of the characters ,:\\ in its name", strings.Join(lower, " "))
	}
	at := fmt.Sprintf("/proc/self/fd/%d", target.Fd()) // that very directory, whatever its name leads to by now
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if below.readOnly {
		flags |= unix.MS_RDONLY
	}
	if err := unix.Mount("remuda-cache", at, "overlay", flags, options); err != nil {
		return fmt.Errorf("mount overlay at %s: %w", target.Name(), err)
	}
	return nil
}

func (Overlay) hide(target string) error { return unmount(target) }

// unmount removes the mount at a path, if there is one.
func unmount(target string) error {
	err := unix.Unmount(target, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("unmount %s: %w", target, err)
}

// Copy makes each view a copy of the only layer, and shows it by a symbolic link. A link to a read-only cache leads to the layer itself. It is for jobs that run as the agent's own user: nothing keeps them
// from the store.
type Copy struct{}

var _ Mechanism = Copy{}

// Name is "copy".
func (Copy) Name() string { return "copy" }

func (Copy) layered() bool             { return false }
func (Copy) changes(dir string) string { return filepath.Join(dir, "copy") }

func (c Copy) make(dir string, below stack, owner tree.Owner) error {
	to := c.changes(dir)
	if len(below.layers) == 0 || below.readOnly {
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
		return os.Chown(to, owner.UID, owner.GID)
	}
	return tree.Copy(below.layers[0], to, owner)
}

func (c Copy) show(dir string, below stack, target *os.File) error {
	if err := os.Remove(target.Name()); err != nil {
		return err
	}
	to := c.changes(dir)
	if below.readOnly && len(below.layers) > 0 {
		to = below.layers[0]
	}
	return os.Symlink(to, target.Name())
}

func (Copy) hide(target string) error {
	if info, err := os.Lstat(target); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return os.Remove(target)
	}
	return nil
}
