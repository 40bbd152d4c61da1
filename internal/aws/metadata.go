package aws

import (
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/middleware"
)

// Metadata returns a client of this machine's instance metadata service. It uses only version 2: with version
// 1, an attacker who makes a program on the machine fetch an address gets the machine's credentials. Its
// endpoint comes from the SDK's own variables. Calls counts its requests as "imds:…", apart from all others,
// since they cost nothing; it may be nil.
func Metadata(calls *Calls) (*imds.Client, error) {
	env, err := config.NewEnvConfig()
	if err != nil {
		return nil, fmt.Errorf("set up instance metadata: %w", err)
	}
	return imds.NewFromConfig(sdk.Config{ConfigSources: []any{env}}, func(o *imds.Options) {
		o.EnableFallback = sdk.FalseTernary
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
