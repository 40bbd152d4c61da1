package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Release is a version of actions/runner.
type Release struct {
	Version     string // such as "2.317.0"
	PublishedAt time.Time
}

// RunnerReleases lists the newest releases of actions/runner, 100 at most, the newest first. An Enterprise
// Server may not have the repository: lifecycle.ErrNotFound.
func (c *Client) RunnerReleases(ctx context.Context) ([]Release, error) {
	op := operation{what: "list releases of actions/runner", lane: housekeeping, as: c.publicCredential}
	list, err := fetch(ctx, c, op, func(ctx context.Context, a *api.Client) ([]*api.RepositoryRelease, *api.Response, error) {
		return a.Repositories.ListReleases(ctx, "actions", "runner", &api.ListOptions{PerPage: maxPerPage})
	})
	switch {
	case hasStatus(err, http.StatusNotFound):
		return nil, fmt.Errorf("%s: %w", op, lifecycle.ErrNotFound)
	case err != nil:
		return nil, err
	}
	var releases []Release
	for _, r := range list {
		if !r.GetDraft() && !r.GetPrerelease() {
			releases = append(releases, Release{strings.TrimPrefix(r.GetTagName(), "v"), r.GetPublishedAt().UTC()})
		}
	}
	return releases, nil
}

// publicCredential chooses the credential for public data: the token, or the known
// installation with the most calls left, or else none, which has 60 calls an hour.
func (c *Client) publicCredential(context.Context) (*credential, error) {
	if c.token != nil {
		return c.token, nil
	}
	best, most := c.nobody, -1
	for _, a := range c.apps {
		for _, who := range a.installations() {
			if left := who.budget.left(time.Now()); left > most {
				best, most = who, left
			}
		}
	}
	return best, nil
}
