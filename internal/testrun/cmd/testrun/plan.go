package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/testrun"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

const (
	module  = "github.com/remuda-ci/remuda/"
	library = module + "internal/testrun/racepass"
	awstest = module + "internal/awstest"
)

// testPackage is a package with tests.
type testPackage struct {
	ImportPath, ForTest                string
	DepOnly                            bool
	TestGoFiles, XTestGoFiles          []string
	Imports, TestImports, XTestImports []string
	// leavesOut: its tests may do less in the race pass.
	leavesOut bool
	// asksAWS: its tests may need the emulators.
	asksAWS bool
}

// list are the packages among those of patterns that have tests.
func list(ctx context.Context, patterns []string) ([]testPackage, error) {
	// The others too, since what tests import may import something in turn.
	args := append([]string{"list", "-deps", "-test", "-json=ImportPath,ForTest,DepOnly,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	all := map[string]testPackage{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p testPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		if p.ForTest == "" {
			all[p.ImportPath] = p
		}
	}
	var tested []testPackage
	for _, path := range slices.Sorted(maps.Keys(all)) {
		p := all[path]
		if p.DepOnly || len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		tests := slices.Concat(p.TestImports, p.XTestImports)
		p.leavesOut = imports(all, tests, library, map[string]bool{})
		p.asksAWS = p.ImportPath == awstest || imports(all, tests, awstest, map[string]bool{})
		tested = append(tested, p)
	}
	return tested, nil
}

// imports reports whether packages are or import a library, through packages of
// this module.
func imports(all map[string]testPackage, paths []string, library string, seen map[string]bool) bool {
	for _, path := range paths {
		if path == library {
			return true
		}
		if p, ours := all[path]; ours && !seen[path] {
			seen[path] = true
			if imports(all, p.Imports, library, seen) {
				return true
			}
		}
	}
	return false
}

// plainOnly reports whether the race detector could find nothing in the package.
func (p testPackage) plainOnly() bool {
	rel, _ := strings.CutPrefix(p.ImportPath, module)
	return slices.Contains(testrun.SequentialTests, rel) || slices.Contains(testrun.SystemTests, rel) ||
		slices.ContainsFunc(testrun.Sequential, func(room string) bool { return strings.HasPrefix(rel+"/", room+"/") })
}

// first are the packages that take longest, below the module: what begins last
// must be short, or one core waits for it. The first two of each pass need no
// emulator, since those are still being started. Others follow by their names.
var first = []string{
	"internal/sim", "internal/fleet", "internal/e2e/jobs", "internal/githubsim",
	"internal/store/dynamo", "internal/e2e/aws", "internal/e2e/awsfaults", "internal/cost", "controld", "internal/e2e",
	"internal/e2e/workflow", "agentd", "internal/compute/ec2", "internal/store/sqlite", "internal/queue/sqs",
}

// exitAtOnce keeps a program with the race detector from sleeping for a second before
// it exits, after all of its tests. Each test binary does that, and so do the children
// that are a test binary again. A GORACE of the caller's environment counts instead.
const exitAtOnce = "GORACE=atexit_sleep_ms=0"

// plan is the passes of these packages.
func plan(all []testPackage) []*pass {
	race := &pass{
		name: "race", atOnce: 2,
		// Without debugging information our packages compile an eighth faster. The plain pass
		// has it, as everything else that is built without the race detector.
		flags:   []string{"-race", "-gcflags=" + module + "...=-dwarf=false"},
		environ: []string{"CGO_ENABLED=1", racepass.Variable + "=" + racepass.Value, exitAtOnce + " " + os.Getenv("GORACE")},
	}
	plain := &pass{name: "plain", environ: testrun.BuildEnviron, atOnce: 2}
	for _, p := range all {
		if !p.plainOnly() {
			race.packages = append(race.packages, p.ImportPath)
		}
		if p.plainOnly() || p.leavesOut {
			plain.packages = append(plain.packages, p.ImportPath)
		}
	}
	for _, p := range []*pass{race, plain} {
		slices.SortStableFunc(p.packages, func(a, b string) int { return rank(a) - rank(b) })
	}
	return []*pass{race, plain}
}

func rank(pkg string) int {
	if n := slices.Index(first, strings.TrimPrefix(pkg, module)); n >= 0 {
		return n
	}
	return len(first)
}
