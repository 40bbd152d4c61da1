package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

const (
	// sourceAge is how long is remembered what a run was started by. It does not change, and the hosts of a run are released together.
	sourceAge = time.Hour
	// branchAge is how long is remembered what a branch is. A person who takes its protection away waits so long for that to count.
	branchAge = time.Minute
)

// RunSource reads what a run was started by, for its release, which asks once: lifecycle.ErrNotFound if the repository has none of that
// id. It needs actions:read.
func (c *Client) RunSource(ctx context.Context, repository, runID string) (cache.Source, error) {
	return c.sources.get(ctx, lifecycle.RunKey(lifecycle.Canonical(repository), runID), func(ctx context.Context) (cache.Source, time.Time, error) {
		run, err := c.run(ctx, repository, runID, registering)
		return cache.Source{
			Event: run.GetEvent(), Branch: run.GetHeadBranch(), SHA: run.GetHeadSHA(),
			RepositoryID: run.GetRepository().GetID(), HeadRepositoryID: run.GetHeadRepository().GetID(),
		}, time.Now().Add(sourceAge), err
	})
}

// Branch reads whether a branch is protected and has a commit: lifecycle.ErrNotFound for a branch that there is not. It needs contents:read.
func (c *Client) Branch(ctx context.Context, repository, name, sha string) (cache.Branch, error) {
	key := lifecycle.Canonical(repository) + " " + sha + " " + name
	return c.branches.get(ctx, key, func(ctx context.Context) (cache.Branch, time.Time, error) {
		b, err := c.branch(ctx, repository, name, sha)
		return b, time.Now().Add(branchAge), err
	})
}

// branch asks for the branch, and compares only if the commit is not its last one.
func (c *Client) branch(ctx context.Context, repository, name, sha string) (cache.Branch, error) {
	op, err := c.aboutRuns("get a branch", repository, registering)
	if err != nil {
		return cache.Branch{}, err
	}
	// The library's own GetBranch hides the status of an answer in a text.
	path := fmt.Sprintf("repos/%s/%s/branches/%s", op.at.owner, op.at.name, url.PathEscape(name))
	found, err := fetch(ctx, c, op, func(ctx context.Context, a *api.Client) (*api.Branch, *api.Response, error) {
		request, err := a.NewRequest(http.MethodGet, path, nil)
		if err != nil {
			return nil, nil, err
		}
		b := &api.Branch{}
		response, err := a.Do(ctx, request, b)
		return b, response, err
	})
	switch {
	case hasStatus(err, http.StatusNotFound):
		return cache.Branch{}, fmt.Errorf("%s: %w", op, lifecycle.ErrNotFound)
	case err != nil:
		return cache.Branch{}, err
	case found.GetName() != name || found.GetCommit().GetSHA() == "":
		return cache.Branch{}, unavailable(op, 0, errors.New("the answer is of another branch"))
	}
	is := cache.Branch{Protected: found.GetProtected(), Has: found.GetCommit().GetSHA() == sha}
	if is.Has {
		return is, nil
	}
	op.what = "compare a commit with its branch"
	compared, err := fetch(ctx, c, op, func(ctx context.Context, a *api.Client) (*api.CommitsComparison, *api.Response, error) {
		return a.Repositories.CompareCommits(ctx, op.at.owner, op.at.name, found.GetCommit().GetSHA(), sha, &api.ListOptions{PerPage: 1})
	})
	switch {
	case hasStatus(err, http.StatusNotFound): // GitHub does not have the commit any more, or the two have nothing in common
		return is, nil
	case err != nil:
		return cache.Branch{}, err
	}
	is.Has = compared.GetStatus() == "behind" || compared.GetStatus() == "identical"
	return is, nil
}
