package firstcontact

import (
	"context"
	"errors"
	"fmt"
	"net/url"
)

// reachError is a call without an answer.
type reachError struct {
	at  string
	err error
}

func (e *reachError) Error() string {
	return fmt.Sprintf("cannot reach GitHub at %s: %v: check the address, the network and the proxy", e.at, e.err)
}

func (e *reachError) Unwrap() error { return e.err }

// unreached is the error of a call to an address that got no answer. The end of ctx, which is that of the run, says nothing of GitHub.
func unreached(ctx context.Context, at string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	if u := new(url.Error); errors.As(err, &u) {
		err = u.Err // the rest of it names the call
	}
	return &reachError{at, err}
}

func isUnreached(err error) bool {
	var e *reachError
	return errors.As(err, &e)
}
