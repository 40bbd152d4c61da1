// Package workqueue is the job queue of services that have their jobs here: workers claim jobs, send logs and
// heartbeats, and finish jobs; a sweep ends the jobs of silent workers.
package workqueue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// Options are the services that have a queue, and the store of their jobs. Store is required.
type Options struct {
	Store Store
	// Services are the policies of the services that have a queue, by name.
	Services map[string]model.JobPolicy
	// Queued is called with the name of a service whose job begins to wait; it must not block. nil: the service is
	// nudged, if it is scaled.
	Queued func(service string)
}

// ErrPayloadDiffers means that the job id is already used by a job with another payload.
var ErrPayloadDiffers = errors.New("the same job_id was used with another body")

const (
	// updateTries is how often an update that lost is repeated on the new row. The others are the worker's own calls,
	// and the sweep.
	updateTries = 10
	// heartbeatGap is the minimum age of a heartbeat that a claim renews: a worker that asks every second must not
	// cause a write every second.
	heartbeatGap = 15 * time.Second
)

// Queue is the job queues of the services. A queue without services is valid. It is safe for concurrent use.
type Queue struct {
	Options
	driver *op.Driver
	log    hclog.Logger
}

// New returns the queues of the services in o.
func New(o Options, driver *op.Driver, log hclog.Logger) *Queue {
	return &Queue{Options: o, driver: driver, log: log}
}

// policy is that of a service that has a queue: ErrNotFound.
func (q *Queue) policy(service string) (model.JobPolicy, error) {
	if p, ok := q.Services[service]; ok {
		return p, nil
	}
	return model.JobPolicy{}, fmt.Errorf("service %s is not configured: %w", service, lifecycle.ErrNotFound)
}

// Submit adds a job to the queue of a service, and nudges the service. It is idempotent: a repeated call returns the
// stored job unchanged. The error is ErrPayloadDiffers if the id belongs to another job.
func (q *Queue) Submit(ctx context.Context, service, id string, payload []byte, now time.Time) (model.Job, error) {
	p, err := q.policy(service)
	if err != nil {
		return model.Job{}, err
	}
	err = q.Store.CreateWork(ctx, model.NewJob(service, id, payload, p, now))
	if err != nil && !errors.Is(err, lifecycle.ErrExists) {
		return model.Job{}, fmt.Errorf("submit job: %w", err)
	}
	j, err := q.Job(ctx, service, id)
	switch {
	case err != nil:
		return model.Job{}, err
	case !bytes.Equal(j.Payload, payload):
		return model.Job{}, fmt.Errorf("job %s of service %s: %w", id, service, ErrPayloadDiffers)
	}
	if j.State == model.JobWaiting {
		q.Queued(service)
	}
	return j, nil
}

// Job reads a job: ErrNotFound.
func (q *Queue) Job(ctx context.Context, service, id string) (model.Job, error) {
	if _, err := q.policy(service); err != nil {
		return model.Job{}, err
	}
	return q.Store.Work(ctx, service, id)
}

// Awaited says what a job waits for, until when, and what happens then.
func (q *Queue) Awaited(j model.Job) string { return j.Awaited(q.Services[j.Service]) }

// List lists the jobs of a service that are in one of the states, the oldest first; no states: all of them.
func (q *Queue) List(
	ctx context.Context, service string, states []model.JobState, page lifecycle.PageOf,
) (lifecycle.Page[model.Job], error) {
	if _, err := q.policy(service); err != nil {
		return lifecycle.Page[model.Job]{}, err
	}
	asked := slices.DeleteFunc(slices.Clone(model.JobStates), func(s model.JobState) bool {
		return len(states) > 0 && !slices.Contains(states, s)
	})
	return q.Store.ListWork(ctx, service, asked, page)
}

// AppendLog adds lines to a job's log and returns the job. The error is model.ErrStaleAttempt if the job is not running
// that attempt, and model.ErrLogGap, with the job as it is, if lines are missing before these.
func (q *Queue) AppendLog(
	ctx context.Context, service, id string, of model.JobAttempt, offset int64, lines string, now time.Time,
) (model.Job, error) {
	return q.update(ctx, service, id, func(j model.Job) (model.Job, error) { return j.Append(of, offset, lines, now) })
}

// Finish ends a job with its worker's result. The error is model.ErrStaleAttempt if the job is not running that attempt.
func (q *Queue) Finish(
	ctx context.Context, service, id string, of model.JobAttempt, succeeded bool, reason string, now time.Time,
) (model.Job, error) {
	j, err := q.update(ctx, service, id, func(j model.Job) (model.Job, error) {
		return j.Finish(of, succeeded, reason, now)
	})
	if err == nil {
		w, named := q.workerOf(ctx, j)
		q.clearWorker(ctx, w, named)
	}
	return j, err
}

