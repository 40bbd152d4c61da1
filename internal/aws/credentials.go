package aws

import (
	"context"
	"sync/atomic"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
)

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
