package hosts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// ReplaceRoot tells the cloud to replace the root volume of a clean host, as was decided, and notes the name of the replacement. It returns the
// record as it now stands and what was decided last: a host whose volume the cloud refuses to replace ends. Whatever else fails is tried again by the
// due sweep: the cloud begins one replacement for each token.
func (hs *Hosts) ReplaceRoot(ctx context.Context, j *op.Recorder, facts lifecycle.Facts, d lifecycle.Decision, now time.Time) (lifecycle.Record, lifecycle.Decision, error) {
	r := facts.Record
	var held *FleetHeldError
	switch err := hs.MayEnd(ctx, now); {
	case errors.As(err, &held):
		return r, d, nil
	case err != nil:
		return r, d, fmt.Errorf("%s of host %s: %w", d.Action, r.InstanceID, err)
	}
	task, err := hs.Ender.ReplaceRoot(ctx, r.InstanceID, r.ReplacementToken())
	switch {
	case err == nil:
		facts.RootTask = &task
	case errors.Is(err, lifecycle.ErrRefused):
		facts.RootRefused = err.Error()
	case op.Transient(ctx, err):
		return r, d, fmt.Errorf("%s of host %s: %w", d.Action, r.InstanceID, err)
	default:
		hs.Log.Warn("root volume not replaced; tried again later", logkey.Instance, r.InstanceID, logkey.Error, err)
		return r, d, nil
	}
	return hs.Reconcile(ctx, j, facts, now)
}
