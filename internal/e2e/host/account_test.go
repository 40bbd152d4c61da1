//go:build testhost

package host_test

import (
	"context"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/awstest/ec2gap"
	"github.com/remuda-ci/remuda/internal/awstest/imdstest"
	remudaec2 "github.com/remuda-ci/remuda/internal/compute/ec2"
)

const (
	region  = "us-east-1"
	profile = "remuda-host"
)

// account is the AWS account of a test: the emulators, with a proxy for each
// party.
type account struct {
	t        testing.TB
	controld *awstest.Proxy
	hosts    *awstest.Proxy
	// controldURL and hostsURL are where the world reaches the proxies.
	controldURL, hostsURL string

	ec2     *ec2.Client
	iam     *iam.Client
	sts     *sts.Client
	roleARN string
}

func newAccount(t testing.TB, w *world) *account {
	t.Helper()
	a := &account{t: t, controld: newProxy(t), hosts: newProxy(t)}
	ec2gap.Install(a.controld)
	a.controldURL = "http://" + w.forward(t, strings.TrimPrefix(a.controld.URL(), "http://"))
	a.hostsURL = "http://" + w.forward(t, strings.TrimPrefix(a.hosts.URL(), "http://"))
	direct := awstest.Config(t, awstest.Moto(t))
	a.ec2, a.iam, a.sts = ec2.NewFromConfig(direct), iam.NewFromConfig(direct), sts.NewFromConfig(direct)
	a.addHostRole()
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
	a.roleARN = *role.Role.Arn
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

// state of an instance; empty if EC2 does not say.
func (a *account) state(id string) types.InstanceStateName {
	out, err := a.ec2.DescribeInstances(context.Background(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil || len(out.Reservations) == 0 || len(out.Reservations[0].Instances) == 0 {
		return ""
	}
	return out.Reservations[0].Instances[0].State.Name
}

// launch runs an instance that no controld knows.
func (a *account) launch() string {
	a.t.Helper()
	image, subnets, group := a.network()
	out, err := a.ec2.RunInstances(a.t.Context(), &ec2.RunInstancesInput{
		ImageId: &image, MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1), InstanceType: types.InstanceTypeM5Large,
		SubnetId: &subnets[0], SecurityGroupIds: []string{group},
	})
	check(a.t, err)
	return *out.Instances[0].InstanceId
}

func alive(i types.Instance) bool {
	return i.State.Name == types.InstanceStateNameRunning || i.State.Name == types.InstanceStateNamePending
}

// metadata is what EC2 tells the instance of itself.
func (a *account) metadata(ctx context.Context, i types.Instance) (*imdstest.Service, error) {
	// EC2 gives an instance credentials of its role, with its id as the name of
	// the session.
	session, err := a.sts.AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: &a.roleARN, RoleSessionName: i.InstanceId})
	if err != nil {
		return nil, err
	}
	tags := map[string]string{}
	for _, tag := range i.Tags {
		tags[*tag.Key] = *tag.Value
	}
	lifecycle := "on-demand"
	if tags[remudaec2.TagPool] == "spot" { // moto does not say it of what a fleet has launched
		lifecycle = "spot"
	}
	return imdstest.Start(a.t, imdstest.Machine{
		InstanceID: *i.InstanceId, Region: region, Zone: *i.Placement.AvailabilityZone, Type: string(i.InstanceType), Arch: "x86_64",
		Lifecycle: lifecycle, Tags: tags, Role: profile,
		Credentials: imdstest.Credentials{
			AccessKeyID: *session.Credentials.AccessKeyId, SecretAccessKey: *session.Credentials.SecretAccessKey,
			Token: *session.Credentials.SessionToken, Expires: time.Now().Add(6 * time.Hour),
		},
	}), nil
}
