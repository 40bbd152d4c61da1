//go:build soak

package soak_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/awstest/ec2gap"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	region  = "us-east-1"
	profile = "remuda-host"
)

// onDynamoDB is a fleet of so many replicas on DynamoDB Local, with the queues and machines of moto.
func (s *stage) onDynamoDB(replicas int) {
	s.Helper()
	moto := awstest.NewMoto(s.TB)
	proxy := awstest.NewProxy(s.TB, moto)
	ec2gap.Install(proxy)
	direct := awstest.Config(s.TB, moto)
	cloud := ec2.NewFromConfig(direct)
	addHostRole(s.TB, direct)
	rows := dynamo.New(dynamodb.NewFromConfig(awstest.Config(s.TB, awstest.DynamoDB(s.TB))), dynamo.Options{})
	s.store = rows.Store
	s.report = func(ctx context.Context, p lifecycle.Report) error { return rows.ForHost(p.HostKey).PutReport(ctx, p) }
	s.machines = func(ctx context.Context) (map[string]bool, error) { return machinesOf(ctx, cloud) }
	s.newReplicas(replicas, awsSettings(s.TB, cloud), func(n *network) []string {
		endpoint := "http://" + n.relay(s.TB, strings.TrimPrefix(proxy.URL(), "http://"))
		tables := "http://" + n.relay(s.TB, strings.TrimPrefix(awstest.DynamoDB(s.TB), "http://"))
		return append(proxy.Environ(), "AWS_ENDPOINT_URL="+endpoint, "AWS_ENDPOINT_URL_DYNAMODB="+tables)
	})
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	_, err := s.replicas[0].fleet.Refresh(ctx, &remudav1.RefreshRequest{})
	check(s.TB, err)
}

func addHostRole(t testing.TB, direct sdk.Config) {
	t.Helper()
	client, name := iam.NewFromConfig(direct), sdk.String(profile)
	_, err := client.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: name, AssumeRolePolicyDocument: sdk.String("{}")})
	check(t, err)
	_, err = client.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: name})
	check(t, err)
	_, err = client.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: name})
	check(t, err)
}

func awsSettings(t testing.TB, cloud *ec2.Client) string {
	t.Helper()
	images, err := cloud.DescribeImages(t.Context(), &ec2.DescribeImagesInput{
		Filters: []types.Filter{{Name: sdk.String("architecture"), Values: []string{"x86_64"}}},
	})
	check(t, err)
	subnets, err := cloud.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	check(t, err)
	groups, err := cloud.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{})
	check(t, err)
	return fmt.Sprintf("aws:\n  region: %s\n  instance_profile: %s\n  ec2: {images: {x86_64: %s}, subnets: [%s, %s], security_groups: [%s]}\n", region, profile,
		*images.Images[0].ImageId, *subnets.Subnets[0].SubnetId, *subnets.Subnets[1].SubnetId, *groups.SecurityGroups[0].GroupId)
}

// machinesOf are the instances with the tag of the fleet that run.
func machinesOf(ctx context.Context, cloud *ec2.Client) (map[string]bool, error) {
	found := map[string]bool{}
	pages := ec2.NewDescribeInstancesPaginator(cloud, &ec2.DescribeInstancesInput{Filters: []types.Filter{
		{Name: sdk.String("tag-key"), Values: []string{"remuda:fleet"}},
		{Name: sdk.String("instance-state-name"), Values: []string{"pending", "running"}},
	}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				found[*i.InstanceId] = true
			}
		}
	}
	return found, nil
}
