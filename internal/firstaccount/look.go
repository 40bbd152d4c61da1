package firstaccount

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/remuda-ci/remuda/internal/aws"
)

// look finds out what a run needs, and changes nothing.
func (s *session) look(ctx context.Context) error {
	s.Begin("look")
	caller, err := s.admin.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return aws.Wrap("ask who calls", err)
	}
	arn := sdk.ToString(caller.Arn)
	s.account, s.partition = sdk.ToString(caller.Account), "aws"
	if parts := strings.Split(arn, ":"); len(parts) > 1 {
		s.partition = parts[1]
	}
	if strings.HasSuffix(arn, ":root") {
		return fmt.Errorf("the caller is the root user of account %s, which cannot assume a role: call as an administrator", s.account)
	}
	s.Say("account %s, %s, as %s", s.account, s.AWS.Region, arn)
	left, err := s.find(ctx, everyRun)
	if err != nil {
		return err
	}
	if !left.empty() {
		return fmt.Errorf("another run is at work or has left something: %s; wait for its end, or remove all of it with --clean", left)
	}
	if err := s.lookForSubnets(ctx); err != nil {
		return err
	}
	return s.lookForImages(ctx)
}

func (s *session) lookForSubnets(ctx context.Context) error {
	filters := []types.Filter{{Name: str("default-for-az"), Values: []string{"true"}}}
	if len(s.Subnets) > 0 {
		filters = []types.Filter{{Name: str("subnet-id"), Values: s.Subnets}}
	}
	out, err := s.admin.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: filters})
	if err != nil {
		return aws.Wrap("find subnets", err)
	}
	vpc := ""
	for _, subnet := range out.Subnets {
		vpc = sdk.ToString(subnet.VpcId)
		s.places = append(s.places, place{sdk.ToString(subnet.SubnetId), sdk.ToString(subnet.AvailabilityZone)})
	}
	slices.SortFunc(s.places, func(a, b place) int { return cmp.Or(cmp.Compare(a.zone, b.zone), cmp.Compare(a.subnet, b.subnet)) })
	switch {
	case len(s.Subnets) == 0 && len(s.places) == 0:
		return fmt.Errorf("there is no default VPC in %s: give --subnet with one whose machines reach the internet", s.AWS.Region)
	case len(s.places) < len(s.Subnets):
		return fmt.Errorf("of the subnets %s only %d are in account %s and %s", listed(s.Subnets), len(s.places), s.account, s.AWS.Region)
	}
	if len(s.Groups) > 0 {
		return nil
	}
	groups, err := s.admin.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{
		{Name: str("vpc-id"), Values: []string{vpc}}, {Name: str("group-name"), Values: []string{"default"}},
	}})
	if err != nil {
		return aws.Wrap("find the default security group", err)
	}
	for _, group := range groups.SecurityGroups {
		s.Groups = append(s.Groups, sdk.ToString(group.GroupId))
	}
	return nil
}

// amazonLinux is the name of the image that a run takes by itself, for an architecture. It has the AWS CLI, which the host's check calls.
func amazonLinux(arch string) string { return "al2023-ami-2023.*-kernel-*-" + arch }

// The architectures, as EC2 names them. Machines of the first are cheaper.
var (
	arm64 = string(types.ArchitectureValuesArm64)
	x86   = string(types.ArchitectureValuesX8664)
)

func (s *session) lookForImages(ctx context.Context) (err error) {
	if s.hostImage, err = s.newestAmazonLinux(ctx, arm64); err != nil {
		return err
	}
	if err := s.lookForImage(ctx); err != nil {
		return err
	}
	if s.image.arch == arm64 {
		s.otherImage, err = s.newestAmazonLinux(ctx, x86)
	} else {
		s.otherImage = s.hostImage
	}
	return err
}

// newestAmazonLinux is without an id if Amazon has none.
func (s *session) newestAmazonLinux(ctx context.Context, arch string) (image, error) {
	out, err := s.admin.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []types.Filter{
		{Name: str("name"), Values: []string{amazonLinux(arch)}}, {Name: str("state"), Values: []string{"available"}},
	}})
	if err != nil {
		return image{}, aws.Wrap("find the image of Amazon Linux", err)
	}
	if len(out.Images) == 0 {
		return image{arch: arch}, nil
	}
	return imageOf(slices.MaxFunc(out.Images, func(a, b types.Image) int {
		return cmp.Compare(sdk.ToString(a.CreationDate), sdk.ToString(b.CreationDate))
	})), nil
}

// lookForImage finds the image of the fleet: the one that was given, or that of Amazon.
func (s *session) lookForImage(ctx context.Context) error {
	if s.Image == "" {
		if s.image = s.hostImage; s.image.id == "" {
			return fmt.Errorf("there is no image %s of Amazon in %s: give --image", amazonLinux(arm64), s.AWS.Region)
		}
		return nil
	}
	own, err := s.admin.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{s.Image}, IncludeDeprecated: sdk.Bool(true)})
	if err != nil {
		return aws.Wrap("find image "+s.Image, err)
	}
	if len(own.Images) == 0 {
		return fmt.Errorf("there is no image %s in %s", s.Image, s.AWS.Region)
	}
	s.image = imageOf(own.Images[0])
	return nil
}

func imageOf(i types.Image) image {
	made := image{id: sdk.ToString(i.ImageId), arch: string(i.Architecture), name: sdk.ToString(i.Name), gib: leastGiB}
	for _, d := range i.BlockDeviceMappings {
		if d.Ebs != nil && sdk.ToString(d.DeviceName) == sdk.ToString(i.RootDeviceName) {
			made.gib = max(made.gib, int(sdk.ToInt32(d.Ebs.VolumeSize)))
		}
	}
	return made
}

// images names the images that machines have: one of each architecture, where Amazon has both.
func (s *session) images() []string {
	var names []string
	for _, i := range []image{s.image, s.otherImage} {
		if i.id != "" {
			names = append(names, fmt.Sprintf("%s (%s)", i.id, i.name))
		}
	}
	return names
}

// leastGiB is enough for Amazon Linux.
const leastGiB = 8

// Plan writes what a run would make and do, without making anything.
func Plan(ctx context.Context, o Options, out io.Writer) error {
	s, err := newSession(o)
	if err != nil {
		return err
	}
	if err := s.look(ctx); err != nil {
		return err
	}
	var zones []string
	for _, p := range s.places {
		zones = append(zones, p.subnet+" in "+p.zone)
	}
	fmt.Fprintf(out, `In account %s and %s this will make, under names that begin with %s-, and remove again:
  roles     two with a path /%s/: the policies of controld and refresh, which you assume, and that of hosts with an instance profile
  tables    those of a fleet, in DynamoDB, on demand, and two queues
  templates one or more launch templates
  machines  four or five, of the types %s, at most two at a time
  subnets   %s
  images    %s

It takes about 15 minutes and costs less than $0.05: each machine lives for a few minutes, with a volume and perhaps a public address.
It also makes some 20 calls of CreateFleet that its own policy refuses, to see when EC2 throttles them, within 15 s.

The checks:
`, s.account, s.AWS.Region, everyRun, everyRun, listed(s.typesOf(poolBoth)), listed(zones), listed(s.images()))
	wide := 0
	for _, name := range Checks() {
		wide = max(wide, len(name))
	}
	for _, c := range s.Options.checks() {
		note := ""
		if c.without != nil {
			if reason := c.without(s.Options); reason != "" {
				note = "; not made: " + reason
			}
		}
		fmt.Fprintf(out, "  %-*s %s%s\n", wide, c.name, c.does, note)
	}
	return nil
}
