package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// WorkerOptions are the parts for the job queues of services. Store is required.
type WorkerOptions struct {
	Store WorkerStore
	// Services are those that have a queue, by name, and what becomes of their jobs.
	Services map[string]model.JobPolicy
	// Queued is told of a service whose job begins to wait; it must not block.
	// nil: the service is nudged, if it is one that is scaled.
	Queued func(service string)
}

// ErrWorkDiffers means that the job id is taken by a job with another payload.
var ErrWorkDiffers = errors.New("the same job_id was used with another body")

const (
	// changeTries is how often a row is read and changed anew while others are
	// faster: a worker's own calls, and the sweep.
	changeTries = 10
	// heardAgain is how old a heartbeat is when a claim renews it: a worker that
	// asks every second must not write every second.
	heardAgain = 15 * time.Second
)

// workService is a service that has a queue: ErrNotFound.
func (f *Fleet) workService(name string) (model.JobPolicy, error) {
	if f.workers != nil {
		if p, ok := f.workers.Services[name]; ok {
			return p, nil
		}
	}
	return model.JobPolicy{}, fmt.Errorf("service %s is not configured: %w", name, lifecycle.ErrNotFound)
}

// workQueued has a service looked at that has a job to do.
func (f *Fleet) workQueued(service string) {
	if f.workers.Queued != nil {
		f.workers.Queued(service)
		return
	}
	f.NudgeSoon(service)
}

// SubmitWork puts a job into the queue of a service, and has the service looked
// at. Said again it changes nothing: the job comes back as it is. ErrWorkDiffers
// if its id is another job's.
func (f *Fleet) SubmitWork(ctx context.Context, service, id string, payload []byte, now time.Time) (model.Job, error) {
	p, err := f.workService(service)
	if err != nil {
		return model.Job{}, err
	}
	err = f.workers.Store.CreateWork(ctx, model.NewJob(service, id, payload, p, now))
	if err != nil && !errors.Is(err, lifecycle.ErrExists) {
		return model.Job{}, fmt.Errorf("submit job: %w", err)
	}
	j, err := f.Work(ctx, service, id)
	switch {
	case err != nil:
		return model.Job{}, err
	case !bytes.Equal(j.Payload, payload):
		return model.Job{}, fmt.Errorf("job %s of service %s: %w", id, service, ErrWorkDiffers)
	}
	if j.State == model.JobWaiting {
		f.workQueued(service)
	}
	return j, nil
}

// Work reads a job: ErrNotFound.
func (f *Fleet) Work(ctx context.Context, service, id string) (model.Job, error) {
	if _, err := f.workService(service); err != nil {
		return model.Job{}, err
	}
	return f.workers.Store.Work(ctx, service, id)
}

// WorkAwaited says what a job awaits until when, and what happens then.
func (f *Fleet) WorkAwaited(j model.Job) string {
	return j.Awaited(f.workers.Services[j.Service])
}

// ListWork lists the jobs of a service that are in one of the states, the oldest
// first; no states: all of them.
func (f *Fleet) ListWork(
	ctx context.Context, service string, states []model.JobState, page lifecycle.PageOf,
) (lifecycle.Page[model.Job], error) {
	if _, err := f.workService(service); err != nil {
		return lifecycle.Page[model.Job]{}, err
	}
	asked := slices.DeleteFunc(slices.Clone(model.JobStates), func(s model.JobState) bool {
		return len(states) > 0 && !slices.Contains(states, s)
	})
	return f.workers.Store.ListWork(ctx, service, asked, page)
}

// AppendWorkLog adds lines to a job's log and returns it. model.ErrStaleAttempt
// if it is not the turn that runs, *InvalidError if lines are missing before
// these.
func (f *Fleet) AppendWorkLog(
	ctx context.Context, service, id string, of model.JobAttempt, offset int64, lines string, now time.Time,
) (model.Job, error) {
	j, err := f.changeWork(ctx, service, id, func(j model.Job) (model.Job, error) {
		return j.Append(of, offset, lines, now)
	})
	if errors.Is(err, model.ErrLogGap) {
		return j, &InvalidError{Field: "offset", Rule: fmt.Sprintf("is %d, and the log has %d bytes: send what is between first", offset, j.LogBytes)}
	}
	return j, err
}

// FinishWork ends a job as its worker says. model.ErrStaleAttempt if it is not
// the turn that runs.
func (f *Fleet) FinishWork(
	ctx context.Context, service, id string, of model.JobAttempt, succeeded bool, reason string, now time.Time,
) (model.Job, error) {
	j, err := f.changeWork(ctx, service, id, func(j model.Job) (model.Job, error) {
		return j.Finish(of, succeeded, reason, now)
	})
	if err == nil {
		f.workLeft(ctx, j)
	}
	return j, err
}

// changeWork reads a job, changes it and writes it, again while others are
// faster. What has ended is written no more. With an error of change it returns
// the job as it is.
func (f *Fleet) changeWork(
	ctx context.Context, service, id string, change func(model.Job) (model.Job, error),
) (model.Job, error) {
	for try := 0; ; try++ {
		j, err := f.Work(ctx, service, id)
		if err != nil {
			return j, err
		}
		next, err := change(j)
		if err != nil || j.State.Ended() {
			return next, err
		}
		next, err = f.workers.Store.UpdateWork(ctx, next)
		if err == nil || !errors.Is(err, lifecycle.ErrConflict) {
			return next, err
		}
		if try == changeTries {
			return j, &lifecycle.UnavailableError{What: "change job " + id, Err: err}
		}
	}
}

// workLeft takes a job that has left its worker out of the worker's row. It is
// for whoever lists workers, and no more: what a worker has is told by the job.
func (f *Fleet) workLeft(ctx context.Context, j model.Job) {
	w, err := f.workers.Store.Worker(ctx, j.Service, j.WorkerID)
	if err == nil && w.JobID == j.ID {
		w.JobID = ""
		_, err = f.workers.Store.UpdateWorker(ctx, w)
	}
	if err != nil {
		f.log.Debug("worker is listed with a job that it does not have", "service", j.Service, "worker", j.WorkerID, "job", j.ID, "error", err)
	}
}

// HearWorker takes the heartbeat of a worker.
func (f *Fleet) HearWorker(ctx context.Context, service, id, version string, now time.Time) (model.Worker, error) {
	if _, err := f.workService(service); err != nil {
		return model.Worker{}, err
	}
	for try := 0; ; try++ {
		w, err := f.worker(ctx, service, id)
		if err == nil {
			w, err = f.workers.Store.UpdateWorker(ctx, w.WithHeartbeat(version, now))
		}
		if err == nil || !errors.Is(err, lifecycle.ErrConflict) {
			return w, err
		}
		if try == changeTries {
			return w, &lifecycle.UnavailableError{What: "hear worker " + id, Err: err}
		}
	}
}

// worker reads a worker. One that was never heard of has nothing but its name.
func (f *Fleet) worker(ctx context.Context, service, id string) (model.Worker, error) {
	w, err := f.workers.Store.Worker(ctx, service, id)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return model.Worker{Service: service, ID: id}, nil
	}
	return w, err
}

// Workers lists the workers of a service, by id.
func (f *Fleet) Workers(ctx context.Context, service string, page lifecycle.PageOf) (lifecycle.Page[model.Worker], error) {
	if _, err := f.workService(service); err != nil {
		return lifecycle.Page[model.Worker]{}, err
	}
	return f.workers.Store.Workers(ctx, service, page)
}
