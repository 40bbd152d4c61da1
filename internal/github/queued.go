package github

import (
	"context"
	"errors"
	"fmt"
	"slices"

	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

const (
	// maxRunPages bounds how many pages of runs are read, of each status.
	maxRunPages = 5
	// maxRuns bounds of how many runs the jobs are listed: each costs a call.
	// The oldest are taken, whose jobs have waited longest.
	maxRuns = 200
	// maxJobPages bounds how many pages of a run's jobs are read: a matrix has 256 jobs at most.
	maxJobPages = 10
)

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
	for _, status := range []string{lifecycle.StatusQueued, lifecycle.StatusInProgress} {
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
	return slices.Compact(ids), nil // a run may have begun between the two
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