// update reads a job, changes it and writes it, and repeats that if another write came between. A job that has ended is
// not written again. If change returns an error, update returns it with the job as it is.
func (q *Queue) update(
	ctx context.Context, service, id string, change func(model.Job) (model.Job, error),
) (model.Job, error) {
	for try := 0; ; try++ {
		j, err := q.Job(ctx, service, id)
		if err != nil {
			return j, err
		}
		next, err := change(j)
		if err != nil || j.State.Ended() {
			return next, err
		}
		next, err = q.Store.UpdateWork(ctx, next)
		if err == nil || !errors.Is(err, lifecycle.ErrConflict) {
			return next, err
		}
		if try == updateTries {
			return j, &lifecycle.UnavailableError{What: "change job " + id, Err: err}
		}
	}
}

// workerOf reads the worker of a job, and reports whether its row names the job.
func (q *Queue) workerOf(ctx context.Context, j model.Job) (w model.Worker, named bool) {
	if j.WorkerID == "" {
		return w, false
	}
	w, err := q.Store.Worker(ctx, j.Service, j.WorkerID)
	if err != nil {
		q.log.Debug("row of a worker not read; it may name a job that it does not have", logkey.Service, j.Service, logkey.Worker, j.WorkerID, logkey.Job, j.ID, logkey.Error, err)
	}
	return w, err == nil && w.JobID == j.ID
}

// clearWorker removes a job that no longer has its worker from the worker's row. It only matters to callers that list
// workers: the job's row says which worker has it. For a job that waits again the row must have been read before that: then
// it stays if the worker has taken the job once more.
func (q *Queue) clearWorker(ctx context.Context, w model.Worker, named bool) {
	if !named {
		return
	}
	id := w.JobID
	w.JobID = ""
	if _, err := q.Store.UpdateWorker(ctx, w); err != nil {
		q.log.Debug("worker is listed with a job that it may not have", logkey.Service, w.Service, logkey.Worker, w.ID, logkey.Job, id, logkey.Error, err)
	}
}

// Heartbeat stores the heartbeat of a worker.
func (q *Queue) Heartbeat(ctx context.Context, service, id, version string, now time.Time) (model.Worker, error) {
	if _, err := q.policy(service); err != nil {
		return model.Worker{}, err
	}
	for try := 0; ; try++ {
		w, err := q.worker(ctx, service, id)
		if err == nil {
			w, err = q.Store.UpdateWorker(ctx, w.WithHeartbeat(version, now))
		}
		if err == nil || !errors.Is(err, lifecycle.ErrConflict) {
			return w, err
		}
		if try == updateTries {
			return w, &lifecycle.UnavailableError{What: "hear worker " + id, Err: err}
		}
	}
}

// worker reads a worker. A worker without a row has only its name.
func (q *Queue) worker(ctx context.Context, service, id string) (model.Worker, error) {
	w, err := q.Store.Worker(ctx, service, id)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return model.Worker{Service: service, ID: id}, nil
	}
	return w, err
}

// Workers lists the workers of a service, by id.
func (q *Queue) Workers(ctx context.Context, service string, page lifecycle.PageOf) (lifecycle.Page[model.Worker], error) {
	if _, err := q.policy(service); err != nil {
		return lifecycle.Page[model.Worker]{}, err
	}
	return q.Store.Workers(ctx, service, page)
}

// Store keeps the job queues of the services and their workers. Its errors are those of fleet.Store.
type Store interface {
	// CreateWork writes a new job: ErrExists if the service has one with its id.
	CreateWork(ctx context.Context, j model.Job) error
	// UpdateWork replaces the job if its stored version is j.Version, and returns it as stored, with the next version.
	// Otherwise the error is ErrConflict. A claim is such an update: of two workers that read the same waiting job, one loses.
	UpdateWork(ctx context.Context, j model.Job) (model.Job, error)
	// Work reads one job, consistently: ErrNotFound.
	Work(ctx context.Context, service, id string) (model.Job, error)
	// WaitingWork lists the ids of at most limit waiting jobs of a service, the oldest first. It does not read the jobs,
	// whose payloads may be large. The index may lag.
	WaitingWork(ctx context.Context, service string, limit int) ([]string, error)
	// CountWork counts the waiting and the running jobs of a service, at most atMost of each. It reads no more than it
	// counts. The index may lag.
	CountWork(ctx context.Context, service string, atMost int) (model.JobCount, error)
	// ListWork lists the jobs of a service that are in one of the states, the oldest first; no states: no jobs. The
	// index may lag.
	ListWork(ctx context.Context, service string, states []model.JobState, page lifecycle.PageOf) (lifecycle.Page[model.Job], error)
	// DueWork is DueInstances for the jobs of all services.
	DueWork(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[model.Job], error)

	// Worker reads one worker, consistently: ErrNotFound.
	Worker(ctx context.Context, service, id string) (model.Worker, error)
	// UpdateWorker replaces the worker if its stored version is w.Version (0: there is no row), and returns it as
	// stored, with the next version. Otherwise the error is ErrConflict.
	UpdateWorker(ctx context.Context, w model.Worker) (model.Worker, error)
	// Workers lists the workers of a service, by id.
	Workers(ctx context.Context, service string, page lifecycle.PageOf) (lifecycle.Page[model.Worker], error)
}
