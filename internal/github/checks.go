package github

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/checkrun"
)

// checkName is the name of our check runs. GitHub shows the newest of a name on a commit.
const checkName = "Remuda"

// CreateCheck makes a check run on the head commit of a workflow run (REST API, "Create a check run"; it takes an App with checks: write). An open one that
// an earlier call made for the run, and whose answer was lost, is changed instead. It is lifecycle.ErrNotFound if the run or its repository is gone.
func (c *Client) CreateCheck(ctx context.Context, repository, runID string, of checkrun.Content) (int64, error) {
	sha, err := c.headOf(ctx, repository, runID)
	if err != nil {
		return 0, err
	}
	id, err := c.openCheck(ctx, repository, runID, sha)
	if err != nil {
		return 0, err
	}
	if id != 0 {
		return id, c.UpdateCheck(ctx, repository, id, of)
	}
	op, err := c.aboutRuns("make a check run of run "+runID, repository, housekeeping)
	op.pace = writes
	if err != nil {
		return 0, err
	}
	made, err := fetch(ctx, c, op, func(ctx context.Context, a *api.Client) (*api.CheckRun, *api.Response, error) {
		return a.Checks.CreateCheckRun(ctx, op.at.owner, op.at.name, api.CreateCheckRunOptions{
			Name: checkName, HeadSHA: sha, ExternalID: api.String(runID), DetailsURL: api.String(c.runPage(repository, runID)),
			Status: checkStatus(of), Conclusion: checkConclusion(of), Output: checkOutput(of),
		})
	})
	return made.GetID(), c.noCheck(op, err)
}

// UpdateCheck changes what a check run shows, and completes it if there is a conclusion.
func (c *Client) UpdateCheck(ctx context.Context, repository string, id int64, of checkrun.Content) error {
	op, err := c.aboutRuns("change check run "+strconv.FormatInt(id, 10), repository, housekeeping)
	op.pace = writes
	if err != nil {
		return err
	}
	return c.noCheck(op, c.do(ctx, op, func(ctx context.Context, a *api.Client) (*api.Response, error) {
		_, response, err := a.Checks.UpdateCheckRun(ctx, op.at.owner, op.at.name, id, api.UpdateCheckRunOptions{
			Name: checkName, Status: checkStatus(of), Conclusion: checkConclusion(of), Output: checkOutput(of),
		})
		return response, err
	}))
}

// noCheck makes ErrNotFound of an answer that a thing is gone.
func (c *Client) noCheck(op operation, err error) error {
	if hasStatus(err, http.StatusNotFound) {
		return fmt.Errorf("%s: %w", op, lifecycle.ErrNotFound)
	}
	return err
}

// headOf is the head commit of a run.
func (c *Client) headOf(ctx context.Context, repository, runID string) (string, error) {
	op, err := c.aboutRuns("get the commit of run "+runID, repository, housekeeping)
	if err != nil {
		return "", err
	}
	id, err := strconv.ParseInt(runID, 10, 64)
	if err != nil || id <= 0 {
		return "", fmt.Errorf("%s: it is no number: %w", op, lifecycle.ErrNotFound)
	}
	run, err := fetch(ctx, c, op, func(ctx context.Context, a *api.Client) (*api.WorkflowRun, *api.Response, error) {
		return a.Actions.GetWorkflowRunByID(ctx, op.at.owner, op.at.name, id)
	})
	return run.GetHeadSHA(), c.noCheck(op, err)
}

// openCheck is the id of an open check run that was made for a run; 0: there is none.
func (c *Client) openCheck(ctx context.Context, repository, runID, sha string) (int64, error) {
	op, err := c.aboutRuns("look for check runs of run "+runID, repository, housekeeping)
	if err != nil {
		return 0, err
	}
	found, err := fetch(ctx, c, op, func(ctx context.Context, a *api.Client) (*api.ListCheckRunsResults, *api.Response, error) {
		return a.Checks.ListCheckRunsForRef(ctx, op.at.owner, op.at.name, sha, &api.ListCheckRunsOptions{
			CheckName: api.String(checkName), Filter: api.String("all"), ListOptions: api.ListOptions{PerPage: 100},
		})
	})
	if err != nil {
		return 0, c.noCheck(op, err)
	}
	for _, check := range found.CheckRuns {
		if check.GetExternalID() == runID && check.GetStatus() != lifecycle.StatusCompleted {
			return check.GetID(), nil
		}
	}
	return 0, nil
}

// runPage is where people look at a run.
func (c *Client) runPage(repository, runID string) string {
	return c.web + "/" + repository + "/actions/runs/" + runID
}

func checkStatus(of checkrun.Content) *string {
	if of.Conclusion != "" {
		return api.String(lifecycle.StatusCompleted)
	}
	return api.String(lifecycle.StatusQueued)
}

func checkConclusion(of checkrun.Content) *string {
	if of.Conclusion == "" {
		return nil
	}
	return &of.Conclusion
}

func checkOutput(of checkrun.Content) *api.CheckRunOutput {
	return &api.CheckRunOutput{Title: &of.Title, Summary: &of.Summary}
}
