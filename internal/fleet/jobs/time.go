package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/lifecycle/runnername"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// writeTime writes when a job ran on which of our hosts, once it is over. It comes before the write of the job's row: a crash between the two
// loses nothing, and a repeat writes the same row. If the store refuses it the job goes on without: its time stays that of its run.
func (js *Jobs) writeTime(ctx context.Context, j lifecycle.Job) error {
	if j.State != lifecycle.JobDone {
		return nil
	}
	t, known := meter.NewJobTime(meter.JobTime{
		Job: meter.Job{ID: j.ID, Title: j.Name}, InstanceID: runnername.InstanceOf(j.RunnerName), Repository: j.Repository, RunID: j.RunID,
		Alone: j.Pool != "",
	}, j.StartedAt, j.EndedAt)
	if !known {
		return nil
	}
	err := js.Store.CreateJobTime(ctx, t)
	switch {
	case err == nil, errors.Is(err, lifecycle.ErrExists):
		return nil
	case errors.Is(err, lifecycle.ErrUnavailable) || ctx.Err() != nil:
		return fmt.Errorf("keep the time of job %d: %w", j.ID, err)
	}
	js.Log.Error("the time of a job is lost", logkey.Job, j.ID, logkey.Repository, j.Repository, logkey.Error, err)
	return nil
}
