package iamsim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/awstest/iamsim"
)

const account = "123456789012"

var callers = map[string]iamsim.Caller{"host": {Principal: "p", Partition: "aws-cn", Region: "cn-north-1", Account: account}}

func read(t *testing.T, text string) (*iamsim.Table, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cases.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return iamsim.ReadTable(path, callers)
}

func TestTable(t *testing.T) {
	t.Parallel()
	table, err := read(t, `
# a comment
set me aws:userid=r:i-1
H1 host allow ec2:A,ec2:B ec2:instance/i-1,iam:role/x me dynamodb:LeadingKeys=r:i-1 # mine
H2 host deny ec2:C *
same host X without y # why
false host X ISSUE: y # why not
`)
	if err != nil {
		t.Fatal(err)
	}
	context := map[string]any{"aws:userid": "r:i-1", "dynamodb:LeadingKeys": []string{"r:i-1"}}
	h1 := func(action, resource string) iamsim.Case {
		return iamsim.Case{ID: "H1", Note: "mine", Policy: "host", Principal: "p", Account: account, Action: action, Resource: resource, Context: context, Want: iamsim.Allowed}
	}
	const instance, role = "arn:aws-cn:ec2:cn-north-1:123456789012:instance/i-1", "arn:aws-cn:iam::123456789012:role/x"
	want := []iamsim.Case{
		h1("ec2:A", instance), h1("ec2:A", role), h1("ec2:B", instance), h1("ec2:B", role),
		{ID: "H2", Policy: "host", Principal: "p", Account: account, Action: "ec2:C", Resource: "*", Context: map[string]any{}, Want: iamsim.Denied},
	}
	if diff := cmp.Diff(want, table.Cases); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if table.Same["host X without y"] != "why" || table.False["host X ISSUE: y"] != "why not" {
		t.Errorf("got %v and %v", table.Same, table.False)
	}
}

func TestWrongTables(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"H1 host allow ec2:A", "H1 guest allow ec2:A *", "H1 host perhaps ec2:A *", "H1 host allow ec2:A * unknown", "same host X without y", "set x y",
	} {
		if _, err := read(t, "\n"+line+"\n"); err == nil || !strings.Contains(err.Error(), "cases.txt:2: ") {
			t.Errorf("%q: got %v, want an error with its place", line, err)
		}
	}
}

func TestMutants(t *testing.T) {
	t.Parallel()
	d := iamsim.Document{Statement: []iamsim.Statement{
		{Sid: "S", Action: []string{"ec2:A", "ec2:B"}, Resource: []string{"arn:aws:ec2:r:1:x/y"}, Condition: map[string]map[string]any{
			"ForAllValues:StringEquals": {"k": []any{"a", "b"}}, "Null": {"k": "false"},
		}},
		{Sid: "All", Action: []string{"ec2:A"}, Resource: []string{"*"}},
	}}
	var got []string
	for _, m := range iamsim.Mutants("p", d) {
		got = append(got, m.Clause)
		if cmp.Equal(d, m.Document) {
			t.Errorf("%s changes nothing", m.Clause)
		}
	}
	want := []string{
		"p S without the statement", "p S without ec2:A", "p S with ec2:*", "p S without ec2:B", "p S with any resource for arn:aws:ec2:r:1:x/y",
		"p S with any region for arn:aws:ec2:r:1:x/y", "p S with any account for arn:aws:ec2:r:1:x/y", "p S with what begins like arn:aws:ec2:r:1:x/y",
		"p S without ForAllValues:StringEquals k", "p S with any value for ForAllValues:StringEquals k", "p S with another value for ForAllValues:StringEquals k",
		"p S without a for ForAllValues:StringEquals k", "p S without b for ForAllValues:StringEquals k", "p S without Null k", "p S with true for Null k",
		"p All without the statement", "p All with ec2:*",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
