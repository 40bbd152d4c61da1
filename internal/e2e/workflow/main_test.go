// Package workflow_test runs the workflow that users copy, and callers that want
// what is not theirs, against the daemons as processes: controld with TLS, a
// GitHub App, webhooks and callers, agentd, the GitHub stand-in, its runner and
// its stand-ins for GitHub's own machines.
package workflow_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/remuda-ci/remuda/internal/testrun"
)

// together is how many tests run at the same time: all that are parallel, which wait
// far more than they compute.
const together = "3"

// toolsDir is a directory with curl and jq of our own.
var toolsDir string

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
		toolsDir = filepath.Join(dir, "tools")
		err = linkTools(toolsDir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "make curl and jq:", err)
		os.Exit(1)
	}
	if err := flag.Set("test.parallel", together); err != nil { // a -parallel of the command line is read later, and counts
		panic(err)
	}
	testrun.Together()
	code := m.Run()
	testrun.System.Remove()
	testrun.GRPCurl.Remove()
	_ = os.RemoveAll(dir) // a leftover in the temporary directory does no harm
	os.Exit(code)
}
