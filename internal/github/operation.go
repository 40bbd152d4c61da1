package github

import (
	"context"
	"errors"
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
	// as tells who makes the call; nil: who may call about the place, and has the most calls left.
	as chooser
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

// fetch makes a call and returns what it answers.
func fetch[T any](ctx context.Context, c *Client, op operation, ask func(context.Context, *api.Client) (T, *api.Response, error)) (T, error) {
	var answer T
	err := c.do(ctx, op, func(ctx context.Context, a *api.Client) (response *api.Response, err error) {
		answer, response, err = ask(ctx, a)
		return response, err
	})
	return answer, err
}

// maxPerPage is the most that GitHub puts on a page.
const maxPerPage = 100

// asker asks for a page of a listing.
type asker[T any] func(context.Context, *api.Client, api.ListOptions) (*T, *api.Response, error)

// listPage reads one page and tells the number of the next; 0: it was the last.
func listPage[T any](ctx context.Context, c *Client, op operation, page api.ListOptions, ask asker[T]) (list *T, next int, err error) {
	list, err = fetch(ctx, c, op, func(ctx context.Context, a *api.Client) (*T, *api.Response, error) {
		list, response, err := ask(ctx, a, page)
		if next = 0; response != nil && response.NextPage > page.Page {
			next = response.NextPage // a page that leads back would be read for ever
		}
		return list, response, err
	})
	if err == nil && list == nil {
		err = unavailable(op, 0, errors.New("the answer is empty"))
	}
	return list, next, err
}

// listPages reads a listing, of most pages at the most, until take has enough.
func listPages[T any](ctx context.Context, c *Client, op operation, most int, ask asker[T], take func(*T) (enough bool)) error {
	for page := 1; page != 0 && most > 0; most-- {
		list, next, err := listPage(ctx, c, op, api.ListOptions{Page: page, PerPage: maxPerPage}, ask)
		if err != nil || take(list) {
			return err
		}
		page = next
	}
	return nil
}
