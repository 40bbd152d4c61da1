package dynamo

import "github.com/remuda-ci/remuda/internal/aws"

// Actions are what the store calls.
func Actions() []aws.Permission {
	return []aws.Permission{
		{Action: "dynamodb:GetItem", Role: aws.RoleControld, On: aws.OnTables, Why: "reads one record, request, job, webhook, lease or service, and the turns of a pool"},
		{Action: "dynamodb:BatchGetItem", Role: aws.RoleControld, On: aws.OnTables, Why: "reads the records, reports, requests, jobs and webhooks that it waits for or that are due"},
		{Action: "dynamodb:PutItem", Role: aws.RoleControld, On: aws.OnTables, Why: "writes records, requests, jobs, webhooks, turns, leases, services, the history and what is seen once, each under a condition"},
		{Action: "dynamodb:BatchWriteItem", Role: aws.RoleControld, On: aws.OnTables, Why: "writes the history of several runs at once"},
		{Action: "dynamodb:UpdateItem", Role: aws.RoleControld, On: aws.OnTables, Why: "claims a host in one write"},
		{Action: "dynamodb:DeleteItem", Role: aws.RoleControld, On: aws.OnTables, Why: "removes the report of a host that has ended"},
		{Action: "dynamodb:Query", Role: aws.RoleControld, On: aws.OnTables, Why: "lists by run, by pool and by due, and reads the history"},
		{Action: "dynamodb:Scan", Role: aws.RoleControld, On: aws.OnTables, Why: "reads all reports in the liveness sweep"},

		{Action: "dynamodb:DescribeTable", Role: aws.RoleRefresh, On: aws.OnTables, Why: "compares the tables and indexes with what they should be"},
		{Action: "dynamodb:CreateTable", Role: aws.RoleRefresh, On: aws.OnTables, Why: "makes a table that is missing"},
		{Action: "dynamodb:UpdateTable", Role: aws.RoleRefresh, On: aws.OnTables, Why: "adds an index that is missing, and makes a table on-demand"},
		{Action: "dynamodb:DescribeTimeToLive", Role: aws.RoleRefresh, On: aws.OnTables, Why: "looks whether expired rows are removed"},
		{Action: "dynamodb:UpdateTimeToLive", Role: aws.RoleRefresh, On: aws.OnTables, Why: "has expired rows removed"},
		{Action: "dynamodb:DescribeContinuousBackups", Role: aws.RoleRefresh, On: aws.OnTables, Why: "looks whether there is point-in-time recovery"},
		{Action: "dynamodb:UpdateContinuousBackups", Role: aws.RoleRefresh, On: aws.OnTables, Why: "turns on point-in-time recovery"},

		{Action: "dynamodb:GetItem", Role: aws.RoleHost, On: aws.OnInstances, Why: "the agent reads its own record"},
		{Action: "dynamodb:UpdateItem", Role: aws.RoleHost, On: aws.OnReports, Why: "the agent writes its own report"},
	}
}
