package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// WorkerOptions are the parts for the job queues of services. Store is required.
type WorkerOptions struct {
	Store WorkerStore
	// Services are those that have a queue, by name, and what becomes of their jobs.
	Services map[string]lifecycle.WorkPolicy
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
func (f *Fleet) workService(name string) (lifecycle.WorkPolicy, error) {
	if f.workers != nil {
		if p, ok := f.workers.Services[name]; ok {
			return p, nil
		}
	}
	return lifecycle.WorkPolicy{}, fmt.Errorf("service %s is not configured: %w", name, lifecycle.ErrNotFound)
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
func (f *Fleet) SubmitWork(ctx context.Context, service, id string, payload []byte, now time.Time) (lifecycle.WorkJob, error) {
	p, err := f.workService(service)
	if err != nil {
		return lifecycle.WorkJob{}, err
	}
	err = f.workers.Store.CreateWork(ctx, lifecycle.NewWorkJob(service, id, payload, p, now))
	if err != nil && !errors.Is(err, lifecycle.ErrExists) {
		return lifecycle.WorkJob{}, fmt.Errorf("submit job: %w", err)
	}
	j, err := f.Work(ctx, service, id)
	switch {
	case err != nil:
		return lifecycle.WorkJob{}, err
	case !bytes.Equal(j.Payload, payload):
		return lifecycle.WorkJob{}, fmt.Errorf("job %s of service %s: %w", id, service, ErrWorkDiffers)
	}
	if j.State == lifecycle.WorkWaiting {
		f.workQueued(service)
	}
	return j, nil
}

// Work reads a job: ErrNotFound.
func (f *Fleet) Work(ctx context.Context, service, id string) (lifecycle.WorkJob, error) {
	if _, err := f.workService(service); err != nil {
		return lifecycle.WorkJob{}, err
	}
	return f.workers.Store.Work(ctx, service, id)
}

// WorkAwaited says what a job awaits until when, and what happens then.
func (f *Fleet) WorkAwaited(j lifecycle.WorkJob) string {
	return j.Awaited(f.workers.Services[j.Service])
}

// ListWork lists the jobs of a service that are in one of the states, the oldest
// first; no states: all of them.
func (f *Fleet) ListWork(
	ctx context.Context, service string, states []lifecycle.WorkState, page lifecycle.PageOf,
) (lifecycle.Page[lifecycle.WorkJob], error) {
	if _, err := f.workService(service); err != nil {
		return lifecycle.Page[lifecycle.WorkJob]{}, err
	}
	asked := slices.DeleteFunc(slices.Clone(lifecycle.WorkStates), func(s lifecycle.WorkState) bool {
		return len(states) > 0 && !slices.Contains(states, s)
	})
	return f.workers.Store.ListWork(ctx, service, asked, page)
}

// AppendWorkLog adds lines to a job's log and returns it. lifecycle.ErrNotTheirs
// if it is not the turn that runs, *InvalidError if lines are missing before
// these.
func (f *Fleet) AppendWorkLog(
	ctx context.Context, service, id string, of lifecycle.WorkTurn, offset int64, lines string, now time.Time,
) (lifecycle.WorkJob, error) {
	j, err := f.changeWork(ctx, service, id, func(j lifecycle.WorkJob) (lifecycle.WorkJob, error) {
		return j.Append(of, offset, lines, now)
	})
	if errors.Is(err, lifecycle.ErrLogGap) {
		return j, &InvalidError{Field: "offset", Rule: fmt.Sprintf("is %d, and the log has %d bytes: send what is between first", offset, j.LogBytes)}
	}
	return j, err
}

// FinishWork ends a job as its worker says. lifecycle.ErrNotTheirs if it is not
// the turn that runs.
func (f *Fleet) FinishWork(
	ctx context.Context, service, id string, of lifecycle.WorkTurn, succeeded bool, reason string, now time.Time,
) (lifecycle.WorkJob, error) {
	j, err := f.changeWork(ctx, service, id, func(j lifecycle.WorkJob) (lifecycle.WorkJob, error) {
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
	ctx context.Context, service, id string, change func(lifecycle.WorkJob) (lifecycle.WorkJob, error),
) (lifecycle.WorkJob, error) {
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
		if err == nil || !errors.Is(err, lifecycle.ErrLost) {
			return next, err
		}
		if try == changeTries {
			return j, &lifecycle.UnavailableError{What: "change job " + id, Err: err}
		}
	}
}

// workLeft takes a job that has left its worker out of the worker's row. It is
// for whoever lists workers, and no more: what a worker has is told by the job.
func (f *Fleet) workLeft(ctx context.Context, j lifecycle.WorkJob) {
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
func (f *Fleet) HearWorker(ctx context.Context, service, id, version string, now time.Time) (lifecycle.Worker, error) {
	if _, err := f.workService(service); err != nil {
		return lifecycle.Worker{}, err
	}
	for try := 0; ; try++ {
		w, err := f.worker(ctx, service, id)
		if err == nil {
			w, err = f.workers.Store.UpdateWorker(ctx, w.Heard(version, now))
		}
		if err == nil || !errors.Is(err, lifecycle.ErrLost) {
			return w, err
		}
		if try == changeTries {
			return w, &lifecycle.UnavailableError{What: "hear worker " + id, Err: err}
		}
	}
}

// worker reads a worker. One that was never heard of has nothing but its name.
func (f *Fleet) worker(ctx context.Context, service, id string) (lifecycle.Worker, error) {
	w, err := f.workers.Store.Worker(ctx, service, id)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return lifecycle.Worker{Service: service, ID: id}, nil
	}
	return w, err
}

// Workers lists the workers of a service, by id.
func (f *Fleet) Workers(ctx context.Context, service string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Worker], error) {
	if _, err := f.workService(service); err != nil {
		return lifecycle.Page[lifecycle.Worker]{}, err
	}
	return f.workers.Store.Workers(ctx, service, page)
}
