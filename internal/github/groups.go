package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	api "github.com/google/go-github/v62/github"
)

const (
	// defaultGroup is the id of the group Default, the only one of a repository.
	defaultGroup = 1
	// groupFor is how long a group's id is known; one that is deleted is found out at once, by a refusal.
	groupFor = time.Hour
	// maxGroupPages bounds the listing: an organization has some dozens of groups.
	maxGroupPages = 20
)

// groupID is the id of the configured runner group.
func (c *Client) groupID(ctx context.Context, at place) (int64, error) {
	if c.runnerGroup == "" {
		return defaultGroup, nil
	}
	return c.groups.get(ctx, at.key(), func(ctx context.Context) (int64, time.Time, error) {
		id, err := c.findGroup(ctx, at)
		return id, time.Now().Add(groupFor), err
	})
}

func (c *Client) forgetGroup(at place) { c.groups.forget(at.key()) }

func (c *Client) findGroup(ctx context.Context, at place) (int64, error) {
	op := operation{what: fmt.Sprintf("find runner group %q", c.runnerGroup), at: at, lane: registering}
	options := api.ListOrgRunnerGroupOptions{ListOptions: api.ListOptions{Page: 1, PerPage: maxPerPage}}
	for range maxGroupPages {
		var list *api.RunnerGroups
		var next int
		err := c.do(ctx, op, func(ctx context.Context, a *api.Client) (response *api.Response, err error) {
			list, response, err = a.Actions.ListOrganizationRunnerGroups(ctx, at.owner, &options)
			next = nextPage(response, options.Page)
			return response, err
		})
		switch {
		case err != nil:
			return 0, err
		case list == nil:
			return 0, unavailable(op, 0, errors.New("the answer is empty"))
		}
		for _, g := range list.RunnerGroups {
			if g.GetName() == c.runnerGroup {
				return g.GetID(), nil
			}
		}
		if options.Page = next; next == 0 {
			break
		}
	}
	return 0, fmt.Errorf("%s: %w", op, &StatusError{Status: http.StatusNotFound,
		Hint: "the organisation has no runner group of that name, or it is not visible to the credentials"})
}

// nextPage is the number of the page after the one that was asked for; 0: it
// was the last. A page that leads back would be read for ever.
func nextPage(r *api.Response, page int) int {
	if r == nil || r.NextPage <= page {
		return 0
	}
	return r.NextPage
}
