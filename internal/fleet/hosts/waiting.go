package hosts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// WaitingJobs are the jobs that wait for hosts of the run of a host, and that it could run.
func (hs *Hosts) WaitingJobs(ctx context.Context, r lifecycle.Record) ([]lifecycle.Job, error) {
	if hs.JobStore == nil || r.RunID == "" || r.JobsOf != "" {
		return nil, nil
	}
	jobs, err := hs.JobStore.OpenJobsOfRun(ctx, r.Repository, r.RunID)
	if err != nil {
		return nil, fmt.Errorf("list jobs of run %s: %w", r.RunID, err)
	}
	return slices.DeleteFunc(jobs, func(j lifecycle.Job) bool { return j.State != lifecycle.JobWaiting || !couldRun(r, j) }), nil
}

// couldRun reports whether a run's host has the labels of a job of the run.
func couldRun(r lifecycle.Record, j lifecycle.Job) bool {
	labels, class, ok := policy.RunLabels(j.Labels, j.RunID)
	if !ok || class != "" && class != r.ResourceClass {
		return false
	}
	return !slices.ContainsFunc(labels, func(label string) bool {
		return !strings.EqualFold(label, "remuda-"+class) &&
			!slices.ContainsFunc(r.Labels, func(has string) bool { return strings.EqualFold(has, label) })
	})
}
