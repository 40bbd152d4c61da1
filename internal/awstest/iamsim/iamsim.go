// Package iamsim evaluates IAM policies in tests, by the rules that AWS documents and its service authorization reference: with
// @cloud-copilot/iam-simulate. Parliament lints them. Both are installed by scripts/policy-tools when a test first needs them; they are tools of
// the tests and part of nothing that is shipped.
//
// What is not evaluated: the policies of organizations, sessions and resources, except that a KMS key has its default policy; and what a service
// really puts into the context of a request.
package iamsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/remuda-ci/remuda/internal/awstest/pinned"
)

// The outcomes that a case may want.
const (
	Allowed = "Allowed"
	Denied  = "ImplicitlyDenied"
)

// Case is a request and what a policy should make of it.
type Case struct {
	// ID and Note say what it is for.
	ID   string `json:"-"`
	Note string `json:"-"`
	// Policy is the name of the policy of the caller.
	Policy    string         `json:"policy"`
	Principal string         `json:"principal"`
	Account   string         `json:"account"`
	Action    string         `json:"action"`
	Resource  string         `json:"resource"`
	Context   map[string]any `json:"context"`
	Want      string         `json:"-"`
}

func (c Case) String() string {
	text := fmt.Sprintf("%s %s: %s on %s", c.ID, c.Policy, c.Action, c.Resource)
	if c.Note != "" {
		text += " (" + c.Note + ")"
	}
	return text
}

// Result is the outcome of each case, and the case that catches each mutant: its index, or -1.
type Result struct {
	Got    []string `json:"got"`
	Caught []int    `json:"caught"`
}

// Simulate evaluates all cases, and those of a mutant's policy with the mutant in its place until one comes out differently. One process does it
// all.
func Simulate(t testing.TB, policies map[string]Document, cases []Case, mutants []Mutant) Result {
	t.Helper()
	var result Result
	ask(t, "node", "simulate.mjs", map[string]any{"policies": policies, "cases": cases, "mutants": mutants}, &result)
	if len(result.Got) != len(cases) || len(result.Caught) != len(mutants) {
		t.Fatalf("%d outcomes of %d cases, and %d of %d mutants", len(result.Got), len(cases), len(result.Caught), len(mutants))
	}
	return result
}

// Lint is what parliament finds, as POLICY SID ISSUE: DETAIL; the Sid "all" is the policy as a whole.
func Lint(t testing.TB, policies map[string]Document) []string {
	t.Helper()
	var findings []string
	ask(t, filepath.Join(tools(t).Dir, "lint/bin/python"), "lint.py", policies, &findings)
	return findings
}

// ask runs a script of this directory with JSON on both ends.
func ask(t testing.TB, program, script string, question, answer any) {
	t.Helper()
	in, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	var out, stderr bytes.Buffer
	i := tools(t)
	cmd := exec.CommandContext(t.Context(), program, filepath.Join(i.Root, directory, script), i.Dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("run %s: %v\n%s", script, err, &stderr)
	}
	if err := json.Unmarshal(out.Bytes(), answer); err != nil {
		t.Fatalf("read what %s says: %v\n%s", script, err, &out)
	}
}

// directory of this package, below the root of the module.
const directory = "internal/awstest/iamsim"

var installed = sync.OnceValues(pinned.Tools{
	Script: "scripts/policy-tools",
	Files: []string{
		directory + "/pins/package-lock.json", directory + "/pins/requirements.txt", directory + "/simulate.mjs", directory + "/lint.py",
	},
}.Install)

// tools are installed when they are first needed.
func tools(t testing.TB) pinned.Installed {
	t.Helper()
	i, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	return i
}
