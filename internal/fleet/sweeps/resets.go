package sweeps

import (
	"context"
	"errors"

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
			r := facts.Record
			if !r.Resetting() || task.ID != r.RootVolume.Task || task.InstanceID != r.InstanceID {
				continue
			}
			switch known, err := sw.knowsTemplate(ctx, r, task); {
			case err != nil:
				return err
			case known:
				of[i].RootTask = &task
			}
		}
	}
	return nil
}

// knowsTemplate reports whether it is known what the host of a replacement that has succeeded could give its jobs: by whether its launch template is the
// pool's. Until then the host waits.
func (sw *Sweeps) knowsTemplate(ctx context.Context, r lifecycle.Record, task lifecycle.RootTask) (bool, error) {
	if task.State != lifecycle.RootReplaced {
		return true, nil
	}
	err := sw.Hosts.KnowTemplate(ctx, r.Pool)
	switch {
	case errors.Is(err, lifecycle.ErrUnavailable):
		return false, err
	case err != nil:
		sw.Log.Warn("version of a launch template not known", logkey.Pool, r.Pool, logkey.Error, err)
	}
	return err == nil, nil
}
