package servicemodel_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/awstest/servicemodel"
)

func jsonRequest(service, target, body string) servicemodel.Request {
	_, operation, _ := strings.Cut(target, ".")
	return servicemodel.Request{Service: service, Operation: operation, Target: target, Body: []byte(body)}
}

func dynamo(operation, body string) servicemodel.Request {
	return jsonRequest("dynamodb", "DynamoDB_20120810."+operation, body)
}

func queues(operation, body string) servicemodel.Request {
	return jsonRequest("sqs", "AmazonSQS."+operation, body)
}

// versions of the APIs that speak in forms.
var versions = map[string]string{"ec2": "2016-11-15", "iam": "2010-05-08", "sts": "2011-06-15"}

func form(service, operation string, pairs ...string) servicemodel.Request {
	values := url.Values{"Action": {operation}, "Version": {versions[service]}}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		values.Set(name, value)
	}
	return servicemodel.Request{Service: service, Operation: operation, Body: []byte(values.Encode())}
}

// fleet is a legal CreateFleet, with more.
func fleet(more ...string) servicemodel.Request {
	return form("ec2", "CreateFleet", append([]string{
		"Type=instant", "ClientToken=" + strings.Repeat("t", 64), "TargetCapacitySpecification.TotalTargetCapacity=1",
		"LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName=remuda-x", "LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version=1",
		"TagSpecification.1.ResourceType=instance", "TagSpecification.1.Tag.1.Key=" + strings.Repeat("k", 127), "TagSpecification.1.Tag.1.Value=" + strings.Repeat("v", 256),
	}, more...)...)
}

func requirements(n int) []string {
	var all []string
	for i := range n {
		at := fmt.Sprintf("LaunchTemplateConfigs.1.Overrides.%d.InstanceRequirements.", i+1)
		all = append(all, at+"VCpuCount.Min=2", at+"MemoryMiB.Min=4096", at+"AllowedInstanceType.1=c6i.*")
	}
	return all
}

func tags(n int) []string {
	all := []string{"ResourceId.1=i-1"}
	for i := range n {
		all = append(all, fmt.Sprintf("Tag.%d.Key=%d", i+1, i), fmt.Sprintf("Tag.%d.Value=", i+1))
	}
	return all
}

func TestLegal(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]servicemodel.Request{
		"a fleet":                   fleet(requirements(4)...),
		"tags":                      form("ec2", "CreateTags", tags(50)...),
		"an operation without more": form("sts", "GetCallerIdentity"),
		"an empty list of Query":    form("sts", "AssumeRole", "RoleArn=arn:aws:iam::123456789012:role/x", "RoleSessionName=me", "TransitiveTagKeys="),
		"a list of Query":           form("sts", "AssumeRole", "RoleArn=arn:aws:iam::123456789012:role/x", "RoleSessionName=me", "Tags.member.1.Key=a", "Tags.member.1.Value=b"),
		"a path of IAM":             form("iam", "CreateRole", "Path=/ci/", "RoleName=x", "AssumeRolePolicyDocument={}"),
		"a name of a queryName":     form("ec2", "CreateNetworkInterface", "SubnetId=s", "SecurityGroupId.1=sg-1"),
		"a row": dynamo("PutItem", `{"TableName":"remuda-instances","Item":{"k":{"S":""},"n":{"N":"1"},"b":{"B":"AAE="},"s":{"SS":["a"]},
			"m":{"M":{"x":{"BOOL":true},"l":{"L":[{"NULL":true}]}}}},"ReturnConsumedCapacity":"TOTAL","ExpressionAttributeNames":null}`),
		"a message": queues("SendMessageBatch", `{"QueueUrl":"u","Entries":[{"Id":"0","MessageBody":"x","DelaySeconds":900}]}`),
	} {
		illegal, err := awstest.Models(t).Check(r)
		if err != nil || len(illegal) > 0 {
			t.Errorf("%s: got %v %v, want nothing", name, illegal, err)
		}
	}
}

