package workflow_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
)

// TestExamplesAreValid: GitHub would take them, and the workflows of the project.
func TestExamplesAreValid(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.yml", "workflows/*.yml", "../.github/workflows/*.yml"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no examples by %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	// What job pools serve.
	labels := filepath.Join(t.TempDir(), "actionlint.yaml")
	if err := os.WriteFile(labels, []byte("self-hosted-runner: {labels: [remuda-*]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{ConfigFile: labels})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := linter.LintFiles(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	for path, workflow := range workflowsOfPages(t) {
		found, err := linter.Lint(path, workflow, nil)
		if err != nil {
			t.Fatal(err)
		}
		problems = append(problems, found...)
	}
	for _, p := range problems {
		t.Errorf("%v", p)
	}
}

// workflowsOfPages are the workflows in the pages that say how to begin.
func workflowsOfPages(t *testing.T) map[string][]byte {
	found := map[string][]byte{}
	for _, name := range []string{"aws.md", "organization.md"} {
		page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		workflow := regexp.MustCompile("(?s)```yaml\n(on: .*?)```").FindSubmatch(page)
		if workflow == nil {
			t.Fatalf("%s has no workflow", name)
		}
		found[name] = workflow[1]
	}
	return found
}

// TestWorkflowIsShort: the example is as short as the README says that a workflow is, and the README has it whole.
func TestWorkflowIsShort(t *testing.T) {
	example, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "workflow.yml"))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join("..", "..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(example), "\n"); n > 10 {
		t.Errorf("it has %d lines", n)
	}
	if !strings.Contains(string(readme), "```yaml\n"+string(example)+"```\n") {
		t.Error("README.md has another workflow")
	}
}

// withAction is examples/workflow.yml with the address and the audience of the test, and nothing else, changed.
func (s *stage) withAction() string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "workflow.yml"))
	if err != nil {
		s.Fatal(err)
	}
	return s.reaching(string(text))
}

// reaching is a workflow with the address and the audience of the test in the place of those of the documents.
func (s *stage) reaching(workflow string) string {
	s.Helper()
	const address = "{address: 'remuda.acme.com:443'"
	if n := strings.Count(workflow, address); n != 1 {
		s.Fatalf("the workflow has %d addresses", n)
	}
	return strings.Replace(workflow, address, fmt.Sprintf("{address: '%s', audience: '%s'", s.daemon.GRPCAddr, audience), 1)
}

// releaseJob is the job of docs/callers.md that gives the hosts back.
func (s *stage) releaseJob() string {
	s.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "callers.md"))
	if err != nil {
		s.Fatal(err)
	}
	job := regexp.MustCompile("(?s)```yaml\n(  release:\n.*?)```").FindSubmatch(page)
	if job == nil {
		s.Fatal("docs/callers.md has no job that releases")
	}
	return s.reaching(string(job[1]))
}

// example is examples/workflow-curl.yml with the values of its env that are each
// user's own, and nothing else, changed.
func (s *stage) example() string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "workflow-curl.yml"))
	if err != nil {
		s.Fatal(err)
	}
	url, sum := publish(s.T)
	workflow := string(text)
	for name, value := range map[string]string{
		"CONTROLD": s.daemon.GRPCAddr, "AUDIENCE": audience, "GRPCURL": url, "GRPCURL_SHA256": sum,
	} {
		line := regexp.MustCompile(`(?m)^  ` + name + `: .*$`)
		if n := len(line.FindAllString(workflow, -1)); n != 1 {
			s.Fatalf("the example sets %s %d times", name, n)
		}
		workflow = line.ReplaceAllString(workflow, "  "+name+": "+value)
	}
	return workflow
}

// testing is the example with a script in the place of its tests.
func (s *stage) testing(script string) string {
	s.Helper()
	line := regexp.MustCompile(`(?m)^      - run: echo "shard .*$`)
	workflow := s.example()
	if n := len(line.FindAllString(workflow, -1)); n != 1 {
		s.Fatalf("the example has %d lines for its tests", n)
	}
	return line.ReplaceAllLiteralString(workflow, "      - run: |\n          "+strings.ReplaceAll(script, "\n", "\n          "))
}

// withoutRelease leaves out the last job, as the example says one may, and what
// is said of it.
func withoutRelease(t *testing.T, workflow string) string {
	t.Helper()
	at := strings.Index(workflow, "\n  release:\n")
	if at < 0 {
		t.Fatal("the example has no job that releases")
	}
	return workflow[:at+1]
}
