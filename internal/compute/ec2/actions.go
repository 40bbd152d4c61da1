package ec2

import "github.com/remuda-ci/remuda/internal/aws"

// Actions are what the adapter calls, and what EC2 does for it in the caller's
// name, for the policies of docs/iam.
func Actions() []aws.Permission {
	return []aws.Permission{
		{Action: "ec2:CreateFleet", Role: aws.RoleControld, On: aws.OnFleet, Why: "launch the hosts of a request"},
		{Action: "ec2:RunInstances", Role: aws.RoleControld, On: aws.OnFleet, Why: "CreateFleet launches instances in the caller's name"},
		{Action: "ec2:CreateTags", Role: aws.RoleControld, On: aws.OnNewTags, Why: "CreateFleet tags what it launches; only while it launches it"},
		{Action: "iam:PassRole", Role: aws.RoleControld, On: aws.OnHostRole, Why: "CreateFleet gives the hosts their role"},
		{Action: "ec2:TerminateInstances", Role: aws.RoleControld, On: aws.OnMachines, Why: "end hosts; only those with the tag of the fleet"},
		{Action: "ec2:DescribeInstances", Role: aws.RoleControld, On: aws.OnAll, Why: "look for the machines of a launch, of hosts, and of the fleet"},
		{Action: "ec2:DescribeInstanceStatus", Role: aws.RoleControld, On: aws.OnAll, Why: "see whether a silent host is impaired"},
		{Action: "ec2:DescribeInstanceTypes", Role: aws.RoleControld, On: aws.OnAll, Why: "learn the vCPU and memory of a type that the catalogue lacks"},
		{Action: "ec2:DescribeSubnets", Role: aws.RoleControld, On: aws.OnAll, Why: "learn the zones of the subnets to launch into"},
		{Action: "ec2:DescribeLaunchTemplates", Role: aws.RoleControld, On: aws.OnAll, Why: "find the version that a launch names"},

		{Action: "ec2:DescribeSubnets", Role: aws.RoleRefresh, On: aws.OnAll, Why: "check that the subnets of a pool are there"},
		{Action: "ec2:DescribeImages", Role: aws.RoleRefresh, On: aws.OnAll, Why: "check a pool's images and find their root devices"},
		{Action: "ec2:DescribeLaunchTemplateVersions", Role: aws.RoleRefresh, On: aws.OnAll, Why: "compare launch templates with the configuration"},
		{Action: "ec2:CreateLaunchTemplate", Role: aws.RoleRefresh, On: aws.OnNewTemplates, Why: "create the launch template of a pool"},
		{Action: "ec2:CreateTags", Role: aws.RoleRefresh, On: aws.OnNewTags, Why: "CreateLaunchTemplate tags the template; only while it creates it"},
		{Action: "ec2:CreateLaunchTemplateVersion", Role: aws.RoleRefresh, On: aws.OnTemplates, Why: "correct a launch template"},
		{Action: "ec2:ModifyLaunchTemplate", Role: aws.RoleRefresh, On: aws.OnTemplates, Why: "make the right version the default"},
		{Action: "ec2:DeleteLaunchTemplateVersions", Role: aws.RoleRefresh, On: aws.OnTemplates, Why: "delete versions that nothing names any more"},
	}
}
