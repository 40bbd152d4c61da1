package aws

// WithHostLogs is the condition of a CloudFormation template under which its hosts send their logs to CloudWatch.
const WithHostLogs = "WithHostLogs"

// OnHostLogs are the streams of the hosts' log group that end with the host's own address.
const OnHostLogs Kind = "host logs"

// HostLogActions are what the CloudWatch agent calls on a host whose image has it.
func HostLogActions() []Permission {
	return []Permission{
		{Action: "logs:CreateLogStream", Role: RoleHost, On: OnHostLogs, Why: "with --host-logs: the CloudWatch agent of the image begins the stream of its host"},
		{Action: "logs:PutLogEvents", Role: RoleHost, On: OnHostLogs, Why: "with --host-logs: it sends the lines"},
	}
}

// hostLogs are the streams that a host may write to. Every name of a stream that the agent gives is the instance's id, a slash and the
// instance's private address; IAM knows the address of the instance that has the credentials, and knows its id only within texts with
// colons, which no stream may have.
func (n Names) hostLogs() []string {
	if !n.HostLogs {
		return nil
	}
	return []string{n.arn("logs", "log-group:/remuda/"+n.Prefix+"/hosts:log-stream:i-*/${aws:Ec2InstanceSourcePrivateIPv4}")}
}
