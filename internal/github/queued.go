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
		options := api.ListWorkflowRunsOptions{Status: status, ListOptions: api.ListOptions{Page: 1, PerPage: maxPerPage}}
		for range maxRunPages {
			var list *api.WorkflowRuns
			var next int
			err := c.do(ctx, op, func(ctx context.Context, a *api.Client) (response *api.Response, err error) {
				list, response, err = a.Actions.ListRepositoryWorkflowRuns(ctx, op.at.owner, op.at.name, &options)
				next = nextPage(response, options.Page)
				return response, err
			})
			switch {
			case err != nil:
				return nil, err
			case list == nil:
				return nil, unavailable(op, 0, errors.New("the answer is empty"))
			}
			for _, r := range list.WorkflowRuns {
				ids = append(ids, r.GetID())
			}
			if options.Page = next; next == 0 {
				break
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil // a run may have begun between the two
}

// jobsOf lists the jobs of a run's newest attempt; none if the run is gone.
func (c *Client) jobsOf(ctx context.Context, op operation, run int64) ([]*api.WorkflowJob, error) {
	op.what = fmt.Sprintf("list jobs of run %d", run)
	options := api.ListWorkflowJobsOptions{Filter: "latest", ListOptions: api.ListOptions{Page: 1, PerPage: maxPerPage}}
	var jobs []*api.WorkflowJob
	for range maxJobPages {
		var list *api.Jobs
		var next int
		err := c.do(ctx, op, func(ctx context.Context, a *api.Client) (response *api.Response, err error) {
			list, response, err = a.Actions.ListWorkflowJobs(ctx, op.at.owner, op.at.name, run, &options)
			next = nextPage(response, options.Page)
			return response, err
		})
		switch {
		case err != nil:
			if err = c.missing(ctx, op, err); errors.Is(err, lifecycle.ErrNotFound) {
				return nil, nil // deleted since it was listed
			}
			return nil, err
		case list == nil:
			return nil, unavailable(op, 0, errors.New("the answer is empty"))
		}
		jobs = append(jobs, list.Jobs...)
		if options.Page = next; next == 0 {
			break
		}
	}
	return jobs, nil
}
