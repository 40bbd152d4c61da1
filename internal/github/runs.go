package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/line"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// workflowRun is a run as GitHub describes it, with the fields that the client library leaves out.
type workflowRun struct {
	api.WorkflowRun
	Path string `json:"path"`
}

// WorkflowRun reads a run as it is now: lifecycle.ErrNotFound if the repository has none of that id. Asking
// again costs nothing of the rate limit while nothing has changed.
func (c *Client) WorkflowRun(ctx context.Context, repository, runID string) (lifecycle.WorkflowRun, error) {
	run, err := c.run(ctx, repository, runID, registering)
	if err != nil {
		return lifecycle.WorkflowRun{}, err
	}
	return run.ours(repository), nil
}

func (c *Client) run(ctx context.Context, repository, runID string, l lane) (workflowRun, error) {
	op, err := c.aboutRuns("get run "+runID, repository, l)
	if err != nil {
		return workflowRun{}, err
	}
	id, err := strconv.ParseInt(runID, 10, 64)
	if err != nil || id <= 0 {
		return workflowRun{}, fmt.Errorf("%s: it is no number: %w", op, lifecycle.ErrNotFound)
	}
	path := fmt.Sprintf("repos/%s/%s/actions/runs/%d", op.at.owner, op.at.name, id)
	run, err := fetch(ctx, c, op, func(ctx context.Context, a *api.Client) (run workflowRun, _ *api.Response, err error) {
		request, err := a.NewRequest(http.MethodGet, path, nil)
		if err != nil {
			return run, nil, err
		}
		response, err := a.Do(ctx, request, &run)
		return run, response, err
	})
	switch {
	case err != nil:
		return workflowRun{}, c.missing(ctx, op, err)
	case run.GetID() != id:
		return workflowRun{}, unavailable(op, 0, errors.New("the answer is of another run"))
	}
	return run, nil
}

func (r *workflowRun) ours(repository string) lifecycle.WorkflowRun {
	return lifecycle.WorkflowRun{
		RunID: strconv.FormatInt(r.GetID(), 10), RunAttempt: r.GetRunAttempt(), Repository: repository,
		RepositoryID: r.GetRepository().GetID(), OwnerID: r.GetRepository().GetOwner().GetID(),
		HeadRepositoryID: r.GetHeadRepository().GetID(),
		Event:            r.GetEvent(), HeadBranch: r.GetHeadBranch(), Path: r.Path,
		Status: r.GetStatus(), Conclusion: r.GetConclusion(),
	}
}

// RerunFailedJobs starts those jobs of a completed run again that did not succeed, and those that need them.
// A run that GitHub does not start again, since it runs, is too old or is gone, is lifecycle.ErrRefused.
func (c *Client) RerunFailedJobs(ctx context.Context, repository, runID string) error {
	op, err := c.aboutRuns("start the failed jobs of run "+runID+" again", repository, registering)
	op.pace = writes
	if err != nil {
		return err
	}
	id, err := strconv.ParseInt(runID, 10, 64)
	if err != nil || id <= 0 {
		return fmt.Errorf("%s: %w: it is no number", op, lifecycle.ErrRefused)
	}
	return c.do(ctx, op, func(ctx context.Context, a *api.Client) (*api.Response, error) {
		return a.Actions.RerunFailedJobsByID(ctx, op.at.owner, op.at.name, id)
	})
}

// WorkflowJob reads a job as it is now: lifecycle.ErrNotFound if the repository has none of that id.
func (c *Client) WorkflowJob(ctx context.Context, repository string, id int64) (lifecycle.WorkflowJob, error) {
	op, err := c.aboutRuns("get job "+strconv.FormatInt(id, 10), repository, housekeeping)
	if err != nil {
		return lifecycle.WorkflowJob{}, err
	}
	job, err := fetch(ctx, c, op, func(ctx context.Context, a *api.Client) (*api.WorkflowJob, *api.Response, error) {
		return a.Actions.GetWorkflowJobByID(ctx, op.at.owner, op.at.name, id)
	})
	switch {
	case err != nil:
		return lifecycle.WorkflowJob{}, c.missing(ctx, op, err)
	case job.GetID() != id:
		return lifecycle.WorkflowJob{}, unavailable(op, 0, errors.New("the answer is of another job"))
	}
	return ourJob(job, repository), nil
}

// runURL is where people see a run.
func (c *Client) runURL(repository, runID string) string {
	return c.web + "/" + repository + "/actions/runs/" + runID
}

// JobURL is where people see a job.
func (c *Client) JobURL(repository, runID string, id int64) string {
	return fmt.Sprintf("%s/job/%d", c.runURL(repository, runID), id)
}

func ourJob(j *api.WorkflowJob, repository string) lifecycle.WorkflowJob {
	return lifecycle.WorkflowJob{
		ID: j.GetID(), Repository: repository,
		RunID: strconv.FormatInt(j.GetRunID(), 10), RunAttempt: int(j.GetRunAttempt()),
		Name: line.First(j.GetName()), Workflow: meter.WorkflowName(j.GetWorkflowName()), Labels: j.Labels, Status: j.GetStatus(), Conclusion: j.GetConclusion(), RunnerName: j.GetRunnerName(), RunnerID: j.GetRunnerID(),
		QueuedAt: j.GetCreatedAt().UTC(), StartedAt: j.GetStartedAt().UTC(), CompletedAt: j.GetCompletedAt().UTC(),
	}
}

