package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/quota"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// requestCleanup brings the hosts of a settled or released request in line with it: the
// unwanted are released, returned or ended, and when nothing is left to do the
// request is due no more. A crash at any point is finished by the due sweep.
type requestCleanup struct {
	env     *Provisioner
	journal *op.Recorder
	q       lifecycle.Request

	next    func(context.Context, time.Time) (op.Progress, error)
	known   []string // keys of hosts that the index may not have yet
	pending []lifecycle.Record
	reports map[string]lifecycle.Report
	// left is when somebody must look at this request again; zero: never.
	left time.Time
	// kept counts the hosts that serve the request still, or finish its jobs.
	kept int
	// coming counts the hosts that an open launch may bring still: its call may be under
	// way, and a listing shows late what it has made.
	coming int
	// limits are those whose accounts still have to be told of that.
	limits []policy.Limit
	// freed are the hosts that were released, returned or ended, on the way or
	// just before.
	freed []lifecycle.Record
}

// Step does one step.
func (t *requestCleanup) Step(ctx context.Context, now time.Time) (op.Progress, error) {
	if t.next == nil {
		t.next = t.load
		if t.q.Launch != nil {
			t.next = t.adopt
		}
	}
	return t.next(ctx, now)
}

// adopt records the machines of a launch that a crash cut short, so that they
// are ended like all others. The call itself is not repeated.
func (t *requestCleanup) adopt(ctx context.Context, now time.Time) (op.Progress, error) {
	machines, err := t.env.Compute.Launched(ctx, *t.q.Launch)
	if err != nil {
		return op.Again, fmt.Errorf("find machines of request %s: %w", t.q.RequestID, err)
	}
	t.awaitLaunch(t.q.Launch.Count-len(machines), now)
	made := machines
	t.next = func(ctx context.Context, now time.Time) (op.Progress, error) {
		if len(machines) == 0 {
			if err := t.env.Quota.SettleLaunch(ctx, t.q, quota.LaunchResult{Machines: made}, now); err != nil {
				return op.Again, err
			}
			t.next = t.load
			return op.Again, nil
		}
		m := machines[0]
		if m.State != lifecycle.MachineGone {
			if _, err := t.env.record(ctx, m, t.q, nil, now); err != nil {
				return op.Again, err
			}
			t.journal.Effects++
			t.known = append(t.known, m.HostKey)
		}
		machines = machines[1:]
		return op.Again, nil
	}
	return op.Again, nil
}

// awaitLaunch leaves the launch open, and its hosts their room, while limits are on and
// it may bring so many more.
func (t *requestCleanup) awaitLaunch(missing int, now time.Time) {
	until := t.q.ReleasedAt.Add(quota.ListedAfter) // others close their launch before they settle
	if !t.env.Quota.On() || missing <= 0 || !now.Before(until) {
		return
	}
	t.coming = missing
	t.lookBy(until)
}

func (t *requestCleanup) load(ctx context.Context, now time.Time) (op.Progress, error) {
	records, leaving, err := t.env.Hosts.OfRequest(ctx, t.q, t.known)
	if err != nil {
		return op.Again, err
	}
	t.freed = leaving
	asked := records
	if t.env.Quota.On() {
		asked = slices.Concat(records, leaving)
	}
	keys := make([]string, 0, len(asked))
	for _, r := range asked {
		keys = append(keys, r.HostKey)
	}
	if t.reports, err = t.env.Hosts.Reports(ctx, keys, now); err != nil {
		return op.Again, err
	}
	t.pending, t.kept = records, 0
	t.next = t.host
	return op.Again, nil
}

