package awstest_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
)

// Both subtests make the same names in the same emulators: the second would
// fail if it saw the first one's.
func TestEachTestHasAWorldOfItsOwn(t *testing.T) {
	for _, name := range []string{"one", "another"} {
		t.Run(name, func(t *testing.T) {
			createTable(t, dynamodb.NewFromConfig(awstest.Config(t, awstest.DynamoDB(t))), "remuda-instances")
			config := awstest.Config(t, awstest.Moto(t))
			queues := sqs.NewFromConfig(config)
			listed, err := queues.ListQueues(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(listed.QueueUrls) != 0 {
				t.Errorf("an untouched account has the queues %q", listed.QueueUrls)
			}
			if _, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: sdk.String("remuda")}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestConfigurationsOfOneTestShareItsWorld(t *testing.T) {
	endpoint := awstest.DynamoDB(t)
	createTable(t, dynamodb.NewFromConfig(awstest.Config(t, endpoint)), "shared")
	listed, err := dynamodb.NewFromConfig(awstest.Config(t, endpoint)).ListTables(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(listed.TableNames, "shared") {
		t.Errorf("tables %q, without the one made through another configuration", listed.TableNames)
	}
}

// TestAMotoOfItsOwn has the same account as any other, and ends with its test.
func TestAMotoOfItsOwn(t *testing.T) {
	var own string
	t.Run("test", func(t *testing.T) {
		own = awstest.NewMoto(t)
		if a, b := account(t, awstest.Moto(t)), account(t, own); a != b {
			t.Errorf("the account is %s in one moto and %s in another", a, b)
		}
	})
	if conn, err := net.Dial("tcp", strings.TrimPrefix(own, "http://")); err == nil {
		conn.Close()
		t.Errorf("%s still answers", own)
	}
}

func account(t *testing.T, endpoint string) string {
	t.Helper()
	who, err := sts.NewFromConfig(awstest.Config(t, endpoint)).GetCallerIdentity(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return *who.Account
}

func TestConfigCounts(t *testing.T) {
	var calls aws.Calls
	config := awstest.Config(t, awstest.DynamoDB(t), func(o *aws.Options) { o.Calls = &calls })
	if _, err := dynamodb.NewFromConfig(config).ListTables(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if n := calls.Counts()[aws.Call{Service: "dynamodb", Operation: "ListTables"}]; n != 1 {
		t.Errorf("%d calls of ListTables counted, want 1", n)
	}
}

func TestEnvironmentPlaysNoPart(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	if _, err := dynamodb.NewFromConfig(awstest.Config(t, awstest.DynamoDB(t))).ListTables(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func createTable(t *testing.T, client *dynamodb.Client, name string) {
	t.Helper()
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            &name,
		BillingMode:          ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: sdk.String("key"), AttributeType: ddb.ScalarAttributeTypeS}},
		KeySchema:            []ddb.KeySchemaElement{{AttributeName: sdk.String("key"), KeyType: ddb.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
}
