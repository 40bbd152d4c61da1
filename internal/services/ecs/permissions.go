package ecs

import "github.com/remuda-ci/remuda/internal/aws"

// Actions are what the services call.
func Actions() []aws.Permission {
	return []aws.Permission{
		{Action: "ecs:DescribeServices", Role: aws.RoleControld, On: aws.OnServices, Why: "looks how many runners the services have"},
		{Action: "ecs:UpdateService", Role: aws.RoleControld, On: aws.OnServices, Why: "says how many runners a service is to have"},
	}
}
