package ec2_test

import (
	"fmt"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestRehearse: EC2 is asked about each call that launches and ends hosts, and nothing is launched or ended by it.
func TestRehearse(t *testing.T) {
	w := newWorld(t)
	c := w.open(t, w.options())
	o := lifecycle.LaunchOrder{
		Token: "q/1", RequestID: "q", Number: 1, Count: 1, Pool: "default", Repository: "acme/shop", RunID: "77", ResourceClass: "large", CPU: 2, MemoryMiB: 4096,
		UsageClass: lifecycle.UsageSpot, InstanceTypes: []string{"c*", "m*", "r*"},
	}
	say := func() []string {
		var all []string
		for _, r := range c.Rehearse(t.Context(), []lifecycle.LaunchOrder{o}) {
			all = append(all, fmt.Sprint(r.Action, ": allowed ", r.Err == nil && r.NotTried == "", ", denied ", r.Denied(), ", tried ", r.NotTried == ""))
		}
		return all
	}
	want := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, say()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	const allowed, denied, notTried = ": allowed true, denied false, tried true", ": allowed false, denied true, tried true", ": allowed false, denied false, tried false"
	want("without a template", "ec2:CreateFleet"+notTried, "ec2:RunInstances"+notTried, "ec2:TerminateInstances"+notTried)
	ensure(t, c)
	c = w.open(t, w.options()) // which knows no template
	want("without a machine", "ec2:CreateFleet"+allowed, "ec2:RunInstances"+allowed, "ec2:TerminateInstances"+notTried)
	if left := w.living(t); len(left) > 0 {
		t.Fatalf("%d machines were launched", len(left))
	}
	if _, err := c.Launch(t.Context(), order(t, c, 1, 1)); err != nil {
		t.Fatalf("the token is used up: %v", err)
	}
	want("with all permissions", "ec2:CreateFleet"+allowed, "ec2:RunInstances"+allowed, "ec2:TerminateInstances"+allowed)
	for _, operation := range []string{"CreateFleet", "RunInstances", "TerminateInstances"} {
		w.Deny(operation)
	}
	want("with none", "ec2:CreateFleet"+denied, "ec2:RunInstances"+denied, "ec2:TerminateInstances"+denied)
	if left := w.living(t); len(left) != 1 {
		t.Errorf("%d machines live, want the one that was launched", len(left))
	}
}

// TestALaunchNamesNoImage: what the launch template names, a call may not name in its place, so that what Rehearse tries is what a launch does.
func TestALaunchNamesNoImage(t *testing.T) {
	w := newWorld(t)
	ensure(t, w.open(t, w.options()))
	template := &types.LaunchTemplateSpecification{LaunchTemplateName: sdk.String(templateName), Version: sdk.String("1")}
	for name, change := range map[string]func(*service.RunInstancesInput){
		"an image":         func(in *service.RunInstancesInput) { in.ImageId = sdk.String("ami-0123456789abcdef0") },
		"a security group": func(in *service.RunInstancesInput) { in.SecurityGroupIds = []string{w.group} },
		"a group of an interface": func(in *service.RunInstancesInput) {
			in.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: sdk.Int32(0), Groups: []string{w.group}}}
		},
		"a snapshot": func(in *service.RunInstancesInput) {
			in.BlockDeviceMappings = []types.BlockDeviceMapping{{
				DeviceName: sdk.String("/dev/sdf"), Ebs: &types.EbsBlockDevice{SnapshotId: sdk.String("snap-0123456789abcdef0")},
			}}
		},
	} {
		in := &service.RunInstancesInput{DryRun: sdk.Bool(true), MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1), LaunchTemplate: template}
		if _, err := w.client.RunInstances(t.Context(), in); aws.Code(err) != "DryRunOperation" {
			t.Fatalf("the template alone: %v", err)
		}
		change(in)
		if _, err := w.client.RunInstances(t.Context(), in); aws.Code(err) != "UnauthorizedOperation" {
			t.Errorf("with %s: %v", name, err)
		}
	}
}
