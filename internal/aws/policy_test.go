package aws_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
)

var names = aws.Names{
	Partition: "aws", Region: "eu-west-1", Account: "123456789012", Prefix: "remuda", HostRole: "remuda-host", HostProfile: "remuda-host",
}

func TestAHostMayTouchItsOwnRowsOnly(t *testing.T) {
	needed := []aws.Permission{
		{Action: "dynamodb:GetItem", Role: aws.RoleHost, On: aws.OnInstances},
		{Action: "dynamodb:UpdateItem", Role: aws.RoleHost, On: aws.OnReports},
		{Action: "ec2:TerminateInstances", Role: aws.RoleHost, On: aws.OnOwn},
		{Action: "ec2:TerminateInstances", Role: aws.RoleControld, On: aws.OnMachines},
	}
	got, err := aws.Policy(aws.RoleHost, needed, names).JSON()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "InstancesTable",
      "Effect": "Allow",
      "Action": [
        "dynamodb:GetItem"
      ],
      "Resource": [
        "arn:aws:dynamodb:eu-west-1:123456789012:table/remuda-instances"
      ],
      "Condition": {
        "ForAllValues:StringEquals": {
          "dynamodb:LeadingKeys": [
            "${aws:userid}"
          ]
        },
        "Null": {
          "dynamodb:LeadingKeys": "false"
        }
      }
    },
    {
      "Sid": "ReportsTable",
      "Effect": "Allow",
      "Action": [
        "dynamodb:UpdateItem"
      ],
      "Resource": [
        "arn:aws:dynamodb:eu-west-1:123456789012:table/remuda-reports"
      ],
      "Condition": {
        "ForAllValues:StringEquals": {
          "dynamodb:LeadingKeys": [
            "${aws:userid}"
          ]
        },
        "Null": {
          "dynamodb:LeadingKeys": "false"
        }
      }
    },
    {
      "Sid": "OwnMachine",
      "Effect": "Allow",
      "Action": [
        "ec2:TerminateInstances"
      ],
      "Resource": [
        "arn:aws:ec2:eu-west-1:123456789012:instance/*"
      ],
      "Condition": {
        "ArnLike": {
          "ec2:SourceInstanceARN": "arn:aws:ec2:*:*:instance/${ec2:InstanceId}"
        }
      }
    }
  ]
}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
}

// TestNothingIsAllowedEverywhere: what is not bound to the fleet's own things by
// its resource is bound by a condition, or only looks or is bound by what it is
// used with.
func TestNothingIsAllowedEverywhere(t *testing.T) {
	var needed []aws.Permission
	for _, kind := range []aws.Kind{
		aws.OnInstances, aws.OnReports, aws.OnTables, aws.OnQueues, aws.OnTemplates, aws.OnNewTemplates, aws.OnFleet, aws.OnNewTags,
		aws.OnMachines, aws.OnOwn, aws.OnHostRole, aws.OnProfile, aws.OnAll,
	} {
		needed = append(needed, aws.Permission{Action: "x:" + string(kind), Role: aws.RoleControld, On: kind})
	}
	policy := aws.Policy(aws.RoleControld, needed, names)
	if len(policy.Statement) != len(needed)+1 {
		t.Errorf("got %d statements, want one for each kind, and for a launch two beside that of its template", len(policy.Statement))
	}
	for _, s := range policy.Statement {
		free := s.Sid == "Everything" || s.Sid == "UsedByLaunches"
		for _, resource := range s.Resource {
			if !free && s.Condition == nil && !strings.Contains(resource, "remuda") {
				t.Errorf("%s allows %v on %s under no condition", s.Sid, s.Action, resource)
			}
		}
	}
}

func TestAnActionIsThereOnce(t *testing.T) {
	needed := []aws.Permission{
		{Action: "sqs:SendMessage", Role: aws.RoleControld, On: aws.OnQueues, Why: "one"},
		{Action: "sqs:DeleteMessage", Role: aws.RoleControld, On: aws.OnQueues, Why: "two"},
		{Action: "sqs:SendMessage", Role: aws.RoleControld, On: aws.OnQueues, Why: "three"},
		{Action: "sqs:CreateQueue", Role: aws.RoleRefresh, On: aws.OnQueues, Why: "four"},
	}
	policy := aws.Policy(aws.RoleControld, needed, names)
	if diff := cmp.Diff([]string{"sqs:DeleteMessage", "sqs:SendMessage"}, policy.Statement[0].Action); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// A policy has so many characters at most.
func TestManyServicesAreNamedByTheirClusters(t *testing.T) {
	needed := []aws.Permission{{Action: "ecs:UpdateService", Role: aws.RoleControld, On: aws.OnServices}}
	many := names
	for n := range 100 {
		many.Services = append(many.Services, aws.ServiceName{Region: "us-east-1", Cluster: fmt.Sprintf("c%d", n%2), Service: fmt.Sprintf("s%d", n)})
	}
	want := []string{"arn:aws:ecs:us-east-1:123456789012:service/c0/*", "arn:aws:ecs:us-east-1:123456789012:service/c1/*"}
	if diff := cmp.Diff(want, aws.Policy(aws.RoleControld, needed, many).Statement[0].Resource); diff != "" {
		t.Error(diff)
	}
}

// A policy speaks of the services of the configuration, wherever they are, and
// of none where there are none.
func TestServicesAreNamed(t *testing.T) {
	needed := []aws.Permission{{Action: "ecs:UpdateService", Role: aws.RoleControld, On: aws.OnServices}}
	if got := aws.Policy(aws.RoleControld, needed, names); len(got.Statement) != 0 {
		t.Errorf("without services: %+v", got)
	}
	some := names
	some.Services = []aws.ServiceName{{Region: "us-east-1", Cluster: "runners", Service: "jobs"}, {Region: "*", Cluster: "c", Service: "s"}}
	want := []aws.Statement{{Sid: "Services", Effect: "Allow", Action: []string{"ecs:UpdateService"}, Resource: []string{
		"arn:aws:ecs:*:123456789012:service/c/s", "arn:aws:ecs:us-east-1:123456789012:service/runners/jobs",
	}}}
	if diff := cmp.Diff(want, aws.Policy(aws.RoleControld, needed, some).Statement); diff != "" {
		t.Error(diff)
	}
}
