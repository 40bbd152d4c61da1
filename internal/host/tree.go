package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// removeTree deletes a tree and follows no symbolic link. Directories that a
// job made unwritable are made writable first, within the tree only.
func removeTree(path string) error {
	err := os.RemoveAll(path)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err := unlockTree(path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// unlockTree gives the owner every right to the directories of a tree. It
// works below an os.Root, so what a job swaps in meanwhile leads nowhere else.
func unlockTree(path string) error {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return err
	}
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer parent.Close()
	return unlockDir(parent, filepath.Base(path))
}

func unlockDir(root *os.Root, name string) error {
	if err := root.Chmod(name, 0o700); err != nil {
		return err
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := unlockDir(root, filepath.Join(name, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// renewDir replaces a directory, or whatever stands in its place, by an empty
// one.
func renewDir(path string) error {
	if err := removeTree(path); err != nil {
		return err
	}
	return os.Mkdir(path, 0o755)
}

// mirrorTree makes to equal from: what is missing or differs is linked hard,
// or copied where that is not possible; what is too much is deleted.
func mirrorTree(from, to string) error {
	if info, err := os.Lstat(to); err != nil || !info.IsDir() {
		if err := renewDir(to); err != nil {
			return fmt.Errorf("mirror runner: %w", err)
		}
	}
	wanted, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("mirror runner: %w", err)
	}
	present, err := os.ReadDir(to)
	if err != nil {
		return fmt.Errorf("mirror runner: %w", err)
	}
	for _, e := range present {
		name := e.Name()
		if !slices.ContainsFunc(wanted, func(w fs.DirEntry) bool { return w.Name() == name }) {
			if err := removeTree(filepath.Join(to, name)); err != nil {
				return fmt.Errorf("mirror runner: %w", err)
			}
		}
	}
	for _, e := range wanted {
		if err := mirror(e, filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func mirror(e fs.DirEntry, from, to string) error {
	var err error
	switch {
	case e.IsDir():
		return mirrorTree(from, to)
	case e.Type() == fs.ModeSymlink:
		err = mirrorLink(from, to)
	case e.Type().IsRegular():
		err = mirrorFile(from, to)
	}
	if err != nil {
		return fmt.Errorf("mirror runner: %w", err)
	}
	return nil
}

func mirrorLink(from, to string) error {
	target, err := os.Readlink(from)
	if err != nil {
		return err
	}
	if there, err := os.Readlink(to); err == nil && there == target {
		return nil
	}
	if err := removeTree(to); err != nil {
		return err
	}
	return os.Symlink(target, to)
}

func mirrorFile(from, to string) error {
	want, err := os.Lstat(from)
	if err != nil {
		return err
	}
	have, err := os.Lstat(to)
	if err == nil && sameFile(want, have) {
		return nil
	}
	if err := removeTree(to); err != nil {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	return copyFile(from, to, want)
}

// sameFile: one file under two names, or a copy that nobody touched since.
func sameFile(want, have fs.FileInfo) bool {
	return os.SameFile(want, have) || (have.Mode() == want.Mode() && have.Size() == want.Size() &&
		have.ModTime().Equal(want.ModTime()))
}

func copyFile(from, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
