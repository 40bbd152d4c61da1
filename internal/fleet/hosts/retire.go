package hosts

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Retirement is a host that gets no further run, and why.
type Retirement struct {
	lifecycle.Record
	Why lifecycle.Reason
}

// Retire marks a host, in one conditional write.
func (hs *Hosts) Retire(ctx context.Context, j *op.Recorder, h Retirement, now time.Time) error {
	r := h.Record
	r.Retiring, r.RetiringReason, r.UpdatedAt, r.DueAt = true, h.Why.Text, now, now
	stored, err := hs.Store.UpdateInstance(ctx, r)
	if err != nil {
		return fmt.Errorf("retire host %s: %w", r.InstanceID, err)
	}
	j.RecordEffect(op.TransitionEvent(h.Record, stored, h.Why.Decision(lifecycle.ActionRetire), now))
	return nil
}
