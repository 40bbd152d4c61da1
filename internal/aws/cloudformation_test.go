package aws_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/aws"
)

// needed has a permission of each kind, for each role.
func needed() []aws.Permission {
	kinds := []aws.Kind{
		aws.OnInstances, aws.OnReports, aws.OnTables, aws.OnQueues, aws.OnTemplates, aws.OnNewTemplates, aws.OnFleet, aws.OnNewTags,
		aws.OnMachines, aws.OnOwn, aws.OnHostLogs, aws.OnHostRole, aws.OnVolumeKeys, aws.OnVolumeGrants, aws.OnProfile, aws.OnAll,
	}
	var all []aws.Permission
	for i, kind := range kinds {
		for _, role := range []aws.Role{aws.RoleControld, aws.RoleRefresh, aws.RoleHost} {
			all = append(all, aws.Permission{Action: fmt.Sprintf("service:Action%d", i), Role: role, On: kind})
		}
	}
	return all
}

// TestCloudFormation: the policy that a stack gets is the one that controld iam prints for the same account, in two partitions.
func TestCloudFormation(t *testing.T) {
	const keyID = "11111111-2222-3333-4444-555555555555"
	for region, parts := range map[string][2]string{"eu-west-1": {"aws", "amazonaws.com"}, "cn-north-1": {"aws-cn", "amazonaws.com.cn"}} {
		for _, role := range []aws.Role{aws.RoleControld, aws.RoleRefresh, aws.RoleHost} {
			want, err := aws.Policy(role, needed(), aws.Names{
				Region: region, Account: "123456789012", Prefix: "remuda", HostRole: "stack-HostRole-1", HostProfile: "stack-HostProfile-1", VolumeKeys: []string{keyID}, HostLogs: true,
			}).JSON()
			if err != nil {
				t.Fatal(err)
			}
			var doc yaml.Node
			if err := yaml.Unmarshal([]byte(aws.Policy(role, needed(), aws.TemplateNames()).CloudFormation()), &doc); err != nil {
				t.Fatal(err)
			}
			stack := strings.NewReplacer(
				"${AWS::Region}", region, "${AWS::AccountId}", "123456789012", "${AWS::Partition}", parts[0], "${AWS::URLSuffix}", parts[1],
				"${Prefix}", "remuda", "${HostRole}", "stack-HostRole-1", "${HostProfile}", "stack-HostProfile-1", "${VolumeKeyId}", keyID, "${!", "${")
			got, err := json.Marshal(resolved(t, stack, doc.Content[0]))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(canonical(t, want), canonical(t, string(got))); diff != "" {
				t.Errorf("%s in %s (-iam +template):\n%s", role, region, diff)
			}
		}
	}
}

var unresolved = regexp.MustCompile(`\$\{[A-Z!]`)

// resolved does what CloudFormation does: the volumes have a key of the account's own, and hosts send their logs.
func resolved(t *testing.T, stack *strings.Replacer, n *yaml.Node) any {
	t.Helper()
	switch {
	case n.Tag == "!Sub":
		text := stack.Replace(n.Value)
		if unresolved.MatchString(text) {
			t.Errorf("%s is left as %s", n.Value, text)
		}
		return text
	case n.Tag == "!If":
		if condition := n.Content[0].Value; condition != aws.OwnVolumeKey && condition != aws.WithHostLogs || n.Content[2].Tag != "!Ref" || n.Content[2].Value != "AWS::NoValue" {
			t.Errorf("another condition, in line %d", n.Line)
		}
		return resolved(t, stack, n.Content[1])
	case n.Kind == yaml.ScalarNode:
		if n.Tag != "!!str" || unresolved.MatchString(n.Value) {
			t.Errorf("line %d: %s is of type %s, without Fn::Sub", n.Line, n.Value, n.Tag)
		}
		return n.Value
	case n.Kind == yaml.SequenceNode:
		var list []any
		for _, one := range n.Content {
			list = append(list, resolved(t, stack, one))
		}
		return list
	}
	m := map[string]any{}
	for i := 0; i < len(n.Content); i += 2 {
		m[resolved(t, stack, n.Content[i]).(string)] = resolved(t, stack, n.Content[i+1])
	}
	return m
}

// canonical is a policy without the order of its keys, and with a list for each value of a condition, which AWS takes for the same. A
// name that stands twice counts once: the two of EC2 are one in the commercial partition.
func canonical(t *testing.T, text string) map[string]any {
	t.Helper()
	var policy map[string]any
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		t.Fatal(err)
	}
	for _, s := range policy["Statement"].([]any) {
		condition, _ := s.(map[string]any)["Condition"].(map[string]any)
		for _, operator := range condition {
			for key, value := range operator.(map[string]any) {
				list, ok := value.([]any)
				if !ok {
					list = []any{value}
				}
				operator.(map[string]any)[key] = slices.CompactFunc(list, func(a, b any) bool { return a == b })
			}
		}
	}
	return policy
}
