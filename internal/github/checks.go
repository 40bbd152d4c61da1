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

// RunHead is the head commit of a run, and the name of its workflow: lifecycle.ErrNotFound if there is no such run.
func (c *Client) RunHead(ctx context.Context, repository, runID string) (checkrun.Head, error) {
	run, err := c.run(ctx, repository, runID, housekeeping)
	return checkrun.Head{SHA: run.GetHeadSHA(), Workflow: run.GetName()}, err
}

// FindCheck finds the newest check run that was made for a run and a purpose: lifecycle.ErrNotFound. Those of other Apps do not count: GitHub lets only the
// App that made a check run change it.
func (c *Client) FindCheck(ctx context.Context, repository, runID string, h checkrun.Head, p checkrun.Purpose) (checkrun.Found, error) {
	op, err := c.aboutChecks("look for check runs of run "+runID, repository, reads)
	if err != nil {
		return checkrun.Found{}, err
	}
	options := &api.ListCheckRunsOptions{CheckName: api.String(checkName(h, p)), Filter: api.String("all"), ListOptions: api.ListOptions{PerPage: 100}}
	if len(c.apps) > 0 && c.apps[0].id != 0 {
		options.AppID = &c.apps[0].id
	}
	list, err := fetch(ctx, c, op, func(ctx context.Context, a *api.Client) (*api.ListCheckRunsResults, *api.Response, error) {
		return a.Checks.ListCheckRunsForRef(ctx, op.at.owner, op.at.name, h.SHA, options)
	})
	if err != nil {
		return checkrun.Found{}, orNotFound(op, err)
	}
	for _, check := range list.CheckRuns {
		if check.GetExternalID() == externalID(runID, p) {
			return checkrun.Found{ID: check.GetID(), Open: check.GetStatus() != lifecycle.StatusCompleted}, nil
		}
	}
	return checkrun.Found{}, fmt.Errorf("%s: %w", op, lifecycle.ErrNotFound)
}

// CreateCheck makes a check run (REST API, "Create a check run"; it takes an App with checks: write).
func (c *Client) CreateCheck(ctx context.Context, repository, runID string, h checkrun.Head, p checkrun.Purpose, of checkrun.Content) (int64, error) {
	op, err := c.aboutChecks("make a check run of run "+runID, repository, writes)
	if err != nil {
		return 0, err
	}
	made, err := fetch(ctx, c, op, func(ctx context.Context, a *api.Client) (*api.CheckRun, *api.Response, error) {
		return a.Checks.CreateCheckRun(ctx, op.at.owner, op.at.name, api.CreateCheckRunOptions{
			Name: checkName(h, p), HeadSHA: h.SHA, ExternalID: api.String(externalID(runID, p)), DetailsURL: api.String(c.runURL(repository, runID)),
			Status: checkStatus(of), Conclusion: checkConclusion(of), Output: checkOutput(of),
		})
	})
	return made.GetID(), orNotFound(op, err)
}

// UpdateCheck changes what a check run shows, and completes it if there is a conclusion. Its name stays.
func (c *Client) UpdateCheck(ctx context.Context, repository string, id int64, of checkrun.Content) error {
	op, err := c.aboutChecks("change check run "+strconv.FormatInt(id, 10), repository, writes)
	if err != nil {
		return err
	}
	body := struct {
		Status     *string             `json:"status"`
		Conclusion *string             `json:"conclusion,omitempty"`
		Output     *api.CheckRunOutput `json:"output"`
	}{checkStatus(of), checkConclusion(of), checkOutput(of)}
	return orNotFound(op, c.do(ctx, op, func(ctx context.Context, a *api.Client) (*api.Response, error) {
		// go-github's own call cannot leave out the name.
		request, err := a.NewRequest(http.MethodPatch, fmt.Sprintf("repos/%s/%s/check-runs/%d", op.at.owner, op.at.name, id), body)
		if err != nil {
			return nil, err
		}
		return a.Do(ctx, request, nil)
	}))
}

// aboutChecks is an operation of the first App: GitHub lets only the App that made a check run change it.
func (c *Client) aboutChecks(what, repository string, p pace) (operation, error) {
	op, err := c.aboutRuns(what, repository, housekeeping)
	op.pace, op.needs = p, "checks: write"
	if len(c.apps) > 0 {
		op.as = func(ctx context.Context) (*credential, error) { return c.apps[0].on(ctx, op.target()) }
	}
	return op, err
}

// maxCheckName is how many characters of a workflow's name are shown.
const maxCheckName = 100

// checkName differs by workflow: GitHub shows the newest check run of a name on a commit, and a commit may have several runs.
func checkName(h checkrun.Head, p checkrun.Purpose) string {
	name := []rune(h.Workflow)
	name = name[:min(len(name), maxCheckName)]
	if p == checkrun.Refusal {
		return "Remuda: no host for " + string(name)
	}
	return "Remuda: " + string(name) + " waits for hosts"
}

// externalID says for what a check run was made.
func externalID(runID string, p checkrun.Purpose) string { return string(p) + "/" + runID }

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
