package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// checkReplacement is the first step of a replacement: it is given up if the run was released. Release marks
// what it finds and then looks again, so one of the two sees the other.
func (p *Provision) checkReplacement(ctx context.Context, now time.Time) (op.Progress, error) {
	of, err := p.env.Store.Request(ctx, p.q.Repository, p.q.RunID, p.q.ReplacementOf.RequestID)
	gone := errors.Is(err, lifecycle.ErrNotFound)
	if err != nil && !gone {
		return op.Again, fmt.Errorf("read request %s: %w", p.q.ReplacementOf.RequestID, err)
	}
	if gone || of.Released() {
		q := p.q
		q.ReleasedAt, q.Outcome, q.Reason = now, lifecycle.OutcomeReleased, "the run was released"
		return p.write(ctx, q, now, func() {})
	}
	p.checkReplaced = false
	return op.Again, nil
}
