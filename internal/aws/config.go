// Package aws is what the AWS adapters have in common: how the SDK is set up,
// how often and how long a call is tried, what its errors mean, and a count of
// the calls that were really made. It knows none of the adapters.
package aws

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"sync/atomic"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
)

// The times of one try. A call may be tried several times (see Retryer); its
// caller's context bounds all of them.
const (
	// tryTimeout must outlast the longest answer that is waited for, a receive of 1 s, except that of CreateFleet, which has a
	// time of its own; much longer, and one lost packet holds up a whole Provision.
	tryTimeout = 15 * time.Second
	// dialTimeout: endpoints are in the same region and answer within milliseconds, or not at all.
	dialTimeout = 2 * time.Second
	// connections per host: one for each caller that waits at the same time.
	// With the default of 2 idle ones, callers would open a new one each time.
	connections = 128
)

// Options say how the SDK is set up. The zero value takes everything from
// where the SDK looks by itself: environment, shared files, IMDS.
type Options struct {
	// Region, such as eu-west-1; empty for the one that the SDK finds.
	Region string
	// Program is the name in the user agent of calls, such as "remuda-controld".
	Program string
	// Calls counts every request that is sent; nil for no counting.
	Calls *Calls
	// Clock notes the time of each answer; nil for no notes.
	Clock *Clock
	// Retryer is how often a call is tried; nil: each client has a NewRetryer(RetryOptions{}), so that one
	// service that is down does not use up the budget of the others.
	Retryer sdk.Retryer
}

// Load sets up the SDK. Endpoints come from the SDK's own variables (AWS_ENDPOINT_URL and
// AWS_ENDPOINT_URL_<SERVICE>), so that every emulator can stand in for AWS. No call is made, so missing
// credentials show with the first one.
func Load(ctx context.Context, o Options) (sdk.Config, error) {
	retryer := func() sdk.Retryer { return o.Retryer }
	if o.Retryer == nil {
		retryer = func() sdk.Retryer { return NewRetryer(RetryOptions{}) }
	}
	metadata, err := Metadata(o.Calls)
	if err != nil {
		return sdk.Config{}, err
	}
	with := []func(*config.LoadOptions) error{
		config.WithEC2RoleCredentialOptions(func(o *ec2rolecreds.Options) { o.Client = metadata }),
		config.WithHTTPClient(httpClient()),
		config.WithRetryer(retryer),
		config.WithLogger(logging.Nop{}), // it would write to stderr
	}
	if o.Region != "" {
		with = append(with, config.WithRegion(o.Region))
	}
	if o.Program != "" {
		with = append(with, config.WithAppID(o.Program))
	}
	var watch []func(*middleware.Stack) error
	if o.Calls != nil {
		watch = append(watch, o.Calls.count, o.Calls.measure)
	}
	if o.Clock != nil {
		watch = append(watch, o.Clock.watch)
	}
	with = append(with, config.WithAPIOptions(watch))
	c, err := config.LoadDefaultConfig(ctx, with...)
	if err != nil {
		return sdk.Config{}, fmt.Errorf("set up the AWS SDK: %w", err)
	}
	if !regionName.MatchString(c.Region) {
		return sdk.Config{}, &RegionError{Region: c.Region}
	}
	c.Credentials = &credentials{CredentialsProvider: c.Credentials}
	return c, nil
}

// regionName is what can be part of the name of an endpoint. With anything else
// each call would fail for a reason that looks as if it may pass.
var regionName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`)

// RegionError says that nothing told the region, or something that is none.
type RegionError struct{ Region string }

func (e *RegionError) Error() string {
	if e.Region == "" {
		return "set up the AWS SDK: no region: write it in the configuration or set AWS_REGION"
	}
	return fmt.Sprintf("set up the AWS SDK: %q is no region: write one such as eu-west-1 in the configuration or AWS_REGION", e.Region)
}

func httpClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTimeout(tryTimeout).
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = connections, connections
		})
}

// credentials makes an error of its provider known by its type.
type credentials struct {
	sdk.CredentialsProvider
	given atomic.Bool // at least once
}

func (p *credentials) Retrieve(ctx context.Context) (sdk.Credentials, error) {
	c, err := p.CredentialsProvider.Retrieve(ctx)
	switch {
	case err == nil:
		p.given.Store(true)
	case ctx.Err() == nil:
		err = &CredentialsError{Err: err, Before: p.given.Load()}
	}
	return c, err
}

// CredentialsError says that there are no credentials to sign a call with.
type CredentialsError struct {
	Err error
	// Before says that this process had credentials earlier. Then their source does
	// not answer at the moment; otherwise none is configured.
	Before bool
}

func (e *CredentialsError) Error() string { return "no AWS credentials: " + e.Err.Error() }

// Unwrap returns what the places where credentials may be have said.
func (e *CredentialsError) Unwrap() error { return e.Err }

func (e *CredentialsError) class() Class {
	if e.Before {
		return Retry
	}
	return Expired
}

// Metadata returns a client of this machine's instance metadata service. It uses only version 2: with version
// 1, an attacker who makes a program on the machine fetch an address gets the machine's credentials. It is never asked through
// a proxy, which would answer for another machine, or not at all. Its endpoint comes from the SDK's own variables. Calls
// counts its requests as "imds:…", apart from all others, since they cost nothing; it may be nil.
func Metadata(calls *Calls) (*imds.Client, error) {
	env, err := config.NewEnvConfig()
	if err != nil {
		return nil, fmt.Errorf("set up instance metadata: %w", err)
	}
	return imds.NewFromConfig(sdk.Config{ConfigSources: []any{env}}, func(o *imds.Options) {
		o.EnableFallback = sdk.FalseTernary
		o.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.Proxy = nil })
		o.Retryer, o.DisableDefaultMaxBackoff = NewRetryer(RetryOptions{}), true
		if calls != nil {
			o.APIOptions = append(o.APIOptions, nameMetadata, calls.count)
		}
	}), nil
}

// nameMetadata tells service and operation as all other clients do by themselves.
func nameMetadata(stack *middleware.Stack) error {
	return stack.Initialize.Add(&awsmiddleware.RegisterServiceMetadata{
		ServiceID: imds.ServiceID, OperationName: stack.ID(),
	}, middleware.Before)
}