func TestIllegal(t *testing.T) {
	t.Parallel()
	const required = "LaunchTemplateConfigs.1.Overrides.1.InstanceRequirements."
	for _, test := range []struct {
		want    string
		request servicemodel.Request
	}{
		// What the models say, in JSON.
		{"dynamodb PutItem: TableName is missing, and required", dynamo("PutItem", `{"Item":{"k":{"S":"v"}}}`)},
		{"dynamodb PutItem: Condition is no member of the model", dynamo("PutItem", `{"TableName":"x-y","Item":{"k":{"S":"v"}},"Condition":"x"}`)},
		{`dynamodb PutItem: Item is "k", want a map`, dynamo("PutItem", `{"TableName":"x-y","Item":"k"}`)},
		{`dynamodb PutItem: Item["k"].S is 1, want a string`, dynamo("PutItem", `{"TableName":"x-y","Item":{"k":{"S":1}}}`)},
		{`dynamodb PutItem: Item["k"].B is no base64`, dynamo("PutItem", `{"TableName":"x-y","Item":{"k":{"B":"?"}}}`)},
		{`dynamodb PutItem: ReturnValues is "SOME", want one of NONE, ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATED_NEW`, dynamo("PutItem", `{"TableName":"x-y","Item":{"k":{"S":"v"}},"ReturnValues":"SOME"}`)},
		{"dynamodb BatchWriteItem: RequestItems has 0 entries, want at least 1", dynamo("BatchWriteItem", `{"RequestItems":{}}`)},
		{"dynamodb Query: Limit is 0, want at least 1", dynamo("Query", `{"TableName":"x-y","Limit":0}`)},
		{"dynamodb Query: Limit is 1.5, want a whole number", dynamo("Query", `{"TableName":"x-y","Limit":1.5}`)},
		{`dynamodb Query: ConsistentRead is "true", want a boolean`, dynamo("Query", `{"TableName":"x-y","ConsistentRead":"true"}`)},
		{"dynamodb BatchGetItem: RequestItems[\"x-y\"].Keys has 101 items, want at most 100", dynamo("BatchGetItem", `{"RequestItems":{"x-y":{"Keys":[`+strings.Repeat(`{"k":{"S":"v"}},`, 100)+`{"k":{"S":"v"}}]}}}`)},
		{"dynamodb Put: is no operation of this service", dynamo("Put", `{}`)},
		{"dynamodb PutItem: is no JSON object: unexpected EOF", dynamo("PutItem", `{`)},
		{`sqs SendMessage: X-Amz-Target is "SQS.SendMessage", want "AmazonSQS.SendMessage"`, jsonRequest("sqs", "SQS.SendMessage", `{"QueueUrl":"u","MessageBody":"x"}`)},
		{`sqs ReceiveMessage: MaxNumberOfMessages is 3000000000, want a number of 32 bits`, queues("ReceiveMessage", `{"QueueUrl":"u","MaxNumberOfMessages":3000000000}`)},
		{`sqs CreateQueue: Attributes["Colour"] (the key) is "Colour", want one of All, Policy, VisibilityTimeout, MaximumMessageSize, MessageRetentionPeriod, ApproximateNumberOfMessages, ApproximateNumberOfMessagesNotVisible, CreatedTimestamp and 14 more`, queues("CreateQueue", `{"QueueName":"q","Attributes":{"Colour":"red"}}`)},
		// In forms.
		{`sts AssumeRole: RoleSessionName is "a b", want what matches [\w+=,.@-]*`, form("sts", "AssumeRole", "RoleArn=arn:aws:iam::123456789012:role/x", "RoleSessionName=a b")},
		{"sts AssumeRole: RoleSessionName has 1 characters, want at least 2", form("sts", "AssumeRole", "RoleArn=arn:aws:iam::123456789012:role/x", "RoleSessionName=a")},
		{"sts AssumeRole: Tags has other names than member", form("sts", "AssumeRole", "RoleArn=arn:aws:iam::123456789012:role/x", "RoleSessionName=ab", "Tags.1.Key=a")},
		{"iam GetInstanceProfile: InstanceProfileName has 129 characters, want at most 128", form("iam", "GetInstanceProfile", "InstanceProfileName="+strings.Repeat("p", 129))},
		{`ec2 TerminateInstances: Version is "2016-09-15", want "2016-11-15"`, form("ec2", "TerminateInstances", "InstanceId.1=i-1", "Version=2016-09-15")},
		{"ec2 TerminateInstances: InstanceId is missing, and required", form("ec2", "TerminateInstances")},
		{"ec2 TerminateInstances: InstanceIds is no member of the model", form("ec2", "TerminateInstances", "InstanceId.1=i-1", "InstanceIds.1=i-1")},
		{"ec2 TerminateInstances: InstanceId is not a list with the numbers from 1 to 2", form("ec2", "TerminateInstances", "InstanceId.1=i-1", "InstanceId.3=i-1")},
		{`ec2 DescribeInstances: MaxResults is "x", want a number`, form("ec2", "DescribeInstances", "MaxResults=x")},
		{`ec2 DescribeInstances: DryRun is "1", want a boolean`, form("ec2", "DescribeInstances", "DryRun=1")},
		{"ec2 CreateFleet: LaunchTemplateConfigs is missing, and required", form("ec2", "CreateFleet", "TargetCapacitySpecification.TotalTargetCapacity=1")},
		{`ec2 CreateFleet: Type is "once", want one of request, maintain, instant`, fleet("Type=once")},
		{"ec2 CreateFleet: LaunchTemplateConfigs[0].Overrides[0].InstanceRequirements.MemoryMiB is missing, and required", fleet("LaunchTemplateConfigs.1.Overrides.1.InstanceRequirements.VCpuCount.Min=2")},
		// What EC2's model does not say.
		{"ec2 CreateFleet: ClientToken has 65 characters, want at most 64", fleet("ClientToken=" + strings.Repeat("t", 65))},
		{`ec2 CreateFleet: ClientToken is "é", want ASCII`, fleet("ClientToken=é")},
		{`ec2 CreateFleet: TagSpecification[0].ResourceType is "spot-instances-request", want for an instant fleet one of fleet, instance, volume, network-interface`, fleet("TagSpecification.1.ResourceType=spot-instances-request")},
		{"ec2 CreateFleet: TagSpecification[0].Tag[0].Key has 128 characters, want 1 to 127", fleet("TagSpecification.1.Tag.1.Key=" + strings.Repeat("k", 128))},
		{"ec2 CreateFleet: TagSpecification[0].Tag[0].Key has 0 characters, want 1 to 127", fleet("TagSpecification.1.Tag.1.Key=")},
		{"ec2 CreateFleet: TagSpecification[0].Tag[0].Value has 257 characters, want at most 256", fleet("TagSpecification.1.Tag.1.Value=" + strings.Repeat("v", 257))},
		{`ec2 CreateFleet: TagSpecification[0].Tag[0].Key is "AWS:x", and aws: is reserved`, fleet("TagSpecification.1.Tag.1.Key=AWS:x")},
		{"ec2 CreateTags: Tag has 51 tags, want at most 50", form("ec2", "CreateTags", tags(51)...)},
		{`ec2 CreateTags: Tag[1].Key is "0" a second time`, form("ec2", "CreateTags", append(tags(2), "Tag.2.Key=0")...)},
		{"ec2 CreateFleet: LaunchTemplateConfigs has 5 InstanceRequirements, want at most 4", fleet(requirements(5)...)},
		{"ec2 CreateFleet: LaunchTemplateConfigs[0].Overrides[0] has InstanceType and InstanceRequirements, want one of them", fleet(append(requirements(1), "LaunchTemplateConfigs.1.Overrides.1.InstanceType=c6i.large")...)},
		{"ec2 CreateFleet: LaunchTemplateConfigs[0].Overrides[0].InstanceRequirements has AllowedInstanceType and ExcludedInstanceType, want one of them",
			fleet(append(requirements(1), "LaunchTemplateConfigs.1.Overrides.1.InstanceRequirements.ExcludedInstanceType.1=m*")...)},
		{"ec2 CreateFleet: LaunchTemplateConfigs[0].Overrides[0].InstanceRequirements has SpotMaxPricePercentageOverLowestPrice and MaxSpotPriceAsPercentageOfOptimalOnDemandPrice, want one of them",
			fleet(append(requirements(1), required+"SpotMaxPricePercentageOverLowestPrice=300", required+"MaxSpotPriceAsPercentageOfOptimalOnDemandPrice=100")...)},
		{"ec2 CreateFleet: LaunchTemplateConfigs[0].Overrides[0].InstanceRequirements.VCpuCount is from 2 to 1", fleet(append(requirements(1), required+"VCpuCount.Max=1")...)},
		{"ec2 CreateFleet: LaunchTemplateConfigs[0].LaunchTemplateSpecification has LaunchTemplateId and LaunchTemplateName, want one of them",
			fleet("LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateId=lt-1")},
		{"ec2 CreateFleet: LaunchTemplateConfigs[1].LaunchTemplateSpecification.Version is missing, and required",
			fleet("LaunchTemplateConfigs.2.LaunchTemplateSpecification.LaunchTemplateName=remuda-x.arm64")},
		{"ec2 DescribeInstances: has InstanceId and MaxResults, want one of them", form("ec2", "DescribeInstances", "InstanceId.1=i-1", "MaxResults=5")},
	} {
		illegal, err := awstest.Models(t).Check(test.request)
		if err != nil {
			t.Error(err)
		}
		var got []string
		for _, i := range illegal {
			got = append(got, i.String())
		}
		slices.Sort(got)
		if diff := cmp.Diff([]string{test.want}, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestUnknownService(t *testing.T) {
	t.Parallel()
	if _, err := awstest.Models(t).Check(servicemodel.Request{Service: "dynamo"}); err == nil || !strings.Contains(err.Error(), `"dynamo"`) {
		t.Errorf("got %v, want that there is no model", err)
	}
}

func BenchmarkCheck(b *testing.B) {
	m := awstest.Models(b)
	for name, r := range map[string]servicemodel.Request{"fleet": fleet(requirements(4)...), "row": dynamo("PutItem", `{"TableName":"x-y","Item":{"k":{"S":"v"},"n":{"N":"1"}}}`)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if illegal, err := m.Check(r); err != nil || len(illegal) > 0 {
					b.Fatal(illegal, err)
				}
			}
		})
	}
}
