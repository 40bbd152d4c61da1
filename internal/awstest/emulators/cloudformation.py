"""What moto's CloudFormation lacks. Motoserver.py loads it once a stack is asked for, since CloudFormation imports every service.

The types of resources below are made by calls to this moto's own API: the names of their properties are those of the calls, which botocore
validates. Those of load balancers replace moto's, which make load balancers for HTTP alone.
"""

import botocore.session
import flask
import moto.cloudformation.parsing as parsing
from botocore.config import Config
from moto.cloudformation.models import CloudFormationBackend
from moto.core.common_models import CloudFormationModel

_clean_json = parsing.clean_json


def clean_json(value, resources):
    """As CloudFormation does, leave AWS::NoValue out of lists too."""
    if isinstance(value, list):
        return [v for v in (clean_json(one, resources) for one in value) if v is not None]
    return _clean_json(value, resources)


parsing.clean_json = clean_json

_execute_change_set = CloudFormationBackend.execute_change_set


def execute_change_set(self, change_set_name, stack_name=None):
    """As a stack that was made without a change set, have the outputs of the template and the new parameters."""
    _execute_change_set(self, change_set_name, stack_name)
    for change_set in self.change_sets.values():
        if change_set_name in (change_set.change_set_id, change_set.change_set_name) and change_set.stack_id in self.stacks:
            stack = self.stacks[change_set.stack_id]
            stack._parse_template()
            stack.output_map = stack._create_output_map()
            stack.parameters = change_set.parameters


CloudFormationBackend.execute_change_set = execute_change_set

_parse_ssm_parameter = parsing.ResourceMap.parse_ssm_parameter


def parse_ssm_parameter(self, value, value_type):
    """A value of before is that of the parameter, and no longer its name."""
    return _parse_ssm_parameter(self, value, value_type) if value.startswith("/") else value


parsing.ResourceMap.parse_ssm_parameter = parse_ssm_parameter


def _wanted(self, name):
    condition = self._resource_json_map[name].get("Condition")
    return condition is None or self.lazy_condition_map[condition]


def _resolved(self, name):
    return parsing.clean_json(self._resource_json_map[name].get("Properties", {}), self)


def update(self, template, parameters=None):
    """As CloudFormation does, change what a parameter changes, and not only what is written otherwise in the template."""
    before = {name: _resolved(self, name) for name in self._resource_json_map if self._parsed_resources.get(name) is not None}
    old = self._resource_json_map
    self._template, self._resource_json_map = template, template["Resources"]
    if parameters:
        self.input_parameters = {k: ",".join(v) if isinstance(v, list) else str(v) for k, v in parameters.items()}
    self.load_mapping()
    self.load_parameters()
    self.load_conditions()
    for name in self._resource_json_map:
        if not _wanted(self, name):
            continue
        if name not in before:
            if self._parsed_resources.get(name) is None:
                self._parsed_resources.pop(name, None)  # its condition was false
            self[name]
        elif before[name] != _resolved(self, name):
            updated = parsing.parse_and_update_resource(name, self._resource_json_map[name], self, self._account_id, self._region_name)
            if updated is None:
                raise NotImplementedError(f"moto cannot update {name}")
            self._parsed_resources[name] = updated
    for name in reversed(list(before)):
        if name not in self._resource_json_map or not _wanted(self, name):
            self._delete_resource(self._parsed_resources.pop(name), old[name])


parsing.ResourceMap.update = update


def _client(service, account, region):
    session = botocore.session.get_session()
    client = session.create_client(
        service,
        region_name=region,
        endpoint_url=flask.request.host_url,
        aws_access_key_id="cloudformation",
        aws_secret_access_key="cloudformation",
        config=Config(retries={"max_attempts": 0}, parameter_validation=True),
    )
    client.meta.events.register("before-send", lambda request, **_: request.headers.__setitem__("X-Moto-Account-Id", account))
    return client


def _lowered(name):
    return name[0].lower() + name[1:]


class _Type:
    """How a resource is made and deleted."""

    def __init__(
        self, type, service, create, delete, keys, id, name="", attributes=None, camel=False, numbers=(), integers=(), answer="", later=None,
    ):
        self.type, self.service, self.create, self.delete, self.keys, self.id = type, service, create, delete, keys, id
        self.name, self.attributes, self.camel, self.numbers, self.integers = name, attributes or {}, camel, numbers, integers
        # The answer's list that has the resource, and the property that another call sets.
        self.answer, self.later = answer, later

    def arguments(self, properties):
        """The properties as the call takes them. CloudFormation takes numbers that are written as strings, and the other way around."""
        out = {}
        for key, value in properties.items():
            if key in self.integers:
                value = int(value)
            elif key in self.numbers:
                value = float(value)
            if self.camel:
                value = [{_lowered(k): v for k, v in one.items()} for one in value] if isinstance(value, list) else value
                key = _lowered(key)
            out[key] = value
        return out

    def model(self):
        """The class that moto's CloudFormation finds by the type."""
        this = self

        class Model(CloudFormationModel):
            __module__ = "moto.cloudformation.models"  # moto keeps count of its models by their service

            def __init__(self, id, keys, attributes):
                self.physical_resource_id, self.keys, self.attributes = id, keys, attributes

            @staticmethod
            def cloudformation_name_type():
                return this.name

            @staticmethod
            def cloudformation_type():
                return this.type

            @classmethod
            def has_cfn_attr(cls, attr):
                return attr in this.attributes

            def get_cfn_attribute(self, name):
                return self.attributes[name]

            @classmethod
            def create_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
                properties = dict(cloudformation_json["Properties"])
                if this.name:
                    properties[this.name] = resource_name
                client = _client(this.service, account_id, region_name)
                late = properties.pop(this.later[1], None) if this.later else None
                arguments = this.arguments(properties)
                answer = getattr(client, this.create)(**arguments)
                if this.answer:
                    answer = answer[this.answer][0]
                known = {**arguments, **answer}
                if late:
                    getattr(client, this.later[0])(**{this.id: known[this.id], "Attributes": late})
                return cls(
                    str(known[this.id]), {k: known[k] for k in this.keys}, {a: value(answer) for a, value in this.attributes.items()}
                )

            @classmethod
            def update_from_cloudformation_json(cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name):
                original_resource.delete(account_id, region_name)
                return cls.create_from_cloudformation_json(new_resource_name, cloudformation_json, account_id, region_name)

            def delete(self, account_id, region_name):
                keys = {"AlarmNames": [self.keys["AlarmName"]]} if "AlarmName" in self.keys else self.keys
                getattr(_client(this.service, account_id, region_name), this.delete)(**keys)

        return Model


