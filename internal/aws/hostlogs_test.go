package aws_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
)

// Only a fleet that asks for it has the statement, and only its hosts do.
func TestLogsOfHosts(t *testing.T) {
	if got := aws.Policy(aws.RoleHost, aws.HostLogActions(), names); len(got.Statement) != 0 {
		t.Errorf("without the option: %+v", got)
	}
	logs := names
	logs.HostLogs = true
	if got := aws.Policy(aws.RoleControld, aws.HostLogActions(), logs); len(got.Statement) != 0 {
		t.Errorf("controld: %+v", got)
	}
	want := []aws.Statement{{
		Sid: "HostLogs", Effect: "Allow", Action: []string{"logs:CreateLogStream", "logs:PutLogEvents"},
		Resource: []string{"arn:aws:logs:eu-west-1:123456789012:log-group:/remuda/remuda/hosts:log-stream:i-*/${aws:Ec2InstanceSourcePrivateIPv4}"},
	}}
	if diff := cmp.Diff(want, aws.Policy(aws.RoleHost, aws.HostLogActions(), logs).Statement); diff != "" {
		t.Error(diff)
	}
}
