package sqs

import "github.com/remuda-ci/remuda/internal/aws"

// Actions are what the queue calls. A batch is allowed by the action of a single message.
func Actions() []aws.Permission {
	return []aws.Permission{
		{Action: "sqs:GetQueueUrl", Role: aws.RoleControld, On: aws.OnQueues, Why: "finds a queue by its name, once"},
		{Action: "sqs:SendMessage", Role: aws.RoleControld, On: aws.OnQueues, Why: "announces a host that came into the pool, and puts malformed messages aside"},
		{Action: "sqs:ReceiveMessage", Role: aws.RoleControld, On: aws.OnQueues, Why: "looks for idle hosts"},
		{Action: "sqs:DeleteMessage", Role: aws.RoleControld, On: aws.OnQueues, Why: "removes the messages of hosts that were claimed or are gone"},
		{Action: "sqs:ChangeMessageVisibility", Role: aws.RoleControld, On: aws.OnQueues, Why: "gives back the messages of hosts that did not fit"},

		{Action: "sqs:GetQueueUrl", Role: aws.RoleRefresh, On: aws.OnQueues, Why: "looks whether a queue exists"},
		{Action: "sqs:GetQueueAttributes", Role: aws.RoleRefresh, On: aws.OnQueues, Why: "compares the queues with what they should be"},
		{Action: "sqs:CreateQueue", Role: aws.RoleRefresh, On: aws.OnQueues, Why: "makes a queue that is missing"},
		{Action: "sqs:SetQueueAttributes", Role: aws.RoleRefresh, On: aws.OnQueues, Why: "corrects the times and the encryption of a queue"},
	}
}
