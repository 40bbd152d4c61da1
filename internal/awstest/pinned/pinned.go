// Package pinned has the tools of tests that files of the repository pin and a script of it installs.
package pinned

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Tools are what one script installs. All paths begin at the root of the module.
type Tools struct {
	// Script installs them where they are missing and prints their directory. Any number may run at the same time.
	Script string
	// Files pin them, and use them.
	Files []string
}

// Installed is where tools are.
type Installed struct {
	// Dir is the directory that the script prints, and Root that of the module.
	Dir, Root string
}

// Root looks at the script and the files, and returns the root of the module. Go test notes the files that a test looks at: it must not take a
// result that came of other tools for one of these.
func (t Tools) Root() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	for _, file := range append([]string{t.Script}, t.Files...) {
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			return "", err
		}
	}
	return root, nil
}

// Install has the script install what is missing.
func (t Tools) Install() (Installed, error) {
	root, err := t.Root()
	if err != nil {
		return Installed{}, err
	}
	var stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(root, t.Script))
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return Installed{}, fmt.Errorf("run %s: %w\n%s", t.Script, err, &stderr)
	}
	return Installed{Dir: strings.TrimSpace(string(out)), Root: root}, nil
}

// moduleRoot is where go.mod is: a test runs in the directory of its package.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find the module: no go.mod above the working directory")
		}
		dir = parent
	}
}
