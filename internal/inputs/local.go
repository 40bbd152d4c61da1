package inputs

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/config/strictyaml"
)

// local looks at the programs and directories of a fleet on this machine. It makes none.
func (r *reader) local() {
	if r.c.Backend() != config.BackendLocal {
		return
	}
	database(r.root.At("store", "sqlite", "path"), r.c.Store.SQLite.Path)
	if r.c.WithoutHosts {
		return
	}
	p, at := r.c.Compute.Process, r.root.At("compute", "process")
	if _, err := exec.LookPath(p.Agentd); err != nil && at.At("agentd").Fine() {
		at.At("agentd").Errorf("%s is not a program that can be run (%v); install agentd, or write its path", p.Agentd, reason(err))
	}
	// Hosts copy the runner, and without this file they would all fail.
	if _, err := os.Stat(filepath.Join(p.Runner, "config.sh")); err != nil && at.At("runner").Fine() {
		at.At("runner").Errorf("%s holds no unpacked actions/runner: %s", p.Runner, Problem(filepath.Join(p.Runner, "config.sh"), err))
	}
	directory(at.At("directory"), p.Directory)
}

// reason is an error without what the sentence around it says already.
func reason(err error) error {
	var of *exec.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err
}

// database looks at the file of the store, or at the directory in which it will be made.
func database(at strictyaml.Place, path string) {
	if !at.Fine() {
		return
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		at.Errorf("the directory %s does not exist; make it, and let this user write in it", dir)
		return
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		at.Errorf("%s", Problem(path, err))
	case !info.Mode().IsRegular():
		at.Errorf("%s is not a file; write the path of a file on a local disk", path)
	case unix.Access(path, unix.R_OK|unix.W_OK) != nil:
		at.Errorf("%s", forbidden(path))
	}
	if unix.Access(dir, unix.W_OK|unix.X_OK) != nil { // SQLite makes files beside its own
		at.Errorf("%s", forbidden(dir))
	}
}

// directory looks whether a directory can be made, or is there and can be written.
func directory(at strictyaml.Place, path string) {
	if !at.Fine() {
		return
	}
	there := path
	info, err := os.Stat(there)
	for errors.Is(err, fs.ErrNotExist) && there != "/" {
		there = filepath.Dir(there)
		info, err = os.Stat(there)
	}
	switch {
	case err != nil:
		at.Errorf("%s", Problem(there, err))
	case !info.IsDir():
		at.Errorf("%s is not a directory; write the path of one", there)
	case unix.Access(there, unix.W_OK|unix.X_OK) != nil:
		at.Errorf("%s", forbidden(there))
	}
}
