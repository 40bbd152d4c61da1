package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

// Services of runners and their job queues are rooms of their own: see packages services and workqueue. Here they are
// joined to the fleet: its hold, its lease of the sweeps, its history.

// setServices builds the services and their queues. Without options there are none.
func (f *Fleet) setServices(o Options) error {
	var queues workqueue.Options
	if o.Workers != nil {
		if queues = *o.Workers; queues.Store == nil {
			return errors.New("the queues of services need a store")
		}
	}
	if queues.Queued == nil {
		queues.Queued = f.NudgeSoon
	}
	f.work = workqueue.New(queues, f.ops, f.log)
	var all services.Options
	if o.Services != nil {
		all = *o.Services
	}
	var err error
	f.services, err = services.New(all, services.Env{
		Driver: f.ops, Log: f.log, MayEnd: f.hosts.MayEnd, Sweeping: f.sweeps.Sweeping, Lease: f.timing.Lease,
		Interval: f.timing.Services, Swept: f.observer.Swept, Queue: f.work,
	})
	return err
}

// Services pages through the configured services; see services.Services.List.
func (f *Fleet) Services(ctx context.Context, of lifecycle.PageOf) (lifecycle.Page[services.Status], error) {
	return f.services.List(ctx, of)
}

// NudgeService checks a service now; see services.Services.Nudge.
func (f *Fleet) NudgeService(ctx context.Context, name string) (services.Status, error) {
	return f.services.Nudge(ctx, name)
}

// NudgeSoon schedules a check of a service and does not wait for it.
func (f *Fleet) NudgeSoon(name string) { f.services.NudgeSoon(name) }

// ServeServices sweeps the services, and checks those that are nudged, until ctx ends.
func (f *Fleet) ServeServices(ctx context.Context) { f.services.Serve(ctx) }

// NewServiceSweep begins a sweep of every service that is scaled.
func (f *Fleet) NewServiceSweep() *services.Sweep { return f.services.NewSweep() }

// NewWorkSweep begins a sweep of the jobs of services.
func (f *Fleet) NewWorkSweep() *workqueue.Sweep { return f.work.NewSweep() }

// SubmitWork adds a job to the queue of a service; see workqueue.Queue.Submit.
func (f *Fleet) SubmitWork(ctx context.Context, service, id string, payload []byte, now time.Time) (model.Job, error) {
	if err := f.CheckClock(); err != nil {
		return model.Job{}, err
	}
	return f.work.Submit(ctx, service, id, payload, now)
}

// Work reads a job: ErrNotFound.
func (f *Fleet) Work(ctx context.Context, service, id string) (model.Job, error) {
	return f.work.Job(ctx, service, id)
}

// WorkAwaited says what a job waits for, until when, and what happens then.
func (f *Fleet) WorkAwaited(j model.Job) string { return f.work.Awaited(j) }

// ListWork lists the jobs of a service that are in one of the states, the oldest first; no states: all of them.
func (f *Fleet) ListWork(
	ctx context.Context, service string, states []model.JobState, page lifecycle.PageOf,
) (lifecycle.Page[model.Job], error) {
	return f.work.List(ctx, service, states, page)
}

// ClaimWork gives a worker a job; see workqueue.Queue.Claim.
func (f *Fleet) ClaimWork(ctx context.Context, service, workerID, version string, now time.Time) (model.Job, bool, error) {
	if err := f.CheckClock(); err != nil {
		return model.Job{}, false, err
	}
	return f.work.Claim(ctx, service, workerID, version, now)
}

// AppendWorkLog adds lines to a job's log; see workqueue.Queue.AppendLog. An offset after the end of the log is an
// *InvalidError.
func (f *Fleet) AppendWorkLog(
	ctx context.Context, service, id string, of model.JobAttempt, offset int64, lines string, now time.Time,
) (model.Job, error) {
	if err := f.CheckClock(); err != nil {
		return model.Job{}, err
	}
	j, err := f.work.AppendLog(ctx, service, id, of, offset, lines, now)
	if errors.Is(err, model.ErrLogGap) {
		return j, &InvalidError{Field: "offset", Rule: fmt.Sprintf("is %d, and the log has %d bytes: send what is between first", offset, j.LogBytes)}
	}
	return j, err
}

// FinishWork ends a job with its worker's result; see workqueue.Queue.Finish.
func (f *Fleet) FinishWork(
	ctx context.Context, service, id string, of model.JobAttempt, succeeded bool, reason string, now time.Time,
) (model.Job, error) {
	if err := f.CheckClock(); err != nil {
		return model.Job{}, err
	}
	return f.work.Finish(ctx, service, id, of, succeeded, reason, now)
}

// HearWorker stores the heartbeat of a worker.
func (f *Fleet) HearWorker(ctx context.Context, service, id, version string, now time.Time) (model.Worker, error) {
	if err := f.CheckClock(); err != nil {
		return model.Worker{}, err
	}
	return f.work.Heartbeat(ctx, service, id, version, now)
}

// Workers lists the workers of a service, by id.
func (f *Fleet) Workers(ctx context.Context, service string, page lifecycle.PageOf) (lifecycle.Page[model.Worker], error) {
	return f.work.Workers(ctx, service, page)
}
