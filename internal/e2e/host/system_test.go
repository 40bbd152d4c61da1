//go:build testhost

package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// system is a machine's root file system: layers that nothing writes to, and
// one above them that is the machine's own. It costs milliseconds.
type system struct {
	// root is where it is mounted.
	root string
	// layer is what differs from the layers below.
	layer string
}

// mountSystem makes one in a directory. Layers are from the top.
func mountSystem(dir string, layers ...string) (*system, error) {
	s := &system{root: filepath.Join(dir, "root"), layer: filepath.Join(dir, "layer")}
	work := filepath.Join(dir, "work")
	for _, d := range []string{dir, s.root, s.layer, work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	options := "lowerdir=" + strings.Join(layers, ":") + ",upperdir=" + s.layer + ",workdir=" + work
	if err := unix.Mount("overlay", s.root, "overlay", 0, options); err != nil {
		return nil, fmt.Errorf("mount the root file system of a machine: %w", err)
	}
	return s, nil
}

// newSystem is there until the test ends.
func newSystem(t testing.TB, layers ...string) *system {
	t.Helper()
	dir, err := os.MkdirTemp(setting.dir, "system-")
	check(t, err)
	check(t, os.Chmod(dir, 0o755))
	s, err := mountSystem(dir, layers...)
	check(t, err)
	t.Cleanup(func() {
		if err := unix.Unmount(s.root, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", s.root, err)
		}
		if err := removeSystem(dir); err != nil {
			t.Errorf("remove a machine's files: %v", err)
		}
	})
	return s
}

// removeSystem deletes what a machine has written, immutable files too.
func removeSystem(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	if _, err := command("chattr", "-R", "-f", "-i", "-a", dir); err != nil && os.RemoveAll(dir) == nil {
		return nil // it complains of links
	}
	return os.RemoveAll(dir)
}

// write puts a file into the system.
func (s *system) write(t testing.TB, path, content string, mode os.FileMode) {
	t.Helper()
	at := filepath.Join(s.root, path)
	check(t, os.MkdirAll(filepath.Dir(at), 0o755))
	check(t, os.WriteFile(at, []byte(content), mode))
	check(t, os.Chmod(at, mode))
}

// copyFile puts a file of this machine into the system.
func (s *system) copyFile(t testing.TB, from, path string, mode os.FileMode) {
	t.Helper()
	data, err := os.ReadFile(from)
	check(t, err)
	s.write(t, path, string(data), mode)
}

func (s *system) exists(path string) bool {
	_, err := os.Lstat(filepath.Join(s.root, path))
	return err == nil
}
