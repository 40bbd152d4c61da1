package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// tidy brings the hosts of a settled or released request in line with it: the
// unwanted are released, returned or ended, and when nothing is left to do the
// request is due no more. A crash at any point is finished by the due sweep.
type tidy struct {
	f       *Fleet
	journal *journal
	q       lifecycle.Request

	next    func(context.Context, time.Time) (Progress, error)
	known   []string // keys of hosts that the index may not have yet
	pending []lifecycle.Record
	reports map[string]lifecycle.Report
	// left is when somebody must look at this request again; zero: never.
	left time.Time
	// freed are the hosts that were released, returned or ended, on the way or
	// just before.
	freed []lifecycle.Record
}

// Step does one step.
func (t *tidy) Step(ctx context.Context, now time.Time) (Progress, error) {
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
func (t *tidy) adopt(ctx context.Context, _ time.Time) (Progress, error) {
	machines, err := t.f.compute.Launched(ctx, *t.q.Launch)
	if err != nil {
		return again, fmt.Errorf("find machines of request %s: %w", t.q.RequestID, err)
	}
	t.next = func(ctx context.Context, now time.Time) (Progress, error) {
		if len(machines) == 0 {
			t.next = t.load
			return again, nil
		}
		m := machines[0]
		if m.State != lifecycle.MachineGone {
			if _, err := t.f.record(ctx, m, t.q, nil, now); err != nil {
				return again, err
			}
			t.journal.effects++
			t.known = append(t.known, m.HostKey)
		}
		machines = machines[1:]
		return again, nil
	}
	return again, nil
}

func (t *tidy) load(ctx context.Context, now time.Time) (Progress, error) {
	records, leaving, err := t.f.hostsOf(ctx, t.q, t.known)
	if err != nil {
		return again, err
	}
	t.freed = leaving
	keys := make([]string, 0, len(records))
	for _, r := range records {
		keys = append(keys, r.HostKey)
	}
	if t.reports, err = t.f.reports(ctx, keys, now); err != nil {
		return again, err
	}
	t.pending = records
	t.next = t.host
	return again, nil
}

// host decides on one host. One that was written by somebody else meanwhile is
// decided on again.
func (t *tidy) host(ctx context.Context, now time.Time) (Progress, error) {
	if len(t.pending) == 0 {
		t.next = t.close
		return again, nil
	}
	r := t.pending[0]
	facts := lifecycle.Facts{Record: r, Request: &t.q}
	if report, ok := t.reports[r.HostKey]; ok {
		facts.Report = &report
	}
	after, d, err := t.f.bring(ctx, t.journal, facts, now)
	if err != nil {
		return again, err
	}
	switch {
	case after.Version != r.Version && serves(after, t.q):
		t.pending[0] = after // ready, or moved by somebody else: decide again
		return again, nil
	case d.Action != lifecycle.ActionKeep, after.Assignment == r.Assignment+1:
		// Freed now, or before by a write of ours whose answer was lost.
		t.freed = append(t.freed, after)
	case serves(after, t.q):
		t.keepFor(after, d, now)
	}
	t.pending = t.pending[1:]
	return again, nil
}

// keepFor notes when a host that stays must be looked at for this request.
func (t *tidy) keepFor(r lifecycle.Record, d lifecycle.Decision, now time.Time) {
	if t.q.Wants(r.HostKey) && !t.q.Unattended {
		return
	}
	if t.q.Wants(r.HostKey) && !d.Look.Before(r.Threshold) {
		return // nothing before its own threshold, which is the host's business
	}
	look := d.Look
	if !look.After(now) || !t.q.Wants(r.HostKey) {
		look = now.Add(t.f.policy(r.Pool).DrainLook)
	}
	if t.left.IsZero() || look.Before(t.left) {
		t.left = look
	}
}

// close writes when the request is due again, if that has changed.
func (t *tidy) close(ctx context.Context, now time.Time) (Progress, error) {
	q := t.q
	q.DueAt, q.Launch = t.left, nil
	if q.ExpiresAt.IsZero() {
		q.ExpiresAt = now.Add(t.f.timing.KeepRequests)
	}
	if q.DueAt.Equal(t.q.DueAt) && t.q.Launch == nil && !t.q.ExpiresAt.IsZero() {
		return done, nil
	}
	stored, err := t.f.store.UpdateRequest(ctx, q)
	switch {
	case errors.Is(err, lifecycle.ErrLost):
		return done, nil // somebody else is at it, and it is due still
	case err != nil:
		return again, fmt.Errorf("write request %s: %w", q.RequestID, err)
	}
	t.journal.effects++
	t.q = stored
	return done, nil
}
