package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// spared says why an idle host is left alone all the same, or "".
func (f *Fleet) spared(ctx context.Context, r lifecycle.Record) (string, error) {
	if f.wantedIdle(r) {
		return fmt.Sprintf("idle, as its job pool wants it: %d hosts or more wait for a job there", f.jobs.Pools[r.Pool].Minimum), nil
	}
	q, err := f.requestOf(ctx, r, map[string]*lifecycle.Request{})
	if err != nil {
		return "", err
	}
	if q != nil && !q.Settled() {
		return fmt.Sprintf("idle, but its request %s does not have all its hosts yet", q.RequestID), nil
	}
	jobs, err := f.waitingFor(ctx, r)
	if err != nil || len(jobs) == 0 {
		return "", err
	}
	return fmt.Sprintf("idle, but job %d of its run waits for a host", jobs[0].ID), nil
}

// wantedIdle: the host is of a job pool that has a minimum of idle hosts itself.
func (f *Fleet) wantedIdle(r lifecycle.Record) bool {
	return f.jobs != nil && r.JobsOf != "" && f.jobs.Pools[r.Pool].Minimum > 0
}

// starting says why a host that GitHub does not list is left alone: it has time
// left to come up, and its request waits for it. "": it is not, or nobody does.
// Who does not come up in time is ended by that time.
func (f *Fleet) starting(ctx context.Context, r lifecycle.Record, now time.Time) (string, error) {
	if r.State != lifecycle.StateCreated && r.State != lifecycle.StateClaimed || !now.Before(r.Threshold) {
		return "", nil
	}
	q, err := f.requestOf(ctx, r, map[string]*lifecycle.Request{})
	if err != nil || q == nil || q.Settled() {
		return "", err
	}
	return fmt.Sprintf("starting: GitHub does not list it yet, and its request %s waits for it until %s", q.RequestID, clock(r.Threshold)), nil
}

// leftAlone says why the sweep leaves a host alone for which the policy has an
// action, or "".
func (f *Fleet) leftAlone(ctx context.Context, r lifecycle.Record, v policy.HostVerdict, hold lifecycle.FleetHold, now time.Time) (string, error) {
	if heldBack(v.Action) && hold.InForce(now) {
		return underHold(hold, v), nil
	}
	switch v.Action {
	case policy.ActionDeregisterAndTerminate:
		return f.spared(ctx, r)
	case lifecycle.ActionTerminate, lifecycle.ActionMarkOrphan:
		return f.starting(ctx, r, now)
	}
	return "", nil
}

// heldBack reports whether the fleet's hold forbids the action: an end, or a mark
// that leads to one.
func heldBack(a lifecycle.Action) bool {
	switch a {
	case policy.ActionDeregisterAndTerminate, lifecycle.ActionTerminate, lifecycle.ActionMarkIdle, lifecycle.ActionMarkOrphan:
		return true
	}
	return false
}

// underHold is what becomes of a verdict while the fleet is held.
func underHold(hold lifecycle.FleetHold, v policy.HostVerdict) string {
	done := "ended"
	if v.Action == lifecycle.ActionMarkIdle || v.Action == lifecycle.ActionMarkOrphan {
		done = "marked"
	}
	return fmt.Sprintf("%s; else it would be %s: %s", hold, done, v.Reason)
}

// waitingFor are the jobs that wait for hosts of the run of a host, and could run
// on it.
func (f *Fleet) waitingFor(ctx context.Context, r lifecycle.Record) ([]lifecycle.Job, error) {
	if f.jobs == nil || r.RunID == "" || r.JobsOf != "" {
		return nil, nil
	}
	jobs, err := f.jobs.Store.OpenJobsOfRun(ctx, r.Repository, r.RunID)
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
