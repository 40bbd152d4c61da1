package local

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// programs are what a System is made of, by their packages.
var programs = []string{
	"github.com/remuda-ci/remuda/controld",
	"github.com/remuda-ci/remuda/agentd",
	"github.com/remuda-ci/remuda/internal/githubsim/cmd/standin-runner",
}

// Build builds the programs of a System into a directory, from the module that
// the working directory is in.
func Build(dir string) error {
	cmd := exec.Command("go", append([]string{"build", "-o", dir + string(filepath.Separator)}, programs...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return nil
}
