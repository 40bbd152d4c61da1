package firstaccount

import (
	"context"
	"path"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
	remuda "github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/findings"
)

// settling is for how long controld believes in a machine that EC2 does not show: that of internal/compute/ec2.
const settling = 3 * time.Minute

var launchCheck = check{
	name: "launch",
	does: "looks at what EC2 shows of a launch, and when",
	assumptions: []findings.Assumption{
		{
			Name: "answered-soon", Text: "CreateFleet is answered within the minute that one try may take.",
			ReliedOn: "internal/compute/ec2/launch.go: launchTimeout",
		},
		{
			Name: "type-in-answer", Text: "The answer names the type and the subnet of the machine, although the request has requirements in place of types.",
			ReliedOn: "internal/compute/ec2/launch.go: freshMachines",
		},
		{
			Name: "same-requirements", Text: "The overrides of several zones may have the same requirements: those do not overlap.",
			ReliedOn: "internal/compute/ec2/order.go: overrides",
		},
		{
			Name: "shown-soon", Text: "DescribeInstances shows the machine within three minutes, by its id and by its tags.",
			ReliedOn: "internal/compute/ec2/machine.go: settling",
		},
		{
			Name: "machine-tags", Text: "The machine has the tags of its order from the first look on.",
			ReliedOn: "internal/compute/ec2/machine.go: foreign; internal/fleet/sweeps: a machine without them is left alone",
		},
		{
			Name: "profile-shown", Text: "So it has its instance profile.",
			ReliedOn: "internal/compute/ec2/machine.go: foreign",
		},
		{
			Name: "volume-tags", Text: "Its volume has the tag of the fleet.",
			ReliedOn: "internal/compute/ec2/order.go; docs/cost.md: tags for cost allocation",
		},
		{
			Name: "interface-tags", Text: "So has its network interface.",
			ReliedOn: "internal/compute/ec2/order.go; docs/cost.md: tags for cost allocation",
		},
	},
	run: checkLaunch,
}

func checkLaunch(ctx context.Context, s *session) error {
	l, err := s.theMachine(ctx)
	if l != nil {
		s.sameRequirements(l.call)
	}
	if err != nil {
		return err
	}
	took := l.call.ended.Sub(l.call.begun)
	s.Decide("answered-soon", took < callLimit, "it was answered after %s", findings.Seconds(took))
	s.typeInAnswer(l.call.out)
	s.Decide("shown-soon", l.byID > 0 && l.byTags > 0, "by its id %s after the answer, by its tags %s after it", after(l.byID), after(l.byTags))
	s.tagsOf(l.first)
	return s.tagsOfParts(ctx, l.InstanceID)
}

func (s *session) typeInAnswer(out *ec2.CreateFleetOutput) {
	if len(out.Instances) == 0 {
		s.Decide("type-in-answer", false, "the answer has no machine; controld found it by its tags")
		return
	}
	set := out.Instances[0]
	subnet := sdk.ToString(set.SubnetId)
	if used := set.LaunchTemplateAndOverrides; used != nil && used.Overrides != nil && subnet == "" {
		subnet = sdk.ToString(used.Overrides.SubnetId)
	}
	s.Decide("type-in-answer", set.InstanceType != "" && subnet != "", "type %q, subnet %q", set.InstanceType, subnet)
}

// sameRequirements decides by whether EC2 took the launch, or refused it for the reason of overlap.
func (s *session) sameRequirements(c fleetCall) {
	const name = "same-requirements"
	if c.in == nil {
		return
	}
	overrides := len(c.in.LaunchTemplateConfigs[0].Overrides)
	switch {
	case overrides < 2:
		s.Leave(name, "the launch was in one zone alone: give --subnet twice")
	case overlap(c):
		s.Decide(name, false, "of a launch in %d zones EC2 says: %s", overrides, listed(c.messages()))
	case len(c.ids()) > 0:
		s.Decide(name, true, "a launch in %d zones was answered with a machine", overrides)
	}
}

// show waits until EC2 shows a machine both ways, by what remembers nothing.
func (s *session) show(ctx context.Context, l *launch) error {
	other, err := s.newFleet(s.fleet.cfg)
	if err != nil {
		return err
	}
	_, _, err = s.await(ctx, settling, "EC2 to show the machine", func() (bool, error) {
		if l.first == nil {
			list, err := s.instances(ctx, types.Filter{Name: str("instance-id"), Values: []string{l.InstanceID}})
			if err != nil {
				return false, err
			}
			if len(list) > 0 {
				l.first, l.byID = &list[0], time.Since(l.call.ended)
			}
		}
		if l.byTags == 0 {
			list, err := other.Launched(ctx, l.order)
			if err != nil {
				return false, err
			}
			if len(list) == 1 {
				l.byTags = time.Since(l.call.ended)
			}
		}
		return l.first != nil && l.byTags > 0, nil
	})
	return err
}

// after is a time that may not have come.
func after(d time.Duration) string {
	if d == 0 {
		return "not within " + findings.Seconds(settling)
	}
	return findings.Seconds(d)
}

// tagsOf decides by what the first look showed.
func (s *session) tagsOf(i *types.Instance) {
	if i == nil {
		return
	}
	fleet, order := tagOf(i.Tags, remuda.TagFleet), tagOf(i.Tags, remuda.TagOrder)
	s.Decide("machine-tags", fleet == s.id && order != "", "%d tags: %s=%s, %s=%s", len(i.Tags), remuda.TagFleet, fleet, remuda.TagOrder, order)
	profile := ""
	if i.IamInstanceProfile != nil {
		profile = sdk.ToString(i.IamInstanceProfile.Arn)
	}
	s.Decide("profile-shown", path.Base(profile) == s.hostRole(), "the profile was %q while the machine was %s", profile, i.State.Name)
}

// tagsOfParts waits for the volume and the interface, which come a moment after the machine.
func (s *session) tagsOfParts(ctx context.Context, id string) error {
	of := []types.Filter{{Name: str("attachment.instance-id"), Values: []string{id}}}
	for name, find := range map[string]func() ([][]types.Tag, error){
		"volume-tags": func() (all [][]types.Tag, err error) {
			out, err := s.admin.ec2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{Filters: of})
			if err != nil {
				return nil, aws.Wrap("look for volumes", err)
			}
			for _, v := range out.Volumes {
				all = append(all, v.Tags)
			}
			return all, nil
		},
		"interface-tags": func() (all [][]types.Tag, err error) {
			out, err := s.admin.ec2.DescribeNetworkInterfaces(ctx, &ec2.DescribeNetworkInterfacesInput{Filters: of})
			if err != nil {
				return nil, aws.Wrap("look for network interfaces", err)
			}
			for _, n := range out.NetworkInterfaces {
				all = append(all, n.TagSet)
			}
			return all, nil
		},
	} {
		if err := s.tagsOfPart(ctx, name, find); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) tagsOfPart(ctx context.Context, name string, find func() ([][]types.Tag, error)) error {
	var all [][]types.Tag
	_, came, err := s.await(ctx, s.Times.Settle, "the parts of the machine", func() (_ bool, err error) {
		all, err = find()
		return len(all) > 0, err
	})
	if err != nil {
		return err
	}
	if !came {
		s.Leave(name, "EC2 shows none")
		return nil
	}
	without := 0
	for _, tags := range all {
		if tagOf(tags, tagFleet) != s.id {
			without++
		}
	}
	s.Decide(name, without == 0, "%d of %d have it not", without, len(all))
	return nil
}
