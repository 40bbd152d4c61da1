package ec2_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/awstest/ec2gap"
	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
)

const (
	prefix = "remuda"
	region = "us-east-1"
	roleID = "AROAEXAMPLE"
)

// world is an account of EC2.
type world struct {
	*ec2gap.EC2
	proxy   *awstest.Proxy
	client  *service.Client
	images  map[string]string
	subnets []types.Subnet // by zone
	group   string
}

func newWorld(t testing.TB) world {
	t.Helper()
	proxy := awstest.NewProxy(t, awstest.Moto(t))
	w := world{EC2: ec2gap.Install(proxy), proxy: proxy, client: service.NewFromConfig(awstest.Config(t, proxy.URL())), images: map[string]string{}}
	images, err := w.client.DescribeImages(t.Context(), &service.DescribeImagesInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images.Images { // there is one of each architecture
		w.images[string(image.Architecture)] = *image.ImageId
	}
	subnets, err := w.client.DescribeSubnets(t.Context(), &service.DescribeSubnetsInput{})
	if err != nil {
		t.Fatal(err)
	}
	w.subnets = subnets.Subnets
	slices.SortFunc(w.subnets, func(a, b types.Subnet) int { return strings.Compare(*a.AvailabilityZone, *b.AvailabilityZone) })
	groups, err := w.client.DescribeSecurityGroups(t.Context(), &service.DescribeSecurityGroupsInput{})
	if err != nil {
		t.Fatal(err)
	}
	w.group = *groups.SecurityGroups[0].GroupId
	return w
}

// tag is what an operator does by hand.
func (w world) tag(t testing.TB, id, key, value string) {
	t.Helper()
	_, err := w.client.CreateTags(t.Context(), &service.CreateTagsInput{
		Resources: []string{id}, Tags: []types.Tag{{Key: sdk.String(key), Value: sdk.String(value)}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// options of a fleet with the pool "default" in the first two zones.
func (w world) options() ec2.Options {
	arch := catalogue.LocalArch()
	return ec2.Options{
		Prefix: prefix, Region: region, RoleID: roleID, InstanceProfile: "remuda-host",
		Pools: map[string]ec2.Pool{"default": {
			Images:         map[string]string{arch: w.images[arch]},
			Subnets:        []string{*w.subnets[0].SubnetId, *w.subnets[1].SubnetId},
			SecurityGroups: []string{w.group}, RootVolumeGiB: 50,
			Tags: map[string]string{"team": "ci"}, PreRunner: []byte("#!/bin/sh\necho ready\n"),
		}},
	}
}

// pool changes the pool "default" of the options.
func pool(o ec2.Options, change func(*ec2.Pool)) ec2.Options {
	p := o.Pools["default"]
	change(&p)
	o.Pools = map[string]ec2.Pool{"default": p}
	return o
}

func (w world) open(t testing.TB, o ec2.Options) *ec2.Compute {
	t.Helper()
	c, err := ec2.New(w.client, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ready is a fleet whose templates are there.
func (w world) ready(t testing.TB, o ec2.Options) *ec2.Compute {
	t.Helper()
	c := w.open(t, o)
	ensure(t, c)
	return c
}

func ensure(t testing.TB, c *ec2.Compute) []resources.Resource {
	t.Helper()
	changes, err := c.Ensure(t.Context(), false)
	if err != nil {
		t.Fatalf("ensure: %v", err)
	}
	return changes
}

// order is for hosts with 2 vCPU and 4 GiB, as fleet writes one.
func order(t testing.TB, c *ec2.Compute, number, count int) lifecycle.LaunchOrder {
	t.Helper()
	version, err := c.Template(t.Context(), "default")
	if err != nil {
		t.Fatalf("template: %v", err)
	}
	return lifecycle.LaunchOrder{
		Token: fmt.Sprintf("q/%d", number), RequestID: "q", Number: number, Count: count,
		Pool: "default", Repository: "acme/shop", RunID: "77", ResourceClass: "large", CPU: 2, MemoryMiB: 4096,
		UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"c*", "m*", "r*"}, TemplateVersion: version,
	}
}

// calls are how often an operation was called.
func (w world) calls(operation string) int {
	n := 0
	for _, c := range w.proxy.Calls() {
		if c.Call == (aws.Call{Service: "ec2", Operation: operation}) {
			n++
		}
	}
	return n
}

// living are the ids of the instances that moto has and that are not gone, with
// whatever tags.
func (w world) living(t testing.TB) []types.Instance {
	t.Helper()
	out, err := w.client.DescribeInstances(t.Context(), &service.DescribeInstancesInput{
		Filters:    []types.Filter{{Name: sdk.String("instance-state-name"), Values: []string{"pending", "running"}}},
		MaxResults: sdk.Int32(1000),
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []types.Instance
	for _, r := range out.Reservations {
		all = append(all, r.Instances...)
	}
	return all
}

func equal(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// ignoreSerde sets aside what the SDK's types carry of their own.
var ignoreSerde = []cmp.Option{cmp.FilterPath(func(p cmp.Path) bool {
	field, ok := p.Last().(cmp.StructField)
	return ok && field.Name() == "noSmithyDocumentSerde"
}, cmp.Ignore())}