_MODELS = [
    t.model()
    for t in (
        _Type(
            "AWS::CloudWatch::Alarm", "cloudwatch", "put_metric_alarm", "delete_alarms", ("AlarmName",), "AlarmName", name="AlarmName",
            numbers=("Threshold",), integers=("Period", "EvaluationPeriods"),
        ),
        _Type(
            "AWS::Logs::MetricFilter", "logs", "put_metric_filter", "delete_metric_filter", ("filterName", "logGroupName"), "filterName",
            name="FilterName", camel=True,
        ),
        _Type(
            "AWS::ApiGatewayV2::Api", "apigatewayv2", "create_api", "delete_api", ("ApiId",), "ApiId", attributes={"ApiEndpoint": lambda answer: answer["ApiEndpoint"]},
        ),
        _Type("AWS::ApiGatewayV2::VpcLink", "apigatewayv2", "create_vpc_link", "delete_vpc_link", ("VpcLinkId",), "VpcLinkId"),
        _Type(
            "AWS::ApiGatewayV2::Integration", "apigatewayv2", "create_integration", "delete_integration", ("ApiId", "IntegrationId"), "IntegrationId",
        ),
        _Type("AWS::ApiGatewayV2::Route", "apigatewayv2", "create_route", "delete_route", ("ApiId", "RouteId"), "RouteId"),
        _Type(
            "AWS::ApiGatewayV2::Stage", "apigatewayv2", "create_stage", "delete_stage", ("ApiId", "StageName"), "StageName",
        ),
        _Type(
            "AWS::ElasticLoadBalancingV2::LoadBalancer", "elbv2", "create_load_balancer", "delete_load_balancer", ("LoadBalancerArn",),
            "LoadBalancerArn", name="Name", answer="LoadBalancers", later=("modify_load_balancer_attributes", "LoadBalancerAttributes"),
            attributes={
                "DNSName": lambda answer: answer["DNSName"],
                "LoadBalancerFullName": lambda answer: answer["LoadBalancerArn"].split("loadbalancer/")[1],
            },
        ),
        _Type(
            "AWS::ElasticLoadBalancingV2::TargetGroup", "elbv2", "create_target_group", "delete_target_group", ("TargetGroupArn",),
            "TargetGroupArn", name="Name", answer="TargetGroups", later=("modify_target_group_attributes", "TargetGroupAttributes"),
            integers=("Port", "HealthCheckIntervalSeconds"),
            attributes={"TargetGroupFullName": lambda answer: answer["TargetGroupArn"].split(":")[-1]},
        ),
        _Type(
            "AWS::ElasticLoadBalancingV2::Listener", "elbv2", "create_listener", "delete_listener", ("ListenerArn",), "ListenerArn",
            answer="Listeners", integers=("Port",),
        ),
    )
]


def _detach(client, gateway):
    for found in client.describe_internet_gateways(InternetGatewayIds=[gateway.id])["InternetGateways"]:
        for attachment in found["Attachments"]:
            client.detach_internet_gateway(InternetGatewayId=gateway.id, VpcId=attachment["VpcId"])
    client.delete_internet_gateway(InternetGatewayId=gateway.id)


# How to delete what moto makes and leaves behind. An attachment ends with its gateway.
_DELETE = {
    "AWS::EC2::RouteTable": lambda client, table: client.delete_route_table(RouteTableId=table.physical_resource_id),
    "AWS::EC2::NatGateway": lambda client, gateway: client.delete_nat_gateway(NatGatewayId=gateway.physical_resource_id),
    "AWS::EC2::VPCEndpoint": lambda client, endpoint: client.delete_vpc_endpoints(VpcEndpointIds=[endpoint.physical_resource_id]),
    "AWS::EC2::EIP": lambda client, address: client.release_address(AllocationId=address.allocation_id),
    "AWS::EC2::VPCGatewayAttachment": lambda client, attachment: None,
    "AWS::EC2::InternetGateway": _detach,
}
_delete_resource = parsing.ResourceMap._delete_resource


def delete_resource(self, resource, resource_json):
    """Delete what moto's models cannot."""
    delete = _DELETE.get(resource_json["Type"])
    if delete:
        delete(_client("ec2", self._account_id, self._region_name), resource)
    else:
        _delete_resource(self, resource, resource_json)


parsing.ResourceMap._delete_resource = delete_resource


def delete_all(self):
    """As CloudFormation does, delete a resource before those that it was made of."""
    for name in reversed(list(self._parsed_resources)):
        if name in self._resource_json_map and self._parsed_resources[name] is not None:
            self._delete_resource(self._parsed_resources[name], self._resource_json_map[name])
            del self._parsed_resources[name]


parsing.ResourceMap.delete = delete_all
