package awstest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Below the root of the module: what installs the emulators, and which.
const (
	installer = "scripts/emulators"
	pins      = "internal/awstest/emulators"
)

// installation is where the emulators and their files are.
type installation struct {
	// emulators is the directory that the installer made.
	emulators string
	// pins has what is the project's own: how moto is started, and its machine images.
	pins string
}

// pinned looks at the files that say which emulators there are, and returns the
// root of the module. Go test notes the files that a test looks at: it must not
// take a result that came of other emulators for one of these.
func pinned() (root string, err error) {
	if root, err = moduleRoot(); err != nil {
		return "", err
	}
	for _, file := range []string{installer, pins + "/pom.xml", pins + "/requirements.txt", pins + "/amis.json", pins + "/motoserver.py"} {
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			return "", err
		}
	}
	return root, nil
}

// installed installs the emulators where they are missing: the first test binary does it and all others wait.
var installed = sync.OnceValues(func() (installation, error) {
	root, err := pinned()
	if err != nil {
		return installation{}, err
	}
	var stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(root, installer))
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return installation{}, fmt.Errorf("run %s: %w\n%s", installer, err, &stderr)
	}
	return installation{emulators: strings.TrimSpace(string(out)), pins: filepath.Join(root, pins)}, nil
})

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
			return "", errors.New("find the emulators: no go.mod above the working directory")
		}
		dir = parent
	}
}
