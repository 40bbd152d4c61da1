package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/awstest/imdstest"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
)

// instance is a machine of EC2: its agentd finds everything as it would there.
type instance struct {
	*machine
	roleID   string
	tables   *dynamo.Store
	ec2      *ec2.Client
	metadata *imdstest.Service
	// aws is where agentd's calls go, and no others.
	aws *awstest.Proxy
}

// region of the instance and its tables.
const region = "us-east-1"

// newInstance is a spot instance that runs, with a profile. Its tables are there.
func newInstance(t *testing.T, edits ...func(config map[string]any)) *instance {
	t.Helper()
	i := bareInstance(t, edits...)
	_, err := i.tables.Ensure(t.Context(), false)
	check(t, err)
	return i
}

// bareInstance has no tables.
func bareInstance(t *testing.T, edits ...func(config map[string]any)) *instance {
	t.Helper()
	moto := awstest.Config(t, awstest.Moto(t))
	i := &instance{ec2: ec2.NewFromConfig(moto), aws: awstest.NewProxy(t, awstest.Moto(t))}
	i.aws.Route("dynamodb", awstest.DynamoDB(t))
	i.machine = emptyMachine(t, launch(t, i.ec2))
	role := hostRole(t, iam.NewFromConfig(moto))
	i.roleID = *role.RoleId
	i.key = i.roleID + ":" + i.id
	i.tables = dynamo.New(dynamodb.NewFromConfig(awstest.Config(t, awstest.DynamoDB(t))), dynamo.Options{Prefix: "acme"})
	i.store = i.tables

	i.metadata = imdstest.Start(t, imdstest.Machine{
		InstanceID: i.id, Region: region, Zone: region + "a", Type: "c5.large", Arch: "x86_64", Lifecycle: "spot",
		Tags: map[string]string{"remuda:pool": "build", "remuda:role": i.roleID},
		Role: "remuda-host", Credentials: credentials(t, moto, *role.Arn, i.id),
	})
	i.env = append(append(i.aws.Environ(), i.metadata.Environment()...), "AWS_REGION=")

	settings, err := json.Marshal(map[string]any{"region": region, "prefix": "acme", "pool": "build"})
	check(t, err)
	check(t, os.WriteFile(i.path("host.json"), settings, 0o600))
	i.configure(map[string]any{
		"store": map[string]any{"dynamodb": map[string]any{}}, "host_file": i.path("host.json"),
		"power_off": []string{"touch", i.path("powered-off")},
	}, edits)
	return i
}

// hostRole makes the role of hosts. If the SDK repeats the call because an answer was lost, the role is there already.
func hostRole(t *testing.T, client *iam.Client) *iamtypes.Role {
	t.Helper()
	name := sdk.String("remuda-host")
	created, err := client.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: name, AssumeRolePolicyDocument: sdk.String("{}")})
	if exists := new(iamtypes.EntityAlreadyExistsException); errors.As(err, &exists) {
		found, err := client.GetRole(t.Context(), &iam.GetRoleInput{RoleName: name})
		check(t, err)
		return found.Role
	}
	check(t, err)
	return created.Role
}

func launch(t *testing.T, client *ec2.Client) string {
	t.Helper()
	out, err := client.RunInstances(t.Context(), &ec2.RunInstancesInput{
		ImageId: sdk.String("ami-12c6146b"), MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1), InstanceType: types.InstanceTypeC5Large,
	})
	check(t, err)
	return *out.Instances[0].InstanceId
}

// credentials are those that EC2 gives an instance with a profile: of its role,
// with its id as the session's name.
func credentials(t *testing.T, c sdk.Config, roleARN, session string) imdstest.Credentials {
	t.Helper()
	out, err := sts.NewFromConfig(c).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: &roleARN, RoleSessionName: &session})
	check(t, err)
	return inMetadata(out.Credentials)
}

func inMetadata(k *ststypes.Credentials) imdstest.Credentials {
	return imdstest.Credentials{
		AccessKeyID: *k.AccessKeyId, SecretAccessKey: *k.SecretAccessKey, Token: *k.SessionToken, Expires: time.Now().Add(6 * time.Hour),
	}
}

// ended reports whether EC2 has ended the instance.
func (i *instance) ended() bool {
	i.t.Helper()
	out, err := i.ec2.DescribeInstances(i.t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{i.id}})
	check(i.t, err)
	switch out.Reservations[0].Instances[0].State.Name {
	case types.InstanceStateNameShuttingDown, types.InstanceStateNameTerminated:
		return true
	}
	return false
}

// poweredOff reports whether the machine was powered off by its own command.
func (i *instance) poweredOff() bool {
	_, err := os.Stat(i.path("powered-off"))
	return err == nil
}

// calls are the operations that agentd called, and how often.
func (i *instance) calls() map[string]int {
	n := map[string]int{}
	for _, c := range i.aws.Calls() {
		n[c.String()]++
	}
	return n
}

// logs waits until agentd has written a text to its log.
func (i *instance) logs(text string) {
	i.t.Helper()
	i.eventually("in the log: "+text, func() bool { return strings.Contains(i.log(), text) })
}

// shifted is a hook that lets DynamoDB's clock be another one.
func shifted(by time.Duration) awstest.Hook {
	return func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		a := forward(r)
		a.Header.Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
		a.Write(w)
	}
}

// refuse is a hook that answers with an error of the service.
func refuse(code string) awstest.Hook {
	return func(w http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
		body := `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"no"}`
		if r.Header.Get("X-Amz-Target") == "" {
			body = "<Response><Errors><Error><Code>" + code + "</Code><Message>no</Message></Error></Errors></Response>"
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(body))
	}
}
