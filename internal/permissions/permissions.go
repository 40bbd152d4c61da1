// Package permissions is every action that Remuda calls in AWS, for those who render its policies.
package permissions

import (
	"slices"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/host/power"
	"github.com/remuda-ci/remuda/internal/queue/sqs"
	"github.com/remuda-ci/remuda/internal/services/ecs"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
)

// Uses says what of the permissions a fleet needs that not every fleet does.
type Uses struct {
	Stops  bool // a pool stops its idle hosts
	Resets bool // a pool replaces the root volumes of its hosts
}

// Needed are those of All that a fleet calls.
func Needed(by Uses) []aws.Permission {
	return slices.DeleteFunc(All(), func(p aws.Permission) bool {
		switch p.Action {
		case "ec2:StopInstances", "ec2:StartInstances":
			return !by.Stops
		case "ec2:CreateReplaceRootVolumeTask", "ec2:DescribeReplaceRootVolumeTasks":
			return !by.Resets
		}
		return false
	})
}

// All are the actions that the adapters and controld itself call.
func All() []aws.Permission {
	return slices.Concat(dynamo.Actions(), sqs.Actions(), ec2.Actions(), ecs.Actions(), power.Actions(), aws.HostLogActions(), []aws.Permission{
		{Action: "iam:GetInstanceProfile", Role: aws.RoleControld, On: aws.OnProfile, Why: "at start: the id of the hosts' role, which begins the key of each host"},
		{Action: "servicequotas:GetServiceQuota", Role: aws.RoleControld, On: aws.OnAll, Why: "config check --aws: the quotas of vCPU; nothing else reads them, so it may be left out"},
		{Action: "iam:GetInstanceProfile", Role: aws.RoleRefresh, On: aws.OnProfile, Why: "config check --aws: is the hosts' profile there"},
	})
}
