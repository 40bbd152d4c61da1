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

// requestCleanup releases, returns or ends the hosts that a settled or released request
// does not want. When nothing is left to do, the request is no longer due. After a crash
// at any point the due sweep finishes the cleanup.
type requestCleanup struct {
	env     *Provisioner
	journal *op.Recorder
	q       lifecycle.Request

	next    func(context.Context, time.Time) (op.Progress, error)
	known   []string // keys of hosts that the index may not list yet
	pending []lifecycle.Record
	reports map[string]lifecycle.Report
	// checkAt is when a sweep must check this request again; zero means never.
	checkAt time.Time
	// kept counts the hosts that still serve the request or finish its jobs.
	kept int
	// coming counts the hosts that an open launch may still add: its call may be in
	// progress, and listings show its machines late.
	coming int
	// limits are those in whose ledgers the request's reservation has still to be
	// lowered to kept and coming.
	limits []policy.Limit
	// freed are the hosts that were released, returned or ended by this cleanup or
	// just before it.
	freed []lifecycle.Record
}

// Step makes one step of the cleanup.
func (t *requestCleanup) Step(ctx context.Context, now time.Time) (op.Progress, error) {
	if t.next == nil {
		t.next = t.load
		if t.q.Launch != nil {
			t.next = t.adopt
		}
	}
	return t.next(ctx, now)
}

// adopt records the machines of a launch that a crash interrupted, so that they are
// ended like all others. The call itself is not repeated.
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

// awaitLaunch keeps the launch open, and the reservation of its hosts, as long as limits
// are on and the launch may still add the missing hosts.
func (t *requestCleanup) awaitLaunch(missing int, now time.Time) {
	until := t.q.ReleasedAt.Add(quota.ListedAfter) // a request that was not released closes its launch before it settles
	if !t.env.Quota.On() || missing <= 0 || !now.Before(until) {
		return
	}
	t.coming = missing
	t.checkBy(until)
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

// host decides on one host. If a sweep or another replica has written its record in the
// meantime, it decides again.
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
		t.pending[0] = after // it is ready, or another writer changed it: decide again
		return op.Again, nil
	case d.Action != lifecycle.ActionKeep, after.Assignment == r.Assignment+1:
		// The host was freed now, or before by our own write whose answer was lost.
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

// keepFor notes when the cleanup must check a host that stays.
func (t *requestCleanup) keepFor(r lifecycle.Record, d lifecycle.Decision, now time.Time) {
	if t.q.Wants(r.HostKey) && !t.q.Unattended {
		return
	}
	if t.q.Wants(r.HostKey) && !d.CheckAt.Before(r.Threshold) {
		return // nothing happens before the host's threshold, and the host is due then itself
	}
	at := d.CheckAt
	if !at.After(now) || !t.q.Wants(r.HostKey) {
		at = now.Add(t.env.Hosts.Policy(r.Pool).DrainPoll)
	}
	t.checkBy(at)
}

func (t *requestCleanup) checkBy(at time.Time) {
	if t.checkAt.IsZero() || at.Before(t.checkAt) {
		t.checkAt = at
	}
}

// countDraining counts the hosts that were released while busy. Each uses quota until
// its job is over, and until then the request stays due.
func (t *requestCleanup) countDraining(now time.Time) {
	if len(t.limits) == 0 {
		return
	}
	for _, r := range t.freed {
		if r.Releasing() && t.reports[r.HostKey].Busy {
			t.kept++
			t.checkBy(now.Add(t.env.Hosts.Policy(r.Pool).DrainPoll))
		}
	}
}

// awaitCallers keeps a request due that was released before it was settled, if limits
// are on. A caller that does not know of the release yet may write a reservation again
// after it is freed here, and crash before it notices. So the request is checked again
// quota.ListedAfter after its release.
func (t *requestCleanup) awaitCallers(now time.Time) {
	until := t.q.ReleasedAt.Add(quota.ListedAfter)
	if t.env.Quota.On() && t.q.Outcome == lifecycle.OutcomeReleased && now.Before(until) {
		t.checkBy(until)
	}
}

// giveBack lowers the request's reservation to the hosts that it still has or may still
// get, one ledger per step. It does so while the request is still due, so that the due
// sweep finishes it after a crash.
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

// close writes when the request is next due, if that has changed.
func (t *requestCleanup) close(ctx context.Context, now time.Time) (op.Progress, error) {
	q := t.q
	q.DueAt = t.checkAt
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
		return op.Done, nil // another operation has written the request, which is still due
	case err != nil:
		return op.Again, fmt.Errorf("write request %s: %w", q.RequestID, err)
	}
	t.journal.Effects++
	t.q = stored
	return op.Done, nil
}
