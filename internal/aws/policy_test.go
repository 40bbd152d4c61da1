package aws_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
)

var names = aws.Names{
	Region: "eu-west-1", Account: "123456789012", Prefix: "remuda", HostRole: "remuda-host", HostProfile: "remuda-host",
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

// TestAnotherFleetsTables: a fleet whose prefix begins with that of ours has tables that no pattern of ours covers.
func TestAnotherFleetsTables(t *testing.T) {
	needed := []aws.Permission{
		{Action: "dynamodb:Query", Role: aws.RoleControld, On: aws.OnTables}, {Action: "dynamodb:UpdateTable", Role: aws.RoleRefresh, On: aws.OnTables},
	}
	const table = "arn:aws:dynamodb:eu-west-1:123456789012:table/remuda-"
	tables := []string{table + "instances", table + "reports", table + "requests", table + "jobs", table + "events", table + "leases"}
	indexes := []string{table + "instances/index/*", table + "requests/index/*", table + "jobs/index/*", table + "events/index/*"}
	for role, want := range map[aws.Role][]string{aws.RoleControld: slices.Concat(tables, indexes), aws.RoleRefresh: tables} {
		if diff := cmp.Diff(want, aws.Policy(role, needed, names).Statement[0].Resource); diff != "" {
			t.Errorf("%s (-want +got):\n%s", role, diff)
		}
	}
}

// TestNothingIsAllowedEverywhere: what is not bound to the fleet's own things by
// its resource is bound by a condition, or only looks or is bound by what it is
// used with.
func TestNothingIsAllowedEverywhere(t *testing.T) {
	var needed []aws.Permission
	for _, kind := range []aws.Kind{
		aws.OnInstances, aws.OnReports, aws.OnTables, aws.OnQueues, aws.OnTemplates, aws.OnNewTemplates, aws.OnFleet, aws.OnNewTags,
		aws.OnLaunches, aws.OnMachines, aws.OnOwn, aws.OnHostRole, aws.OnProfile, aws.OnAll,
	} {
		needed = append(needed, aws.Permission{Action: "x:" + string(kind), Role: aws.RoleControld, On: kind})
	}
	policy := aws.Policy(aws.RoleControld, needed, names)
	if len(policy.Statement) != len(needed)+2 {
		t.Errorf("got %d statements, want one for each kind, and for both kinds of launch four beside that of their templates", len(policy.Statement))
	}
	for _, s := range policy.Statement {
		free := s.Sid == "Everything" || s.Sid == "UsedByLaunches" || s.Sid == "UsedByFleets"
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

// A policy of a role has at most 6,144 characters.
func TestManyServicesAreNamedByTheirClusters(t *testing.T) {
	needed := []aws.Permission{{Action: "ecs:UpdateService", Role: aws.RoleControld, On: aws.OnServices}}
	some, many := names, names
	for n := range 200 {
		s := aws.ServiceName{Region: "us-east-1", Cluster: fmt.Sprintf("c%d", n%2), Service: fmt.Sprintf("s%d", n)}
		if many.Services = append(many.Services, s); n < 80 {
			some.Services = append(some.Services, s)
		}
	}
	resources := func(n aws.Names) []string { return aws.Policy(aws.RoleControld, needed, n).Statement[0].Resource }
	if got := resources(some); len(got) != 80 {
		t.Errorf("services that fit: %v", got)
	}
	want := []string{"arn:aws:ecs:us-east-1:123456789012:service/c0/*", "arn:aws:ecs:us-east-1:123456789012:service/c1/*"}
	if diff := cmp.Diff(want, resources(many)); diff != "" {
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

// The names are those of botocore's partitions.json.
func TestPartitions(t *testing.T) {
	needed := []aws.Permission{
		{Action: "iam:PassRole", Role: aws.RoleControld, On: aws.OnHostRole}, {Action: "ecs:UpdateService", Role: aws.RoleControld, On: aws.OnServices},
		{Action: "ec2:TerminateInstances", Role: aws.RoleHost, On: aws.OnOwn},
	}
	for region, want := range map[string]struct{ partition, ec2 string }{
		"eu-west-1":      {"aws", ""},
		"mx-central-1":   {"aws", ""},
		"cn-north-1":     {"aws-cn", "ec2.amazonaws.com.cn"},
		"us-gov-west-1":  {"aws-us-gov", ""},
		"eusc-de-east-1": {"aws-eusc", "ec2.amazonaws.eu"},
		"us-iso-east-1":  {"aws-iso", "ec2.c2s.ic.gov"},
		"us-isob-east-1": {"aws-iso-b", "ec2.sc2s.sgov.gov"},
		"eu-isoe-west-1": {"aws-iso-e", "ec2.cloud.adc-e.uk"},
		"us-isof-east-1": {"aws-iso-f", "ec2.csp.hci.ic.gov"},
	} {
		there := names
		there.Region = region
		// A service elsewhere has a partition of its own.
		there.Services = []aws.ServiceName{{Region: "eu-west-1", Cluster: "c", Service: "s"}}
		policy := aws.Policy(aws.RoleControld, needed, there)
		if got := policy.Statement[0].Resource[0]; got != "arn:"+want.partition+":iam::123456789012:role/remuda-host" {
			t.Errorf("%s: %s", region, got)
		}
		if got := policy.Statement[1].Resource[0]; got != "arn:aws:ecs:eu-west-1:123456789012:service/c/s" {
			t.Errorf("%s: %s", region, got)
		}
		var services any = "ec2.amazonaws.com"
		if want.ec2 != "" {
			services = []string{"ec2.amazonaws.com", want.ec2}
		}
		if diff := cmp.Diff(services, policy.Statement[0].Condition["StringEquals"]["iam:PassedToService"]); diff != "" {
			t.Errorf("%s: %s", region, diff)
		}
		own := aws.Policy(aws.RoleHost, needed, there).Statement[0].Condition["ArnLike"]["ec2:SourceInstanceARN"]
		if own != "arn:"+want.partition+":ec2:*:*:instance/${ec2:InstanceId}" {
			t.Errorf("%s: %s", region, own)
		}
	}
}

// TestLaunchesAreOfTheTemplate: images, security groups and snapshots are those of the template. CreateFleet has no such condition, and
// launches by RunInstances in the name of its caller.
func TestLaunchesAreOfTheTemplate(t *testing.T) {
	needed := []aws.Permission{
		{Action: "ec2:CreateFleet", Role: aws.RoleControld, On: aws.OnFleet}, {Action: "ec2:RunInstances", Role: aws.RoleControld, On: aws.OnLaunches},
	}
	const image = "arn:aws:ec2:eu-west-1::image/*"
	want := []aws.Statement{
		{Sid: "UsedByLaunches", Effect: "Allow", Action: []string{"ec2:CreateFleet", "ec2:RunInstances"}, Resource: []string{"arn:aws:ec2:eu-west-1:*:subnet/*"}},
		{Sid: "UsedByFleets", Effect: "Allow", Action: []string{"ec2:CreateFleet"}, Resource: []string{image}},
		{
			Sid: "UsedByTemplates", Effect: "Allow", Action: []string{"ec2:RunInstances"},
			Resource:  []string{"arn:aws:ec2:eu-west-1:*:security-group/*", image, "arn:aws:ec2:eu-west-1::snapshot/*"},
			Condition: aws.Condition{"Bool": {"ec2:IsLaunchTemplateResource": "true"}},
		},
	}
	got := slices.DeleteFunc(aws.Policy(aws.RoleControld, needed, names).Statement, func(s aws.Statement) bool { return !strings.HasPrefix(s.Sid, "UsedBy") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
}

// A shared VPC is another account's.
func TestSubnetsMayBeShared(t *testing.T) {
	needed := []aws.Permission{{Action: "ec2:RunInstances", Role: aws.RoleControld, On: aws.OnLaunches}}
	var all []string
	for _, s := range aws.Policy(aws.RoleControld, needed, names).Statement {
		all = append(all, s.Resource...)
	}
	for _, want := range []string{
		"arn:aws:ec2:eu-west-1:*:subnet/*", "arn:aws:ec2:eu-west-1:*:security-group/*", "arn:aws:ec2:eu-west-1:123456789012:instance/*",
		"arn:aws:ec2:eu-west-1::image/*", "arn:aws:ec2:eu-west-1::snapshot/*",
	} {
		if !slices.Contains(all, want) {
			t.Errorf("%s is not among %v", want, all)
		}
	}
}

// A key that the account manages is used by EC2 in the caller's name, and by nothing else.
func TestKeysOfVolumes(t *testing.T) {
	needed := []aws.Permission{
		{Action: "kms:Decrypt", Role: aws.RoleControld, On: aws.OnVolumeKeys}, {Action: "kms:CreateGrant", Role: aws.RoleControld, On: aws.OnVolumeGrants},
	}
	if got := aws.Policy(aws.RoleControld, needed, names); len(got.Statement) != 0 {
		t.Errorf("without keys: %+v", got)
	}
	for key, want := range map[string]string{
		"1234abcd-12ab-34cd-56ef-1234567890ab":      "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
		"arn:aws:kms:eu-west-1:210987654321:key/ci": "arn:aws:kms:eu-west-1:210987654321:key/ci",
		"alias/ci": "arn:aws:kms:eu-west-1:123456789012:key/*",
		"arn:aws:kms:eu-west-1:123456789012:alias/ci": "arn:aws:kms:eu-west-1:123456789012:key/*",
		"arn:aws:kms:eu-west-1:210987654321:alias/ci": "arn:aws:kms:eu-west-1:210987654321:key/*",
	} {
		with := names
		with.VolumeKeys = []string{key, key}
		by := aws.Condition{"StringLike": {"kms:ViaService": "ec2.eu-west-1.amazonaws.com"}}
		grant := aws.Condition{"StringLike": by["StringLike"], "Bool": {"kms:GrantIsForAWSResource": "true"}}
		all := []aws.Statement{
			{Sid: "VolumeKeys", Effect: "Allow", Action: []string{"kms:Decrypt"}, Resource: []string{want}, Condition: by},
			{Sid: "VolumeGrants", Effect: "Allow", Action: []string{"kms:CreateGrant"}, Resource: []string{want}, Condition: grant},
		}
		if diff := cmp.Diff(all, aws.Policy(aws.RoleControld, needed, with).Statement); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
}
