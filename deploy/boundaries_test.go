package deploy_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// entry is a resource of the template. A function of CloudFormation is the text of its argument.
type entry struct {
	Type       string         `yaml:"Type"`
	Properties map[string]any `yaml:"Properties"`
}

func resources(t *testing.T) map[string]entry {
	t.Helper()
	text, err := os.ReadFile(template(t))
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Resources map[string]entry `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(text, &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed.Resources
}

// ofType are the names of the resources of a type, in order.
func ofType(all map[string]entry, kind string) (names []string) {
	for name, r := range all {
		if r.Type == kind {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func list(v any) []any {
	if l, ok := v.([]any); ok {
		return l
	}
	if v == nil {
		return nil
	}
	return []any{v}
}

// TestWhoReachesWhom: nothing connects to a host, and a host, which may run the job of a stranger, reaches neither controld itself nor the port of
// webhooks, metrics and scaling. The linters take any rule that has a description and is not open to the internet.
func TestWhoReachesWhom(t *testing.T) {
	all := resources(t)
	var got []string
	rule := func(group string, r map[string]any) {
		source := r["SourceSecurityGroupId"]
		if source == nil {
			source = r["CidrIp"]
		}
		got = append(got, fmt.Sprintf("%s %v-%v from %v", group, r["FromPort"], r["ToPort"], source))
	}
	for _, name := range ofType(all, "AWS::EC2::SecurityGroup") {
		for _, r := range list(all[name].Properties["SecurityGroupIngress"]) {
			rule(name, r.(map[string]any))
		}
	}
	for _, name := range ofType(all, "AWS::EC2::SecurityGroupIngress") {
		rule(fmt.Sprint(all[name].Properties["GroupId"]), all[name].Properties)
	}
	slices.Sort(got)
	want := []string{
		"ControldSecurityGroup 7080-7080 from LoadBalancerSecurityGroup",
		"ControldSecurityGroup 7080-7080 from PublicSecurityGroup",
		"ControldSecurityGroup 7443-7443 from LoadBalancerSecurityGroup",
		"ControldSecurityGroup 7443-7443 from PublicSecurityGroup",
		"LoadBalancerSecurityGroup 7080-7080 from WebhookSecurityGroup",
		"LoadBalancerSecurityGroup 7443-7443 from 10.0.0.0/8",
		"LoadBalancerSecurityGroup 7443-7443 from 172.16.0.0/12",
		"LoadBalancerSecurityGroup 7443-7443 from 192.168.0.0/16",
		"PublicSecurityGroup 7443-7443 from CallerCidr",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWhatTheRolesMayDo: beside what controld iam prints, which has a test of its own, hosts may do nothing, and controld what it needs to boot.
func TestWhatTheRolesMayDo(t *testing.T) {
	all := resources(t)
	var got []string
	for _, name := range ofType(all, "AWS::IAM::Role") {
		for _, more := range []string{"Policies", "ManagedPolicyArns"} {
			if all[name].Properties[more] != nil {
				t.Errorf("%s has %s", name, more)
			}
		}
	}
	printed := []string{"ControldPolicy", "ControldRefreshPolicy", "HostPolicy"}
	for _, name := range ofType(all, "AWS::IAM::Policy") {
		p := all[name].Properties
		line := fmt.Sprintf("%s of %v", name, p["Roles"])
		if slices.Contains(printed, name) {
			got = append(got, line)
			continue
		}
		for _, s := range list(p["PolicyDocument"].(map[string]any)["Statement"]) {
			statement := s.(map[string]any)
			got = append(got, fmt.Sprintf("%s: %v on %v if %v", line, statement["Action"], statement["Resource"], statement["Condition"]))
		}
	}
	const parameters = "arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/${Prefix}/credentials"
	want := []string{
		"ControldBootPolicy of [ControldRole]: [ssm:GetParameter ssm:GetParametersByPath] on [" + parameters + " " + parameters + "/*] if <nil>",
		"ControldBootPolicy of [ControldRole]: [logs:CreateLogStream logs:DescribeLogStreams logs:PutLogEvents] on [ControldLogs.Arn] if <nil>",
		"ControldPolicy of [ControldRole]",
		"ControldRefreshPolicy of [ControldRole]",
		"HostPolicy of [HostRole]",
		"PackagePolicy of [ControldRole]: s3:GetObject on [arn:${AWS::Partition}:s3:::${Path} map[Path:[1 [:// PackageUri]]]] if <nil>",
		"SecretsKeyPolicy of [ControldRole]: kms:Decrypt on SecretsKeyArn if map[StringEquals:map[kms:ViaService:ssm.${AWS::Region}.${AWS::URLSuffix}]]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTheMachineOfControld: its disk, which holds secrets, is encrypted and goes with it, and its metadata needs a token and ends at the machine.
func TestTheMachineOfControld(t *testing.T) {
	data := fmt.Sprint(resources(t)["ControldTemplate"].Properties["LaunchTemplateData"])
	for _, want := range []string{"Encrypted:true", "DeleteOnTermination:true", "HttpTokens:required", "HttpPutResponseHopLimit:1", "AssociatePublicIpAddress:false"} {
		if !strings.Contains(data, want) {
			t.Errorf("its launch template has no %s", want)
		}
	}
}
