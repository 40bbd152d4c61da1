package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// makeReplacement writes the request for a host in the place of an interrupted
// one. Its id is that of the host and its assignment, so that however often this
// is done, by whomever, there is one. The due sweep takes it up like any other.
// A run that was released meanwhile gets none: ErrLost, and its host has moved on.
func (f *Fleet) makeReplacement(ctx context.Context, j *op.Recorder, r lifecycle.Record, now time.Time) error {
	q, err := f.store.Request(ctx, r.Repository, r.RunID, r.RequestID)
	if err != nil {
		return fmt.Errorf("read request %s: %w", r.RequestID, err)
	}
	if q.Released() {
		return fmt.Errorf("replace host %s: run %s was released: %w", r.InstanceID, r.RunID, lifecycle.ErrConflict)
	}
	n := q.Replacement(r, now)
	err = f.store.CreateRequest(ctx, n)
	switch {
	case errors.Is(err, lifecycle.ErrExists):
		return nil
	case err != nil:
		return fmt.Errorf("create request %s: %w", n.RequestID, err)
	}
	j.RecordEffect(op.RequestEvent(n, lifecycle.ActionReplace, fmt.Sprintf("another host in the place of %s, which EC2 interrupts", r.InstanceID), now))
	return nil
}

// stillLost is the first look of a replacement: it is given up if the run was
// released. Release marks what it finds and then looks again, so one of the two
// sees the other.
func (p *Provision) stillLost(ctx context.Context, now time.Time) (op.Progress, error) {
	of, err := p.f.store.Request(ctx, p.q.Repository, p.q.RunID, p.q.ReplacementOf.RequestID)
	gone := errors.Is(err, lifecycle.ErrNotFound)
	if err != nil && !gone {
		return op.Again, fmt.Errorf("read request %s: %w", p.q.ReplacementOf.RequestID, err)
	}
	if gone || of.Released() {
		q := p.q
		q.ReleasedAt, q.Outcome, q.Reason = now, lifecycle.OutcomeReleased, "the run was released"
		return p.write(ctx, q, now, func() { p.Next = p.finish })
	}
	p.Next = p.await
	if p.q.MaxHosts > 0 {
		p.Next = p.keepWithin
	}
	return op.Again, nil
}

// withdrawRunner deletes the registration of a host that is to be ended before
// its machine is, so that GitHub gives it no job any more. It says so when GitHub
// has just given it one: then the host stays. While GitHub does not answer the
// end goes on, since EC2 does not wait.
func (f *Fleet) withdrawRunner(ctx context.Context, r lifecycle.Record, d lifecycle.Decision) string {
	if !d.Deregister {
		return ""
	}
	_, err := f.deleteRunner(ctx, r)
	switch {
	case errors.Is(err, lifecycle.ErrBusy):
		return fmt.Sprintf("interrupted, and GitHub has just given %s a job", r.RunnerName)
	case err != nil:
		f.log.Warn("registration not deleted before the end of its host; deleted after it", "runner", r.RunnerName, "error", err)
	}
	return ""
}
