"""Prints what there is in an account, one id a line, of all that a stack of the template can have made."""

import sys

import awscli.botocore.session as botocore_session
import jmespath

session = botocore_session.get_session()

# Service, operation, and the ids in its answer. Launch templates of Refresh and the role of spot are no part of the stack.
LISTS = [
    ("ec2", "describe_vpcs", "Vpcs[].VpcId"),
    ("ec2", "describe_subnets", "Subnets[].SubnetId"),
    ("ec2", "describe_internet_gateways", "InternetGateways[].InternetGatewayId"),
    ("ec2", "describe_nat_gateways", "NatGateways[?State!='deleted'].NatGatewayId"),
    ("ec2", "describe_addresses", "Addresses[].AllocationId"),
    ("ec2", "describe_route_tables", "RouteTables[].RouteTableId"),
    ("ec2", "describe_vpc_endpoints", "VpcEndpoints[?State!='deleted' && State!='Deleted'].VpcEndpointId"),
    ("ec2", "describe_security_groups", "SecurityGroups[].GroupId"),
    ("ec2", "describe_launch_templates", "LaunchTemplates[?!starts_with(LaunchTemplateName, 'remuda-')].LaunchTemplateId"),
    ("ec2", "describe_instances", "Reservations[].Instances[?State.Name!='terminated'][].InstanceId"),
    ("iam", "list_roles", "Roles[?!starts_with(RoleName, 'AWSServiceRole')].RoleName"),
    ("iam", "list_instance_profiles", "InstanceProfiles[].InstanceProfileName"),
    ("elbv2", "describe_load_balancers", "LoadBalancers[].LoadBalancerArn"),
    ("elbv2", "describe_target_groups", "TargetGroups[].TargetGroupArn"),
    ("autoscaling", "describe_auto_scaling_groups", "AutoScalingGroups[].AutoScalingGroupName"),
    ("apigatewayv2", "get_apis", "Items[].ApiId"),
    ("apigatewayv2", "get_vpc_links", "Items[].VpcLinkId"),
    ("events", "list_rules", "Rules[].Name"),
    ("logs", "describe_log_groups", "logGroups[].logGroupName"),
    ("logs", "describe_metric_filters", "metricFilters[].filterName"),
    ("cloudwatch", "describe_alarms", "MetricAlarms[].AlarmName"),
    ("sns", "list_topics", "Topics[].TopicArn"),
    ("cloudformation", "list_stacks", "StackSummaries[?StackStatus!='DELETE_COMPLETE'].StackName"),
]

for service, operation, ids in LISTS:
    answer = getattr(session.create_client(service), operation)()
    for one in sorted(jmespath.search(ids, answer) or []):
        sys.stdout.write(f"{service} {operation} {one}\n")
