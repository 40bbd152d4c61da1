package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const template = "../deploy/cloudformation/remuda.yaml"

// policyBlock is where the template has the policy of a role.
var policyBlock = regexp.MustCompile(`(?s)( *)# controld iam --format cloudformation --role (\w+)\n.*?# end of controld iam\n`)

// TestTheTemplatesPolicies: those of the template are what controld iam prints.
func TestTheTemplatesPolicies(t *testing.T) {
	text, err := os.ReadFile(template)
	if err != nil {
		t.Fatal(err)
	}
	var roles []string
	want := policyBlock.ReplaceAllStringFunc(string(text), func(block string) string {
		found := policyBlock.FindStringSubmatch(block)
		indent, role := found[1], found[2]
		roles = append(roles, role)
		got := controld(t, "iam", "--format", "cloudformation", "--role", role)
		if got.code != 0 {
			t.Fatal(got)
		}
		var b strings.Builder
		b.WriteString(indent + "# controld iam --format cloudformation --role " + role + "\n")
		for line := range strings.Lines(got.stdout) {
			b.WriteString(indent + line)
		}
		b.WriteString(indent + "# end of controld iam\n")
		return b.String()
	})
	if diff := cmp.Diff([]string{"host", "controld", "refresh"}, roles); diff != "" {
		t.Fatalf("the template has policies of other roles (-want +got):\n%s", diff)
	}
	if *update {
		if err := os.WriteFile(template, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(text), want); diff != "" {
		t.Errorf("the template's policies are others; go test ./controld -run TestTheTemplatesPolicies -update (-template +iam):\n%s", diff)
	}
}

// TestIAMForATemplate are calls that are refused.
func TestIAMForATemplate(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"with a configuration": {[]string{"--format", "cloudformation", "--config", awsExample}, "and so no --config"},
		"another format":       {[]string{"--format", "terraform"}, "neither json nor cloudformation"},
		"another role":         {[]string{"--format", "cloudformation", "--role", "root"}, "none of controld, refresh and host"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := controld(t, append([]string{"iam"}, test.args...)...); got.code != 2 || !strings.Contains(got.stderr, test.says) {
				t.Errorf("got %+v, want %q", got, test.says)
			}
		})
	}
}
