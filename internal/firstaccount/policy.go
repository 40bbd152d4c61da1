package firstaccount

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
	remuda "github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/findings"
)

var policyCheck = check{
	name: "policy",
	does: "launches a machine with the policies of controld iam alone",
	assumptions: []findings.Assumption{
		{
			Name:     "template-allowed",
			Text:     "The policy of refresh allows to make the launch template of a pool.",
			ReliedOn: "internal/aws/policy.go: OnNewTemplates; internal/compute/ec2/ensure.go",
		},
		{
			Name:     "launch-allowed",
			Text:     "The policy of controld allows a launch by the template: the fleet, its machines, volumes and interfaces, their tags, and the role.",
			ReliedOn: "internal/aws/policy.go: OnFleet, OnNewTags and OnHostRole; internal/compute/ec2/order.go: the tags of the call",
		},
		{
			Name:     "default-group-allowed",
			Text:     "So it does where the template names no security group, and EC2 takes the default one of the VPC.",
			ReliedOn: "internal/aws/policy.go: ec2:IsLaunchTemplateResource of security groups; docs/configuration.md: security_groups",
		},
		{
			Name:     "other-image-refused",
			Text:     "It allows no launch by the template with another image.",
			ReliedOn: "internal/aws/policy.go: ec2:IsLaunchTemplateResource of images",
		},
		{
			Name:     "plain-refused",
			Text:     "It allows no launch without the tag and the template of the fleet.",
			ReliedOn: "internal/aws/policy.go: aws:RequestTag of what a launch makes",
		},
		{
			Name:     "foreign-end-refused",
			Text:     "It allows to end no machine that lacks the tag of the fleet.",
			ReliedOn: "internal/aws/policy.go: ec2:ResourceTag of OnMachines",
		},
	},
	run: checkPolicy,
}

func checkPolicy(ctx context.Context, s *session) error {
	if err := s.templates(ctx); err != nil {
		if ctx.Err() == nil {
			s.Decide("template-allowed", false, "%v", err)
		}
		return err
	}
	s.Decide("template-allowed", true, "the launch templates were made")
	l, err := s.theMachine(ctx)
	switch {
	case err == nil:
		s.Decide("launch-allowed", true, "a %s was launched", l.InstanceType)
	case l == nil || ctx.Err() != nil:
		return err
	case denied(l.call):
		s.Decide("launch-allowed", false, "%s", listed(l.call.messages()))
		err = nil
	default:
		s.Leave("launch-allowed", "it failed for another reason: %v", err)
	}
	// Whether that launch was allowed or not, EC2 says with DryRun which others are.
	if err := s.tryLaunches(ctx); err != nil {
		return err
	}
	if s.machine == nil {
		return err
	}
	return s.foreignEnd(ctx, s.machine.InstanceID)
}

// The answers of EC2 to calls with DryRun.
const (
	codeDryRun       = "DryRunOperation"
	codeUnauthorized = "UnauthorizedOperation"
)

// denied reports whether a launch came to nothing for want of a permission.
func denied(c fleetCall) bool {
	for _, code := range c.codes() {
		if code == codeUnauthorized {
			return true
		}
	}
	return false
}

// tryLaunches tries launches with DryRun.
func (s *session) tryLaunches(ctx context.Context) error {
	version, err := s.fleet.Template(ctx, poolPlain)
	if err != nil {
		return err
	}
	byTemplate := func(pool string) *ec2.RunInstancesInput {
		in := s.launchOf(pool, version)
		in.DryRun = sdk.Bool(true)
		return in
	}
	otherImage := byTemplate(poolFleet)
	otherImage.ImageId = &s.image.id // that of the template, but the call names it
	for name, try := range map[string]struct {
		in   *ec2.RunInstancesInput
		want string
	}{
		"default-group-allowed": {byTemplate(poolPlain), codeDryRun},
		"other-image-refused":   {otherImage, codeUnauthorized},
		"plain-refused": {&ec2.RunInstancesInput{
			DryRun: sdk.Bool(true), MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1), ImageId: &s.image.id,
			InstanceType: s.typeFor(s.image.arch), SubnetId: s.subnet(),
		}, codeUnauthorized},
	} {
		_, err := s.fleet.raw.RunInstances(ctx, try.in)
		if ctx.Err() != nil {
			return errInterrupted
		}
		s.Decide(name, answerOf(err) == try.want, "RunInstances with DryRun was answered %s", answerOf(err))
	}
	return nil
}

// launchOf is a launch of one machine from the launch template of a pool, by RunInstances, with the tags of the fleet.
func (s *session) launchOf(pool, version string) *ec2.RunInstancesInput {
	var tags []types.TagSpecification
	for _, kind := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface} {
		tags = append(tags, types.TagSpecification{ResourceType: kind, Tags: []types.Tag{
			{Key: str(tagFleet), Value: &s.id}, {Key: str(remuda.TagPool), Value: &pool}, {Key: str(remuda.TagRole), Value: &s.roleID},
		}})
	}
	arch := s.image.arch
	if pool == poolHost {
		arch = s.hostImage.arch
	}
	return &ec2.RunInstancesInput{
		MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1), InstanceType: s.typeFor(arch), SubnetId: s.subnet(),
		LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: str(s.id + "-" + pool), Version: &version}, TagSpecifications: tags,
	}
}

// typeFor is the type of the first machine, which is to be had where that is, or one for another architecture.
func (s *session) typeFor(arch string) types.InstanceType {
	if s.machine != nil && s.machine.Arch == arch {
		return types.InstanceType(s.machine.InstanceType)
	}
	return types.InstanceType(typesOf(arch)[0])
}

// subnet is where the first machine is.
func (s *session) subnet() *string {
	for _, p := range s.places {
		if s.machine != nil && p.zone == s.machine.Zone {
			return &p.subnet
		}
	}
	return &s.places[0].subnet
}

// answerOf is the code of an answer, for people.
func answerOf(err error) string {
	switch code := aws.Code(err); {
	case code != "":
		return code
	case err != nil:
		return err.Error()
	}
	return "as if it had been made"
}

// foreignEnd gives our machine the tag of another fleet, tries to end it with DryRun, and gives it its tag back. The other tag begins like
// ours, so that a clean-up finds the machine.
func (s *session) foreignEnd(ctx context.Context, id string) error {
	if err := s.retag(ctx, id, s.id+"-other"); err != nil {
		return err
	}
	answer := ""
	took, refused, err := s.await(ctx, s.Times.Settle, "the other tag to count", func() (bool, error) {
		_, err := s.fleet.raw.TerminateInstances(ctx, &ec2.TerminateInstancesInput{DryRun: sdk.Bool(true), InstanceIds: []string{id}})
		answer = answerOf(err)
		return answer == codeUnauthorized, ctx.Err()
	})
	if err == nil {
		s.Decide("foreign-end-refused", refused, "TerminateInstances with DryRun was answered %s, %s after the tag was another", answer, findings.Seconds(took))
		err = s.retag(ctx, id, s.id)
	}
	return err
}

func (s *session) retag(ctx context.Context, id, fleet string) error {
	_, err := s.admin.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: str(tagFleet), Value: &fleet}}})
	if err != nil {
		return aws.Wrap("tag machine "+id, err)
	}
	return nil
}

func tagOf(tags []types.Tag, key string) string {
	for _, t := range tags {
		if sdk.ToString(t.Key) == key {
			return sdk.ToString(t.Value)
		}
	}
	return ""
}
