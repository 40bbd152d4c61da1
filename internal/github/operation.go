package github

import (
	"context"
	"fmt"

	api "github.com/google/go-github/v62/github"
)

// lane says who waits for a call. While little is left of a rate limit, only the registering lane goes on.
type lane int

const (
	registering  lane = iota // a run or a host waits for it
	housekeeping             // a sweep does, and will come again
)

// operation is what a call is for.
type operation struct {
	what string // for errors and logs, such as "create a remove token"
	at   place  // zero: the App itself, or public
	lane lane
	pace pace
	// ofRepository says that it is about the repository, even where runners belong to the organization.
	ofRepository bool
}

// about is an operation of runners of a repository's place.
func (c *Client) about(what, repository string, l lane, p pace) (operation, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return operation{}, fmt.Errorf("%s: %w", what, err)
	}
	return operation{what: what, at: place{owner, name, c.organisation}, lane: l, pace: p}, nil
}

// aboutRuns is an operation of runs and jobs, which a repository always has.
func (c *Client) aboutRuns(what, repository string, l lane) (operation, error) {
	op, err := c.about(what, repository, l, reads)
	op.ofRepository = true
	return op, err
}

// target is what the operation is about.
func (o operation) target() place {
	at := o.at
	at.organization = at.organization && !o.ofRepository
	return at
}

func (o operation) String() string {
	if o.at == (place{}) {
		return o.what
	}
	return o.what + " for " + o.target().String()
}

// call is one request to the API.
type call func(ctx context.Context, a *api.Client) (*api.Response, error)

// chooser tells who makes a call.
type chooser func(ctx context.Context) (*credential, error)
