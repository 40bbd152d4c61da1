package awstest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/remuda-ci/remuda/internal/aws"
)

// region of everything in tests.
const region = "us-east-1"

// The waits between tries: an emulator is not relieved by longer ones.
const (
	firstWait   = time.Millisecond
	longestWait = 20 * time.Millisecond
)

// patience replaces the product's limits of 2 s for a connection and 15 s for a try: on a machine that is
// busy with everything else, an emulator may take longer, and a call that is tried again would be counted
// twice. Faults do not need the limits: see Timeout.
const patience = 2 * time.Minute

// Config sets up the SDK as the product does, for an emulator or a Proxy, in the world of this test. With may
// change how, such as to count the calls. The developer's own environment and files play no part.
func Config(t testing.TB, endpoint string, with ...func(*aws.Options)) sdk.Config {
	t.Helper()
	o := aws.Options{Region: region}
	for _, change := range with {
		change(&o)
	}
	c, err := load(o)
	if err != nil {
		t.Fatal(err)
	}
	if o.Retryer == nil { // one for each client, as in the product
		c.Retryer = func() sdk.Retryer {
			return aws.NewRetryer(aws.RetryOptions{FirstWait: firstWait, LongestWait: longestWait})
		}
	}
	caller := callerOf(t)
	c.Credentials = caller.credentials()
	c.BaseEndpoint = &endpoint
	if client, ok := c.HTTPClient.(*awshttp.BuildableClient); ok {
		c.HTTPClient = client.WithTimeout(patience).WithDialerOptions(func(d *net.Dialer) { d.Timeout = patience })
	}
	c.HTTPClient = httpClient{HTTPClient: c.HTTPClient, sent: caller.sent}
	c.ConfigSources = nil // AWS_ENDPOINT_URL_<SERVICE> would be stronger than BaseEndpoint
	c.APIOptions = append(c.APIOptions, caller.addHeader)
	return c
}

// load sets up the SDK. What most tests want is set up once for all of them.
func load(o aws.Options) (sdk.Config, error) {
	if o != (aws.Options{Region: region}) {
		return aws.Load(context.Background(), o)
	}
	c, err := loadOnce()
	return c.Copy(), err
}

var loadOnce = sync.OnceValues(func() (sdk.Config, error) { return aws.Load(context.Background(), aws.Options{Region: region}) })

// accountHeader tells moto whose state a call is about.
const accountHeader = "X-Moto-Account-Id"

func (c caller) addHeader(stack *middleware.Stack) error {
	return smithyhttp.AddHeaderValue(accountHeader, c.account)(stack)
}
