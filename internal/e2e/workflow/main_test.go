// Package workflow_test runs the workflow that users copy, and whoever wants
// what is not theirs, against the daemons as processes: controld with TLS, a
// GitHub App, webhooks and callers, agentd, the GitHub stand-in, its runner and
// its stand-ins for GitHub's own machines.
package workflow_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/remuda-ci/remuda/internal/local"
)

// programs are what is built once for all tests.
var programs struct {
	// daemons is the directory with controld, agentd and standin-runner.
	daemons string
	// grpcurl is a directory with nothing else, as a release of it has.
	grpcurl string
	// tools is a directory with curl and jq of our own.
	tools string
}

func TestMain(m *testing.M) {
	if tool := toolOf(os.Args[0]); tool != nil { // a step of a workflow calls this program by another name
		if err := tool(os.Args[1:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(22) // curl's, for an answer that is an error
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "remuda-e2e-workflow-")
	if err == nil {
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build what is under test:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir) // a leftover in the temporary directory harms nobody
	os.Exit(code)
}

func build(dir string) error {
	programs.daemons, programs.grpcurl, programs.tools = filepath.Join(dir, "bin"), filepath.Join(dir, "grpcurl"), filepath.Join(dir, "tools")
	if err := local.Build(programs.daemons); err != nil {
		return err
	}
	if err := buildTool(programs.grpcurl, "github.com/fullstorydev/grpcurl/cmd/grpcurl"); err != nil {
		return err
	}
	return linkTools(programs.tools)
}

// buildTool builds one of the pinned tools.
func buildTool(into, tool string) error {
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", into+string(filepath.Separator), tool)
	cmd.Dir = "../../tools"
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