// missing makes a 404 lifecycle.ErrNotFound, if the repository's runs can be seen at all: GitHub answers the
// same to who may not see them, and what cannot be seen is not gone.
func (c *Client) missing(ctx context.Context, op operation, err error) error {
	if !hasStatus(err, http.StatusNotFound) {
		return err
	}
	look := op
	look.what = "see the runs"
	// Many runs that are missing at once share a look. It is not remembered: what is visible may change.
	if _, err := c.looks.get(ctx, fmt.Sprintf("%d %s", op.lane, op.target().key()), func(ctx context.Context) (struct{}, time.Time, error) {
		return struct{}{}, time.Time{}, c.do(ctx, look, func(ctx context.Context, a *api.Client) (*api.Response, error) {
			_, response, err := a.Actions.ListRepositoryWorkflowRuns(ctx, op.at.owner, op.at.name,
				&api.ListWorkflowRunsOptions{ListOptions: api.ListOptions{PerPage: 1}})
			return response, err
		})
	}); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", op, lifecycle.ErrNotFound)
}

const (
	// maxRunPages bounds how many pages of runs are read, of each status.
	maxRunPages = 5
	// maxRuns bounds of how many runs the jobs are listed: each costs a call.
	// The oldest are taken, whose jobs have waited longest.
	maxRuns = 200
	// maxJobPages bounds how many pages of a run's jobs are read: a matrix has 256 jobs at most.
	maxJobPages = 10
)

// underWay are the statuses of runs that may have queued jobs. Each is listed by a call of its own. A run
// is waiting while one of its jobs waits for an approval, and pending while a job waits for its concurrency group,
// whatever its other jobs do. It is requested until its first job is queued.
var underWay = []string{lifecycle.StatusQueued, lifecycle.StatusInProgress, "waiting", "pending", "requested"}

// QueuedJobs lists the jobs of a repository that wait for a runner, the oldest run's first. It is what is
// left of a webhook that was lost, where GitHub cannot be asked for the webhook itself.
func (c *Client) QueuedJobs(ctx context.Context, repository string) ([]lifecycle.WorkflowJob, error) {
	op, err := c.aboutRuns("list queued jobs", repository, housekeeping)
	if err != nil {
		return nil, err
	}
	runs, err := c.runsUnderWay(ctx, op)
	if err != nil {
		return nil, err
	}
	if len(runs) > maxRuns {
		c.log.Warn("not all runs are searched for queued jobs", logkey.Repository, repository, logkey.Count, len(runs), logkey.Searched, maxRuns)
		runs = runs[:maxRuns]
	}
	var queued []lifecycle.WorkflowJob
	for _, id := range runs {
		jobs, err := c.jobsOf(ctx, op, id)
		if err != nil {
			return nil, err
		}
		for _, j := range jobs {
			if j.GetStatus() == lifecycle.StatusQueued {
				queued = append(queued, ourJob(j, repository))
			}
		}
	}
	return queued, nil
}

// runsUnderWay lists the ids of the runs that may have queued jobs, the oldest
// first: a later run has a greater id.
func (c *Client) runsUnderWay(ctx context.Context, op operation) ([]int64, error) {
	var ids []int64
	for _, status := range underWay {
		err := listPages(ctx, c, op, maxRunPages,
			func(ctx context.Context, a *api.Client, page api.ListOptions) (*api.WorkflowRuns, *api.Response, error) {
				options := api.ListWorkflowRunsOptions{Status: status, ListOptions: page}
				return a.Actions.ListRepositoryWorkflowRuns(ctx, op.at.owner, op.at.name, &options)
			},
			func(list *api.WorkflowRuns) bool {
				for _, r := range list.WorkflowRuns {
					ids = append(ids, r.GetID())
				}
				return false
			})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil // a run may have got another status between two listings
}

// jobsOf lists the jobs of a run's newest attempt; none if the run is gone.
func (c *Client) jobsOf(ctx context.Context, op operation, run int64) ([]*api.WorkflowJob, error) {
	op.what = fmt.Sprintf("list jobs of run %d", run)
	var jobs []*api.WorkflowJob
	err := listPages(ctx, c, op, maxJobPages,
		func(ctx context.Context, a *api.Client, page api.ListOptions) (*api.Jobs, *api.Response, error) {
			options := api.ListWorkflowJobsOptions{Filter: "latest", ListOptions: page}
			return a.Actions.ListWorkflowJobs(ctx, op.at.owner, op.at.name, run, &options)
		},
		func(list *api.Jobs) bool {
			jobs = append(jobs, list.Jobs...)
			return false
		})
	if err == nil {
		return jobs, nil
	}
	if err = c.missing(ctx, op, err); errors.Is(err, lifecycle.ErrNotFound) {
		return nil, nil // deleted since it was listed
	}
	return nil, err
}