// host decides on one host. One that was written by somebody else meanwhile is
// decided on again.
func (t *requestCleanup) host(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(t.pending) == 0 {
		t.limits = t.env.Quota.LimitsOf(t.q.Repository)
		t.countDraining(now)
		t.awaitCallers(now)
		t.next = t.giveBack
		return t.giveBack(ctx, now)
	}
	r := t.pending[0]
	facts := lifecycle.Facts{Record: r, Request: &t.q}
	if report, ok := t.reports[r.HostKey]; ok {
		facts.Report = &report
	}
	after, d, err := t.env.Hosts.Reconcile(ctx, t.journal, facts, now)
	if err != nil {
		return op.Again, err
	}
	switch {
	case after.Version != r.Version && hosts.Serves(after, t.q):
		t.pending[0] = after // ready, or moved by somebody else: decide again
		return op.Again, nil
	case d.Action != lifecycle.ActionKeep, after.Assignment == r.Assignment+1:
		// Freed now, or before by a write of ours whose answer was lost.
		t.freed = append(t.freed, after)
	case hosts.Serves(after, t.q):
		t.keepFor(after, d, now)
	}
	if hosts.Serves(after, t.q) {
		t.kept++
	}
	t.pending = t.pending[1:]
	return op.Again, nil
}

// keepFor notes when a host that stays must be looked at for this request.
func (t *requestCleanup) keepFor(r lifecycle.Record, d lifecycle.Decision, now time.Time) {
	if t.q.Wants(r.HostKey) && !t.q.Unattended {
		return
	}
	if t.q.Wants(r.HostKey) && !d.CheckAt.Before(r.Threshold) {
		return // nothing before its own threshold, which is the host's business
	}
	look := d.CheckAt
	if !look.After(now) || !t.q.Wants(r.HostKey) {
		look = now.Add(t.env.Hosts.Policy(r.Pool).DrainPoll)
	}
	t.lookBy(look)
}

func (t *requestCleanup) lookBy(look time.Time) {
	if t.left.IsZero() || look.Before(t.left) {
		t.left = look
	}
}

// countDraining: a host that was released at work counts against limits until its
// job is over, and so long the request is looked at.
func (t *requestCleanup) countDraining(now time.Time) {
	if len(t.limits) == 0 {
		return
	}
	for _, r := range t.freed {
		if r.Releasing() && t.reports[r.HostKey].Busy {
			t.kept++
			t.lookBy(now.Add(t.env.Hosts.Policy(r.Pool).DrainPoll))
		}
	}
}

// awaitCallers has a request that was released while it was open looked at once more,
// while limits are on: a caller that has not heard of that may write an entry behind
// what is given back here, and die before it sees.
func (t *requestCleanup) awaitCallers(now time.Time) {
	until := t.q.ReleasedAt.Add(quota.ListedAfter)
	if t.env.Quota.On() && t.q.Outcome == lifecycle.OutcomeReleased && now.Before(until) {
		t.lookBy(until)
	}
}

// giveBack leaves the request room for the hosts that it has still, or may get, in one
// account a step. That comes before the request is due no more: a crash between the
// two is finished by the due sweep.
func (t *requestCleanup) giveBack(ctx context.Context, now time.Time) (op.Progress, error) {
	for len(t.limits) > 0 {
		changed, err := t.env.Quota.GiveBack(ctx, t.limits[0], t.q, t.kept+t.coming)
		if err != nil {
			return op.Again, err
		}
		t.limits = t.limits[1:]
		if changed {
			t.journal.Effects++
			return op.Again, nil
		}
	}
	return t.close(ctx, now)
}

// close writes when the request is due again, if that has changed.
func (t *requestCleanup) close(ctx context.Context, now time.Time) (op.Progress, error) {
	q := t.q
	q.DueAt = t.left
	if t.coming == 0 {
		q.Launch = nil
	}
	if q.ExpiresAt.IsZero() {
		q.ExpiresAt = now.Add(t.env.Timing.KeepRequests)
	}
	if q.DueAt.Equal(t.q.DueAt) && q.Launch == t.q.Launch && !t.q.ExpiresAt.IsZero() {
		return op.Done, nil
	}
	stored, err := t.env.Store.UpdateRequest(ctx, q)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		return op.Done, nil // somebody else is at it, and it is due still
	case err != nil:
		return op.Again, fmt.Errorf("write request %s: %w", q.RequestID, err)
	}
	t.journal.Effects++
	t.q = stored
	return op.Done, nil
}
