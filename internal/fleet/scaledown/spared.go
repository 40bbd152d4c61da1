package scaledown

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// spared says why an idle host is left alone anyway, or "".
func (sc *Scaler) spared(ctx context.Context, r lifecycle.Record) (why lifecycle.Reason, err error) {
	if sc.WantedIdle(r) {
		return poolMinimum(sc.JobPools[r.Pool].Minimum), nil
	}
	q, err := sc.Hosts.RequestOf(ctx, r, map[string]*lifecycle.Request{})
	if err != nil {
		return why, err
	}
	if q != nil && !q.Settled() {
		return requestOpen(*q), nil
	}
	jobs, err := sc.Hosts.WaitingJobs(ctx, r)
	if err != nil || len(jobs) == 0 {
		return why, err
	}
	return jobWaits(jobs[0]), nil
}

// WantedIdle reports whether the host belongs to a job pool that has a minimum of idle hosts itself.
func (sc *Scaler) WantedIdle(r lifecycle.Record) bool {
	return r.JobsOf != "" && sc.JobPools[r.Pool].Minimum > 0
}

// starting says why a host that GitHub does not list is left alone: it has time left to come
// up, and its request waits for it. "" if it is not starting or no request waits. A host that
// does not come up in time is ended by its threshold.
func (sc *Scaler) starting(ctx context.Context, r lifecycle.Record, now time.Time) (why lifecycle.Reason, err error) {
	if r.State != lifecycle.StateCreated && r.State != lifecycle.StateClaimed || !now.Before(r.Threshold) {
		return why, nil
	}
	q, err := sc.Hosts.RequestOf(ctx, r, map[string]*lifecycle.Request{})
	if err != nil || q == nil || q.Settled() {
		return why, err
	}
	return requestAwaits(*q, r), nil
}

// leftAlone says why the sweep leaves a host alone for which the policy has an action, or "".
func (sc *Scaler) leftAlone(ctx context.Context, r lifecycle.Record, v policy.HostVerdict, hold lifecycle.FleetHold, now time.Time) (why lifecycle.Reason, err error) {
	if heldBack(v.Action) && hold.InForce(now) {
		return underHold(hold, v), nil
	}
	switch v.Action {
	case policy.ActionDeregisterAndTerminate:
		return sc.spared(ctx, r)
	case lifecycle.ActionTerminate, lifecycle.ActionMarkOrphan:
		return sc.starting(ctx, r, now)
	}
	return why, nil
}

// heldBack reports whether the fleet's hold forbids the action: an end, or a mark that leads to one.
func heldBack(a lifecycle.Action) bool {
	switch a {
	case policy.ActionDeregisterAndTerminate, lifecycle.ActionTerminate, lifecycle.ActionMarkIdle, lifecycle.ActionMarkOrphan:
		return true
	}
	return false
}
