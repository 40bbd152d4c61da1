// Package deploy_test holds the templates against the linters and against what CloudFormation takes.
package deploy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/awstest/templates"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// largestTemplate is how many bytes CloudFormation takes without a bucket that has the template, as in `aws cloudformation deploy`.
const largestTemplate = 51200

func template(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("cloudformation/remuda.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheTemplateIsSmallEnough(t *testing.T) {
	info, err := os.Stat(template(t))
	if err != nil || info.Size() > largestTemplate {
		t.Errorf("%v %v, want at most %d bytes", info, err, largestTemplate)
	}
}

// TestFewerReplicas: a smaller group has fewer instances only where their number is written. CloudFormation leaves the number alone otherwise.
func TestFewerReplicas(t *testing.T) {
	text, err := os.ReadFile(template(t))
	if err != nil || !strings.Contains(string(text), "\n      MinSize: !Ref Replicas\n      DesiredCapacity: !Ref Replicas ") {
		t.Errorf("%v: the group of controld has no DesiredCapacity beside its MinSize", err)
	}
}

func TestLinted(t *testing.T) {
	racepass.OneGoroutine(t)
	if found := templates.Lint(t, template(t)); found != "" {
		t.Errorf("cfn-lint:\n%s", found)
	}
}

// TestScanned: what checkov must not find has its reason beside it in the template.
func TestScanned(t *testing.T) {
	racepass.OneGoroutine(t)
	if found := templates.Scan(t, template(t)); found != "" {
		t.Errorf("checkov:\n%s", found)
	}
}

// TestTheLintersSee: a template with two faults is not clean, so that a linter that reads nothing is noticed.
func TestTheLintersSee(t *testing.T) {
	racepass.OneGoroutine(t)
	path := filepath.Join(t.TempDir(), "wrong.yaml")
	const wrong = "Resources:\n  Topic:\n    Type: AWS::SNS::Topic\n    Properties: {Nmae: topic}\n"
	if err := os.WriteFile(path, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	if templates.Lint(t, path) == "" || templates.Scan(t, path) == "" {
		t.Error("a linter finds nothing in a template with faults")
	}
}
