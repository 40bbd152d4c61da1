package instrument

import (
	"context"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle/checkrun"
)

// GitHubChecks are check runs whose calls are counted.
type GitHubChecks struct {
	fleet.GitHubChecks
	Calls
}

// RunHead implements fleet.GitHubChecks.
func (g GitHubChecks) RunHead(ctx context.Context, repository, runID string) (_ checkrun.Head, err error) {
	defer g.count("run_head", &err)
	return g.GitHubChecks.RunHead(ctx, repository, runID)
}

// FindCheck implements fleet.GitHubChecks.
func (g GitHubChecks) FindCheck(ctx context.Context, repository, runID string, h checkrun.Head, p checkrun.Purpose) (_ checkrun.Found, err error) {
	defer g.count("find_check", &err)
	return g.GitHubChecks.FindCheck(ctx, repository, runID, h, p)
}

// CreateCheck implements fleet.GitHubChecks.
func (g GitHubChecks) CreateCheck(ctx context.Context, repository, runID string, h checkrun.Head, p checkrun.Purpose, c checkrun.Content) (_ int64, err error) {
	defer g.count("create_check", &err)
	return g.GitHubChecks.CreateCheck(ctx, repository, runID, h, p, c)
}

// UpdateCheck implements fleet.GitHubChecks.
func (g GitHubChecks) UpdateCheck(ctx context.Context, repository string, id int64, c checkrun.Content) (err error) {
	defer g.count("update_check", &err)
	return g.GitHubChecks.UpdateCheck(ctx, repository, id, c)
}
