package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
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
	var found *api.RunnerGroup
	err := listPages(ctx, c, op, maxGroupPages,
		func(ctx context.Context, a *api.Client, page api.ListOptions) (*api.RunnerGroups, *api.Response, error) {
			return a.Actions.ListOrganizationRunnerGroups(ctx, at.owner, &api.ListOrgRunnerGroupOptions{ListOptions: page})
		},
		func(list *api.RunnerGroups) bool {
			i := slices.IndexFunc(list.RunnerGroups, func(g *api.RunnerGroup) bool { return g.GetName() == c.runnerGroup })
			if i >= 0 {
				found = list.RunnerGroups[i]
			}
			return i >= 0
		})
	if err != nil || found != nil {
		return found.GetID(), err
	}
	return 0, fmt.Errorf("%s: %w", op, &StatusError{Status: http.StatusNotFound,
		Hint: "the organization has no runner group of that name, or it is not visible to the credentials"})
}
