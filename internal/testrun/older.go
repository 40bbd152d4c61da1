package testrun

import (
	"fmt"
	"os"
	"os/exec"
)

// before is the commit that stands for the version before this one, as long as there is no release: the last one
// before requests to AWS were checked against its models and every operation minded mass silence.
const before = "8151d1eeb2c2370ecd1148495d0b60da3d987f33"

// Older are the programs of the version before this one, which are built from git. In a clone that does not have the
// commit Dir fails.
var Older = Programs{
	Names:    []string{"controld", "agentd", "standin-runner"},
	packages: []string{"./controld", "./agentd", "./internal/githubsim/cmd/standin-runner"},
	commit:   before,
}

// buildCommit builds the programs from a commit into a directory.
func (p *Programs) buildCommit(dir string) error {
	source, err := os.MkdirTemp("", "remuda-test-source-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(source) }() // a leftover in the temporary directory is harmless
	args := append([]string{"-euo", "pipefail", "-c", `
git cat-file -e "$1^{commit}" || { echo "the clone is shallow: git fetch --unshallow"; exit 1; }
git -C "$(git rev-parse --show-toplevel)" archive "$1" | tar -x -C "$2"
cd "$2"
go build -trimpath -buildvcs=false -ldflags "-s -w -X github.com/remuda-ci/remuda/internal/telemetry.Version=before" -o "$3/" "${@:4}"
`, "build", p.commit, source, dir}, p.packages...)
	cmd := exec.Command("bash", args...)
	cmd.Env = append(os.Environ(), BuildEnviron...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the version before, %s: %w\n%s", p.commit, err, out)
	}
	return nil
}
