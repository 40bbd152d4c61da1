package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

const (
	// claimPage is how many of the waiting jobs a claim looks at, so that of many
	// workers who ask at once most find a job that no other takes.
	claimPage = 25
	// claimRounds is how often it looks anew. Who gets nothing by then asks again.
	claimRounds = 8
)

// claim is a worker's search for a job.
type claim struct {
	f       *Fleet
	worker  model.Worker
	version string
	now     time.Time
}

// ClaimWork gives a worker the job that it has, or else the one that waits the
// longest; false: none waits.
//
// What it is about to take is written in the worker's row first. So when an
// answer is lost, or controld dies between the two writes, the next call finds
// the job, and nobody has to list what runs.
func (f *Fleet) ClaimWork(ctx context.Context, service, workerID, version string, now time.Time) (model.Job, bool, error) {
	if _, err := f.workService(service); err != nil {
		return model.Job{}, false, err
	}
	c := &claim{f: f, version: version, now: now}
	for range claimRounds {
		j, found, err := c.round(ctx, service, workerID)
		if !errors.Is(err, lifecycle.ErrConflict) {
			return j, found, err
		}
	}
	return model.Job{}, false, nil
}

// round looks once: ErrLost says to look again.
func (c *claim) round(ctx context.Context, service, workerID string) (_ model.Job, found bool, err error) {
	if c.worker, err = c.f.worker(ctx, service, workerID); err != nil {
		return model.Job{}, false, err
	}
	if c.worker.JobID != "" {
		j, err := c.take(ctx, c.worker.JobID)
		if err == nil || !c.another(ctx, c.worker.JobID, err) {
			return j, err == nil, err
		}
	}
	ids, err := c.f.workers.Store.WaitingWork(ctx, service, claimPage)
	if err != nil {
		return model.Job{}, false, err
	}
	if len(ids) == 0 {
		return model.Job{}, false, c.heard(ctx)
	}
	// The oldest; who comes too late for it tries the others in an order of its
	// own, or all would meet again at each of them.
	c.f.shuffle(ids[1:])
	for _, id := range ids {
		j, failed := c.claim(ctx, id)
		if failed == nil || !c.another(ctx, id, failed) {
			return j, failed == nil, failed
		}
		if !errors.Is(err, lifecycle.ErrConflict) {
			err = failed // ErrLost if only one was: it is worth another look
		}
	}
	return model.Job{}, false, err
}

// another reports whether to try another job than one that could not be taken. It
// may be damaged, which is no reason to keep those behind it from the worker.
func (c *claim) another(ctx context.Context, id string, err error) bool {
	if lost := errors.Is(err, lifecycle.ErrConflict); lost || op.Transient(ctx, err) {
		return lost
	}
	c.f.log.Warn("job cannot be claimed; trying the next", "service", c.worker.Service, "job", id, "error", err)
	return true
}

// claim takes a job that should wait, after the worker's row says so: ErrLost if
// another has it.
func (c *claim) claim(ctx context.Context, id string) (model.Job, error) {
	j, err := c.f.workers.Store.Work(ctx, c.worker.Service, id)
	if errors.Is(err, lifecycle.ErrNotFound) || err == nil && j.State != model.JobWaiting {
		return j, fmt.Errorf("claim job %s: %w", id, lifecycle.ErrConflict) // the index lags
	}
	if err != nil {
		return j, err
	}
	w := c.worker.WithHeartbeat(c.version, c.now)
	w.JobID = id
	stored, err := c.f.workers.Store.UpdateWorker(ctx, w)
	if err != nil {
		return j, err
	}
	c.worker = stored
	return c.take(ctx, id)
}

// take takes the job that the worker's row names, or finds that it has it
// already, by another call of its own perhaps: ErrLost if another has it, or
// nobody any more.
func (c *claim) take(ctx context.Context, id string) (model.Job, error) {
	for try := 0; ; try++ {
		j, err := c.f.workers.Store.Work(ctx, c.worker.Service, id)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			return j, fmt.Errorf("claim job %s: %w", id, lifecycle.ErrConflict)
		case err != nil:
			return j, err
		case j.RunBy(c.worker.ID) && !c.now.After(j.ActivityAt):
			return j, nil
		case j.RunBy(c.worker.ID):
			// It is a word of the worker's: the sweep must not find it silent now.
			j, err = j.Append(model.JobAttempt{WorkerID: c.worker.ID, Number: j.Attempt}, j.LogBytes, "", c.now)
		default:
			j, err = j.Claim(c.worker.ID, c.now)
		}
		if err != nil {
			return j, err
		}
		j, err = c.f.workers.Store.UpdateWork(ctx, j)
		if err == nil || !errors.Is(err, lifecycle.ErrConflict) {
			return j, err
		}
		// Who was faster may have been this worker, or the sweep.
		if try == changeTries {
			return j, &lifecycle.UnavailableError{What: "claim job " + id, Err: fmt.Errorf("it is written all the time: %v", err)}
		}
	}
}

// heard renews the heartbeat of a worker for which there is no job.
func (c *claim) heard(ctx context.Context) error {
	w := c.worker
	if c.now.Sub(w.HeartbeatAt) < heardAgain && (c.version == "" || c.version == w.WorkerVersion) {
		return nil
	}
	_, err := c.f.workers.Store.UpdateWorker(ctx, w.WithHeartbeat(c.version, c.now))
	if errors.Is(err, lifecycle.ErrConflict) {
		return nil // by another call of its own: it was heard
	}
	return err
}

// shuffle brings ids into any order.
func (f *Fleet) shuffle(ids []string) {
	f.ops.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
}
