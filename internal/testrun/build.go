package testrun

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/remuda-ci/remuda"

// System are the programs that the whole system consists of.
var System = Programs{
	Names:    []string{"controld", "agentd", "remuda", "standin-runner"},
	module:   ".",
	packages: []string{module + "/controld", module + "/agentd", module + "/remuda", module + "/internal/githubsim/cmd/standin-runner"},
}

// Runner is the stand-in's runner alone.
var Runner = Programs{
	Names:    []string{"standin-runner"},
	module:   ".",
	packages: System.packages[3:],
	among:    &System,
}

// GRPCurl is the pinned grpcurl.
var GRPCurl = Programs{
	Names:    []string{"grpcurl"},
	module:   "internal/tools",
	packages: []string{"github.com/fullstorydev/grpcurl/cmd/grpcurl"},
}

// Collector is the pinned collector of OpenTelemetry.
var Collector = Programs{
	Names:    []string{"otelcol"},
	module:   "internal/tools",
	packages: []string{module + "/internal/tools/otelcol"},
}

// Programs are programs in one directory, which has nothing else in it. Tests start them
// as processes.
type Programs struct {
	// Names are those of the files.
	Names []string
	// module is where go build runs, below the root of this module: the tools have a module of their own, which pins them.
	module   string
	packages []string
	// among, if it is set, are the programs that the command has built these with.
	among *Programs
	// commit, if it is set, is what the programs are built from. The command does not build these.
	commit string

	once  sync.Once
	dir   string
	built bool
	err   error
}

// Dir is the directory that has the programs. They are those that the command
// has built; without it, as in a lone go test, the first call builds them.
func (p *Programs) Dir(t testing.TB) string {
	t.Helper()
	if p.commit != "" {
		Fresh() // go test does not see git
	}
	p.once.Do(p.find)
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.dir
}

// Remove removes what Dir has built, at the end of a test binary.
func (p *Programs) Remove() {
	if p.built {
		_ = os.RemoveAll(p.dir) // a leftover in the temporary directory is harmless
	}
}

func (p *Programs) find() {
	if all := os.Getenv(BinVariable); all != "" && p.commit == "" {
		p.dir = p.In(all)
		for _, name := range p.Names {
			// Go test notes the size and the time of a file that a test looks
			// at, so it reuses no result that came of another program.
			if _, err := os.Stat(filepath.Join(p.dir, name)); err != nil {
				p.err = fmt.Errorf("find a program that was built for tests: %w", err)
			}
		}
		return
	}
	if p.dir, p.err = os.MkdirTemp("", "remuda-test-bin-"); p.err == nil {
		p.built, p.err = true, p.Build(p.dir)
	}
}

// In is the directory of the programs among those of BinVariable.
func (p *Programs) In(all string) string {
	if p.among != nil {
		return p.among.In(all)
	}
	return filepath.Join(all, p.Names[0])
}

// Build builds the programs into a directory.
func (p *Programs) Build(dir string) error {
	if p.commit != "" {
		return p.buildCommit(dir)
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	// Without the commit in it, a program changes only with its code.
	args := append([]string{"build", "-ldflags=-s -w", "-buildvcs=false", "-o", dir + string(filepath.Separator)}, BuildFlags...)
	cmd := exec.Command("go", append(args, p.packages...)...)
	cmd.Dir = filepath.Join(root, p.module)
	cmd.Env = append(os.Environ(), BuildEnviron...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", strings.Join(p.Names, ", "), err, out)
	}
	return nil
}

// moduleRoot is the nearest directory with a go.mod, from the working directory up.
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
