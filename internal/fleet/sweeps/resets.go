package sweeps

import (
	"context"
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// lookAtResets asks the cloud, once, how far the replacements are that some of the hosts wait for. If it does not answer, they are decided on
// without that.
func (sw *Sweeps) lookAtResets(ctx context.Context, of []lifecycle.Facts) error {
	var ids []string
	for _, facts := range of {
		if r := facts.Record; r.Resetting() && r.RootVolume.Task != "" {
			ids = append(ids, r.InstanceID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	tasks, err := sw.Compute.RootTasks(ctx, ids)
	switch {
	case errors.Is(err, lifecycle.ErrUnavailable):
		return err
	case err != nil:
		sw.Log.Warn("replacements of root volumes not described", logkey.Error, err)
	}
	for i, facts := range of {
		for _, task := range tasks {
			if r := facts.Record; r.Resetting() && task.ID == r.RootVolume.Task && task.InstanceID == r.InstanceID {
				of[i].RootTask = &task
			}
		}
	}
	return nil
}

// replaceRoot has the root volume of a host replaced. A host whose replacement was not begun is looked at again soon.
func (s *DueSweep) replaceRoot(ctx context.Context, facts lifecycle.Facts, d lifecycle.Decision, now time.Time) (lifecycle.Record, lifecycle.Decision, error) {
	r, after, err := s.env.Hosts.ReplaceRoot(ctx, &s.Events, facts, d, now)
	if err == nil && after.Action == d.Action {
		s.Events.Effects++
		err = s.env.Hosts.Postpone(ctx, r, d, now)
	}
	return r, after, err
}
