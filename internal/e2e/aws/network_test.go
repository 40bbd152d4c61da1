package aws_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// given is a network that is there before the stack.
type given struct {
	vpc, routes     string
	private, public []string
}

// TestAFleetInAGivenNetwork: the stack makes no network beside the one that it is given, puts everything into it, and leaves it there.
func TestAFleetInAGivenNetwork(t *testing.T) {
	i := newInstall(t)
	n := i.givenNetwork()
	before := i.inventory()
	i.deploy("VpcId="+n.vpc, "SubnetIds="+strings.Join(n.private, ","), "PublicSubnetIds="+strings.Join(n.public, ","), "RouteTableIds="+n.routes,
		"JobRepositories=acme/*", "ImageX86=ami-00000001", "CallerCidr=203.0.113.7/32",
		"PackageUri=s3://packages/remuda-controld.rpm", "PackageSha256="+strings.Repeat("0", 64))
	i.isIn(n)
	made := i.resources()
	if made["DynamoDBEndpoint"] == "" || made["S3Endpoint"] == "" {
		t.Errorf("the route table has no gateway endpoints: %v", made)
	}
	i.deploy("RouteTableIds=")
	i.isIn(n)
	if made := i.resources(); made["DynamoDBEndpoint"] != "" || made["S3Endpoint"] != "" {
		t.Errorf("without a route table there are gateway endpoints: %v", made)
	}
	i.aws("cloudformation", "delete-stack", "--stack-name", "remuda")
	if diff := cmp.Diff(before, i.inventory()); diff != "" {
		t.Errorf("the account has other resources than before the stack (-before +after):\n%s", diff)
	}
}

// deploy makes or changes the stack.
func (i *install) deploy(parameters ...string) {
	i.Helper()
	i.aws(append([]string{"cloudformation", "deploy", "--stack-name", "remuda", "--template-file", "deploy/cloudformation/remuda.yaml",
		"--capabilities", "CAPABILITY_IAM", "--parameter-overrides"}, parameters...)...)
}

// text calls the CLI, for one value of its answer.
func (i *install) text(query string, args ...string) string {
	i.Helper()
	return strings.TrimSpace(i.aws(append(args, "--query", query, "--output", "text")...))
}

func (i *install) givenNetwork() given {
	i.Helper()
	n := given{vpc: i.text("Vpc.VpcId", "ec2", "create-vpc", "--cidr-block", "10.40.0.0/16")}
	n.routes = i.text("RouteTable.RouteTableId", "ec2", "create-route-table", "--vpc-id", n.vpc)
	subnet := func(block, zone string) string {
		return i.text("Subnet.SubnetId", "ec2", "create-subnet", "--vpc-id", n.vpc, "--cidr-block", block, "--availability-zone", region+zone)
	}
	n.private = []string{subnet("10.40.1.0/24", "a"), subnet("10.40.2.0/24", "b")}
	n.public = []string{subnet("10.40.3.0/24", "a"), subnet("10.40.4.0/24", "b")}
	return n
}

// isIn: whatever the stack has of a network is in the given one, and controld launches hosts in its private subnets.
func (i *install) isIn(n given) {
	i.Helper()
	made := i.resources()
	for _, name := range []string{"Vpc", "InternetGateway", "NatGateway", "PrivateSubnetA", "PrivateSubnetB", "PublicSubnetA", "PrivateRouteTable"} {
		if made[name] != "" {
			i.Errorf("the stack has %s, %s", name, made[name])
		}
	}
	for name, id := range made {
		switch {
		case strings.HasSuffix(name, "SecurityGroup"):
			i.same(name, n.vpc, i.text("SecurityGroups[0].VpcId", "ec2", "describe-security-groups", "--group-ids", id))
		case strings.HasSuffix(name, "Targets"):
			i.same(name, n.vpc, i.text("TargetGroups[0].VpcId", "elbv2", "describe-target-groups", "--target-group-arns", id))
		case strings.HasSuffix(name, "Endpoint") && id != "":
			i.same(name, n.vpc+"\t"+n.routes, i.text("VpcEndpoints[0].[VpcId, RouteTableIds[0]]", "ec2", "describe-vpc-endpoints", "--vpc-endpoint-ids", id))
		}
	}
	i.same("LoadBalancer", sorted(n.private), i.subnetsOf(made["LoadBalancer"]))
	i.same("PublicLoadBalancer", sorted(n.public), i.subnetsOf(made["PublicLoadBalancer"]))
	i.same("ControldGroup", strings.Join(n.private, ","), i.text("AutoScalingGroups[0].VPCZoneIdentifier", "autoscaling", "describe-auto-scaling-groups"))
	i.same("HostSubnets", strings.Join(n.private, ","), i.text("Stacks[0].Outputs[?OutputKey=='HostSubnets'].OutputValue", "cloudformation", "describe-stacks", "--stack-name", "remuda"))
	if script := i.userData(); !strings.Contains(script, "subnets: ["+strings.Join(n.private, ", ")+"]\n") {
		i.Errorf("controld launches in other subnets:\n%s", script)
	}
}

// subnetsOf are the subnets of a load balancer.
func (i *install) subnetsOf(arn string) string {
	i.Helper()
	return sorted(strings.Fields(i.text("LoadBalancers[0].AvailabilityZones[].SubnetId", "elbv2", "describe-load-balancers", "--load-balancer-arns", arn)))
}

func sorted(ids []string) string { return strings.Join(slices.Sorted(slices.Values(ids)), " ") }

func (i *install) same(name, want, got string) {
	i.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		i.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
