package aws_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/testrun"
)

// uncalled are the actions that no call of this test needs, and why each is
// still allowed.
var uncalled = map[string]string{
	"ec2:RunInstances":                   "EC2 asks for it when CreateFleet is called",
	"ec2:CreateTags":                     "EC2 asks for it when something is made with tags",
	"iam:PassRole":                       "EC2 asks for it when a template or a launch names the hosts' profile",
	"ec2:DescribeInstanceTypes":          "for a type that the catalogue lacks; tested in compute/ec2",
	"ec2:DescribeInstanceStatus":         "for a silent host; tested in compute/ec2",
	"ec2:CreateLaunchTemplateVersion":    "after a change of the configuration; tested in compute/ec2",
	"ec2:ModifyLaunchTemplate":           "after a change of the configuration; tested in compute/ec2",
	"ec2:DeleteLaunchTemplateVersions":   "for old versions; tested in compute/ec2",
	"sqs:SetQueueAttributes":             "for a queue that differs; tested in queue/sqs",
	"sqs:TagQueue":                       "SQS asks for it when a queue is made with tags; tested in queue/sqs",
	"sqs:ChangeMessageVisibility":        "for messages that did not fit; tested in queue/sqs",
	"dynamodb:UpdateTable":               "for a table that lacks an index; tested in store/dynamo",
	"dynamodb:UpdateContinuousBackups":   "DynamoDB Local knows no backups; tested in store/dynamo",
	"dynamodb:TagResource":               "DynamoDB asks for it when a table is made with tags; DynamoDB Local knows none; tested in store/dynamo",
	"dynamodb:BatchWriteItem":            "for the history of several runs at once; tested in store/dynamo",
	"ecs:DescribeServices":               "the configuration has services, and this stage runs none; tested in services/ecs",
	"ecs:UpdateService":                  "the configuration has services, and this stage runs none; tested in services/ecs",
	"servicequotas:GetServiceQuota":      "for config check --aws; tested in controld",
	"dynamodb:DescribeContinuousBackups": "DynamoDB Local knows no backups; tested in store/dynamo",
}

// policiesAreWhatWasCalled: every call was allowed by its caller's policies,
// and every action that they allow was called, except those that need another
// occasion.
func (s *stage) policiesAreWhatWasCalled() {
	s.Helper()
	const config = "../../../examples/controld-aws.yaml"
	host, controld, refresh := allowed(s.TB, config, "host"), allowed(s.TB, config, "controld"), allowed(s.TB, config, "refresh")
	byControld, byHosts := called(s.account.controld), called(s.account.hosts)
	for action := range byControld {
		if !controld[action] && !refresh[action] {
			s.Errorf("controld called %s, which no policy of its allows", action)
		}
	}
	for action := range byHosts {
		if !host[action] && action != "sts:GetCallerIdentity" { // which needs no permission
			s.Errorf("a host called %s, which its policy does not allow", action)
		}
	}
	unused := func(policy, calls map[string]bool, name string) {
		for action := range policy {
			if !calls[action] && uncalled[action] == "" {
				s.Errorf("the policy %s allows %s, which nothing called", name, action)
			}
		}
	}
	unused(controld, byControld, "controld")
	unused(refresh, byControld, "refresh")
	if ended := "ec2:TerminateInstances"; !host[ended] {
		s.Errorf("a host may not end itself")
	}
	delete(host, "ec2:TerminateInstances") // its own end is tested in agentd
	unused(host, byHosts, "host")
}

// called are the actions of all calls that came to a proxy.
func called(p *awstest.Proxy) map[string]bool {
	set := map[string]bool{}
	for _, c := range p.Calls() {
		set[c.Action()] = true
	}
	return set
}

// allowed are the actions of a policy, as a user renders it for a configuration.
func allowed(t testing.TB, config, role string) map[string]bool {
	t.Helper()
	cmd := exec.Command(filepath.Join(testrun.System.Dir(t), "controld"), "iam", "--config", config, "--role", role)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	check(t, cmd.Run())
	var policy struct {
		Statement []struct{ Action []string }
	}
	check(t, json.Unmarshal(out.Bytes(), &policy))
	set := map[string]bool{}
	for _, statement := range policy.Statement {
		for _, action := range statement.Action {
			set[action] = true
		}
	}
	if len(set) == 0 || slices.Contains([]string{"controld"}, role) && !set["ec2:CreateFleet"] {
		t.Fatalf("the policy of %s allows %v", role, set)
	}
	return set
}
