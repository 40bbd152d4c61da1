package awstest

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// DynamoDB is the endpoint of a DynamoDB Local, such as http://127.0.0.1:40000:
// that of the whole run in make test, this test binary's own otherwise.
func DynamoDB(t testing.TB) string {
	t.Helper()
	endpoint, err := sharedDynamoDB()
	if err == nil {
		err = useDynamoDB()
	}
	if err != nil {
		t.Fatal(err)
	}
	return endpoint
}

var sharedDynamoDB = sharedBy(dynamodbLocal)

// dynamodbLocal keeps everything in memory, in one database for each access
// key and region. It takes no port of its own choice.
var dynamodbLocal = emulator{
	name: "DynamoDB Local",
	port: freePort,
	command: func(i installation, port int) *exec.Cmd {
		jars := filepath.Join(i.emulators, "dynamodb")
		return exec.Command("java",
			// Tests are short: what the compiler and collector for long runs
			// take would double the processor time of a start.
			"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m",
			"-Djava.library.path="+jars, "-Dsqlite4java.library.path="+jars, "-cp", filepath.Join(jars, "*"),
			"com.amazonaws.services.dynamodbv2.local.main.ServerRunner",
			"-inMemory", "-disableTelemetry", "-port", strconv.Itoa(port))
	},
	ready: func(ctx context.Context, endpoint string) error {
		_, err := dynamodb.New(dynamodb.Options{
			Region: region, BaseEndpoint: &endpoint, Credentials: prober.credentials(), RetryMaxAttempts: 1,
		}).ListTables(ctx, nil)
		return err
	},
}
