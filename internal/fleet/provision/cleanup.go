package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/quota"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy"
)

// requestCleanup releases, returns or ends the hosts that a settled or released request
// does not want. When nothing is left to do, the request is no longer due. After a crash
// at any point the due sweep finishes the cleanup.
type requestCleanup struct {
	env     *Provisioner
	journal *op.Recorder
	q       lifecycle.Request
	user    meter.User // that of Release

	// launcher finds the machines of an open launch; adopted: they are recorded and
	// the launch is settled. loaded: pending was read. decided: all hosts were decided on.
	launcher                 Launcher
	adopted, loaded, decided bool
	known                    []string // keys of hosts that the index may not have yet
	pending                  []lifecycle.Record
	reports                  map[string]lifecycle.Report
	// left is when a sweep must check this request again; zero means never.
	left time.Time
	// kept counts the hosts that still serve the request or finish its jobs.
	kept int
	// coming counts the hosts that an open launch may still add: its call may be in
	// progress, and listings show its machines late.
	coming int
	// limits are those in whose ledgers the request's reservation has still to be lowered to kept and coming.
	limits []policy.Limit
	// freed are the hosts that were released, returned or ended by this cleanup or just before it.
	freed []lifecycle.Record
}

// state is what op.Stated says of a cleanup in hand; empty if there is none.
func (t *requestCleanup) state() []any {
	if t == nil {
		return nil
	}
	return []any{
		t.q, t.user, t.launcher.state(), t.adopted, t.loaded, t.decided, t.known, t.pending, t.reports, t.left, t.kept, t.coming, t.limits, t.freed,
	}
}

// Step does the first thing that is left to do.
func (t *requestCleanup) Step(ctx context.Context, now time.Time) (op.Progress, error) {
	switch {
	case t.q.Launch != nil && !t.adopted:
		return t.adopt(ctx, now)
	case !t.loaded:
		return t.load(ctx, now)
	case len(t.pending) > 0:
		return t.decideSome(ctx, now)
	case !t.decided:
		t.decided = true
		t.limits = t.env.Quota.LimitsOf(t.q.Repository)
		t.countDraining(now)
		t.awaitCallers(now)
	}
	return t.giveBack(ctx, now)
}

// adopt records the machines of a launch that a crash interrupted, so that they are
// ended like all others. The call itself is not repeated.
func (t *requestCleanup) adopt(ctx context.Context, now time.Time) (op.Progress, error) {
	l := &t.launcher
	switch {
	case !l.called:
		if err := l.Call(ctx, t.env, t.q, true, now); err != nil {
			return op.Again, fmt.Errorf("find machines of request %s: %w", t.q.RequestID, err)
		}
		if !l.called {
			return op.Wait(l.wait), nil
		}
		t.awaitLaunch(t.q.Launch.Count-len(l.Result.Machines), now)
	case l.Recording():
		if m := l.Machine(); m.State != lifecycle.MachineGone {
			if _, err := t.env.record(ctx, m, t.q, nil, now); err != nil {
				return op.Again, err
			}
			t.journal.Effects++
			t.known = append(t.known, m.HostKey)
		}
		l.Recorded()
	default:
		if err := t.env.Quota.SettleLaunch(ctx, t.q, l.Result, now); err != nil {
			return op.Again, err
		}
		t.adopted, t.launcher = true, Launcher{}
	}
	return op.Again, nil
}

// awaitLaunch keeps the launch open, and the reservation of its hosts, as long as limits
// are on and the launch may still add the missing hosts.
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
	t.pending, t.kept, t.loaded = records, 0, true
	return op.Again, nil
}

// decideSome decides on some hosts. If a sweep or another replica has written the record of one in the meantime, it decides on that again.
func (t *requestCleanup) decideSome(ctx context.Context, now time.Time) (op.Progress, error) {
	some := t.pending[:t.env.Hosts.Some(len(t.pending))]
	results := make([]reconciled, len(some))
	t.env.Hosts.Together(ctx, t.journal, len(some), func(ctx context.Context, i int, j *op.Recorder) {
		results[i].after, results[i].decision, results[i].err = t.env.Hosts.ReconcileSwept(ctx, j, t.facts(some[i]), now)
	})
	var err error
	var open []lifecycle.Record
	for i, r := range results {
		switch {
		case r.err != nil:
			err, open = cmp.Or(err, r.err), append(open, some[i])
		case r.after.Version != some[i].Version && hosts.Serves(r.after, t.q):
			open = append(open, r.after) // ready, or changed by another operation: decide again
		default:
			t.decidedOn(some[i], r, now)
		}
	}
	t.pending = append(open, t.pending[len(some):]...)
	return op.Again, err
}

func (t *requestCleanup) facts(r lifecycle.Record) lifecycle.Facts {
	r.Meter.ChargeTo(t.user)
	facts := lifecycle.Facts{Record: r, Request: &t.q}
	if report, ok := t.reports[r.HostKey]; ok {
		facts.Report = &report
	}
	return facts
}

// decidedOn notes what came of a host.
func (t *requestCleanup) decidedOn(before lifecycle.Record, r reconciled, now time.Time) {
	switch {
	case r.decision.Action != lifecycle.ActionKeep, r.after.Assignment == before.Assignment+1:
		// The host was freed now, or before by our own write whose answer was lost.
		t.freed = append(t.freed, r.after)
	case hosts.Serves(r.after, t.q):
		t.keepFor(r.after, r.decision, now)
	}
	if hosts.Serves(r.after, t.q) {
		t.kept++
	}
}

// keepFor notes when the cleanup must check a host that stays.
func (t *requestCleanup) keepFor(r lifecycle.Record, d lifecycle.Decision, now time.Time) {
	if t.q.Wants(r) && !t.q.Unattended {
		return
	}
	if t.q.Wants(r) && !d.CheckAt.Before(r.Threshold) {
		return // nothing before its own threshold, which is the host's business
	}
	look := d.CheckAt
	if !look.After(now) || !t.q.Wants(r) {
		look = now.Add(t.env.Hosts.Policy(r.Pool).DrainPoll)
	}
	t.lookBy(look)
}

func (t *requestCleanup) lookBy(look time.Time) {
	if t.left.IsZero() || look.Before(t.left) {
		t.left = look
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
			t.lookBy(now.Add(t.env.Hosts.Policy(r.Pool).DrainPoll))
		}
	}
}

// awaitCallers keeps a request due that was released before it was settled, if limits are on. A caller that
// does not know of the release yet may write a reservation again after it is freed here, and crash before it
// notices. So the request is checked again quota.ListedAfter after its release.
func (t *requestCleanup) awaitCallers(now time.Time) {
	until := t.q.ReleasedAt.Add(quota.ListedAfter)
	if t.env.Quota.On() && t.q.Outcome == lifecycle.OutcomeReleased && now.Before(until) {
		t.lookBy(until)
	}
}

// giveBack lowers the request's reservation to the hosts that it still has or may still get, one ledger per
// step. It does so while the request is still due, so that the due sweep finishes it after a crash.
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
		return op.Done, nil // another operation works on it, and it is still due
	case err != nil:
		return op.Again, fmt.Errorf("write request %s: %w", q.RequestID, err)
	}
	t.journal.Effects++
	t.q = stored
	return op.Done, nil
}
