package aws_test

import (
	"context"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/awstest/ec2gap"
)

const (
	region  = "us-east-1"
	profile = "remuda-host"
)

// account is the AWS account of a test: the emulators, with a proxy for each
// party, so that the calls of controld and those of the hosts are counted apart.
type account struct {
	t        testing.TB
	controld *awstest.Proxy
	hosts    *awstest.Proxy
	gap      *ec2gap.EC2

	ec2     *ec2.Client
	iam     *iam.Client
	sts     *sts.Client
	roleARN string
	roleID  string
}

func newAccount(t testing.TB) *account {
	t.Helper()
	a := emptyAccount(t)
	a.addHostRole()
	return a
}

// emptyAccount has no role for hosts.
func emptyAccount(t testing.TB) *account {
	t.Helper()
	a := &account{t: t, controld: newProxy(t), hosts: newProxy(t)}
	a.gap = ec2gap.Install(a.controld)
	direct := awstest.Config(t, awstest.Moto(t))
	a.ec2, a.iam, a.sts = ec2.NewFromConfig(direct), iam.NewFromConfig(direct), sts.NewFromConfig(direct)
	return a
}

func newProxy(t testing.TB) *awstest.Proxy {
	t.Helper()
	p := awstest.NewProxy(t, awstest.Moto(t))
	p.Route("dynamodb", awstest.DynamoDB(t))
	return p
}

func (a *account) addHostRole() {
	a.t.Helper()
	ctx, name := a.t.Context(), sdk.String(profile)
	role, err := a.iam.CreateRole(ctx, &iam.CreateRoleInput{RoleName: name, AssumeRolePolicyDocument: sdk.String("{}")})
	check(a.t, err)
	a.roleARN, a.roleID = *role.Role.Arn, *role.Role.RoleId
	_, err = a.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: name})
	check(a.t, err)
	_, err = a.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: name})
	check(a.t, err)
}

// network is an image, two subnets of two zones and a security group.
func (a *account) network() (image string, subnets []string, group string) {
	a.t.Helper()
	ctx := a.t.Context()
	images, err := a.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{Filters: []types.Filter{{
		Name: sdk.String("architecture"), Values: []string{"x86_64"},
	}}})
	check(a.t, err)
	all, err := a.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	check(a.t, err)
	groups, err := a.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{})
	check(a.t, err)
	for _, s := range all.Subnets[:2] {
		subnets = append(subnets, *s.SubnetId)
	}
	return *images.Images[0].ImageId, subnets, *groups.SecurityGroups[0].GroupId
}

// instances are all that EC2 knows.
func (a *account) instances(ctx context.Context) ([]types.Instance, error) {
	var list []types.Instance
	pages := ec2.NewDescribeInstancesPaginator(a.ec2, &ec2.DescribeInstancesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Reservations {
			list = append(list, r.Instances...)
		}
	}
	return list, nil
}

// living is how many instances EC2 has that are not ending.
func (a *account) living(ctx context.Context) int {
	a.t.Helper()
	list, err := a.instances(ctx)
	check(a.t, err)
	n := 0
	for _, i := range list {
		if alive(i) {
			n++
		}
	}
	return n
}

func alive(i types.Instance) bool {
	return i.State.Name == types.InstanceStateNameRunning || i.State.Name == types.InstanceStateNamePending
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
