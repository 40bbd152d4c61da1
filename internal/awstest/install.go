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

// installer, below the root of the module, and what it installs. They are
// opened so that go test, which remembers the files that a test looked at, does
// not take a result of other emulators for one of these.
const installer = "scripts/emulators"

var pins = []string{installer, "internal/awstest/emulators/pom.xml", "internal/awstest/emulators/requirements.txt"}

// installed is the directory that has the emulators. Where they are missing,
// the first test binary installs them and all others wait.
var installed = sync.OnceValues(func() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	for _, pin := range pins {
		if _, err := os.Stat(filepath.Join(root, pin)); err != nil {
			return "", err
		}
	}
	var stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(root, installer))
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run %s: %w\n%s", installer, err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
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
