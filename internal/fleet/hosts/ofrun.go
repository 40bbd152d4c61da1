package hosts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// OfRequest lists the hosts that serve a request, or were taken for it: by the request's own
// list, by the by-run index and by the keys that the caller knows. Hosts that are being
// released from the request are returned apart; hosts that have moved on are left out.
func (hs *Hosts) OfRequest(ctx context.Context, q lifecycle.Request, known []string) (serving, leaving []lifecycle.Record, err error) {
	keys := make([]string, 0, len(q.Taken)+len(known))
	for _, t := range q.Taken {
		keys = append(keys, t.HostKey)
	}
	for _, key := range known {
		if !q.Has(key) {
			keys = append(keys, key)
		}
	}
	records, err := hs.Store.Instances(ctx, keys)
	if err != nil {
		return nil, nil, fmt.Errorf("read hosts of request %s: %w", q.RequestID, err)
	}
	indexed, err := hs.ofRun(ctx, q.Repository, q.RunID)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range indexed {
		if !slices.Contains(keys, r.HostKey) {
			records = append(records, r)
		}
	}
	for _, r := range records {
		switch {
		case Serves(r, q):
			serving = append(serving, r)
		case r.Releasing() && r.RequestID == q.RequestID:
			leaving = append(leaving, r)
		}
	}
	return serving, leaving, nil
}

// Serves reports whether the record is assigned to the request.
func Serves(r lifecycle.Record, q lifecycle.Request) bool {
	return r.RequestID == q.RequestID && r.RunID == q.RunID && r.Repository == q.Repository
}

// ofRun lists the records that name the run, by the index.
func (hs *Hosts) ofRun(ctx context.Context, repository, runID string) ([]lifecycle.Record, error) {
	var records []lifecycle.Record
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
		return hs.Store.InstancesOfRun(ctx, runID, page)
	}
	for r, err := range lifecycle.Pages(lifecycle.PageOf{}, list) {
		if err != nil {
			return nil, fmt.Errorf("list hosts of run %s: %w", runID, err)
		}
		if r.Repository == repository {
			records = append(records, r)
		}
	}
	return records, nil
}

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
