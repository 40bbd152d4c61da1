package gather

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// resume goes on with a batch whose row is due: it makes a call that was cut short, and closes the row of one that no
// member needs any more. Until then the row says that its machines will have records. A machine of a closed batch that
// has none is left to the cloud sweep.
type resume struct {
	op.Stages
	env *Batches
	q   lifecycle.Request
}

// Resume continues a batch whose row is due.
func (b *Batches) Resume(q lifecycle.Request) op.Op {
	r := &resume{env: b, Stages: b.Ops.Stages("due"), q: q}
	r.Next = r.step
	return r
}

// State implements op.Stated.
func (r *resume) State() []any { return []any{r.q} }

func (r *resume) step(ctx context.Context, now time.Time) (op.Progress, error) {
	if !r.q.Settled() {
		return r.call(ctx, now)
	}
	open, err := r.needed(ctx)
	if err != nil {
		return op.Again, err
	}
	if open {
		r.q.DueAt = now.Add(r.env.Timing.Takeover)
	} else {
		r.q.Launch, r.q.DueAt, r.q.ExpiresAt = nil, time.Time{}, now.Add(keepRows)
	}
	if _, err := r.env.Store.UpdateRequest(ctx, r.q); err != nil && !errors.Is(err, lifecycle.ErrConflict) {
		return op.Again, fmt.Errorf("write batch %s: %w", r.q.RequestID, err)
	}
	r.Events.Effects++
	return op.Done, nil
}

// call makes a call that was cut short, and hands its machines to the members of this process.
func (r *resume) call(ctx context.Context, now time.Time) (op.Progress, error) {
	stored, result, wait, err := r.env.launch(ctx, r.q, false, now)
	if err != nil {
		return op.Again, fmt.Errorf("launch batch %s: %w", r.q.RequestID, err)
	}
	r.env.mu.Lock()
	g := r.env.known[r.q.RequestID]
	r.env.mu.Unlock()
	if g != nil && result != nil {
		r.env.publish(g, stored, result)
	}
	if result == nil {
		r.q = stored
		return op.Wait(wait), nil
	}
	r.Events.Effects++
	return op.Done, nil
}

// needed reports whether a member has yet to take its share.
func (r *resume) needed(ctx context.Context) (bool, error) {
	for _, m := range r.q.Members {
		q, err := r.env.Store.Request(ctx, m.Repository, m.RunID, m.RequestID)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
		case err != nil:
			return false, fmt.Errorf("read request %s: %w", m.RequestID, err)
		case q.Launch != nil && q.Launch.Batch == r.q.RequestID:
			return true, nil
		}
	}
	return false, nil
}
