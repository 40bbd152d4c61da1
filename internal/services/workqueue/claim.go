package workqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/logkey"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

const (
	// claimPage is how many of the waiting jobs a claim considers, so that of many workers that ask at once most find a
	// job that no other takes.
	claimPage = 25
	// claimRounds is how often a claim starts again. A worker that got nothing by then asks again.
	claimRounds = 8
)

// claim is a worker's search for a job.
type claim struct {
	q       *Queue
	worker  model.Worker
	version string
	now     time.Time
}

// Claim gives a worker the job that it has, or else the one that has waited longest; false: no job waits.
//
// The worker's row names the job before the job's row names the worker. If an answer is lost, or controld dies between
// the two writes, the worker's next call finds the job without a list of running jobs.
func (q *Queue) Claim(ctx context.Context, service, workerID, version string, now time.Time) (model.Job, bool, error) {
	if _, err := q.policy(service); err != nil {
		return model.Job{}, false, err
	}
	c := &claim{q: q, version: version, now: now}
	for range claimRounds {
		j, found, err := c.round(ctx, service, workerID)
		if !errors.Is(err, lifecycle.ErrConflict) {
			return j, found, err
		}
	}
	return model.Job{}, false, nil
}

// round searches once: ErrConflict asks for another round.
func (c *claim) round(ctx context.Context, service, workerID string) (_ model.Job, found bool, err error) {
	if c.worker, err = c.q.worker(ctx, service, workerID); err != nil {
		return model.Job{}, false, err
	}
	if c.worker.JobID != "" {
		j, err := c.claim(ctx, c.worker.JobID)
		if err == nil || !c.tryNext(ctx, c.worker.JobID, err) {
			return j, err == nil, err
		}
	}
	ids, err := c.q.Store.WaitingWork(ctx, service, claimPage)
	if err != nil {
		return model.Job{}, false, err
	}
	if len(ids) == 0 {
		return model.Job{}, false, c.heartbeat(ctx)
	}
	// The oldest job goes first. A worker that comes too late for it tries the others in random order; otherwise all
	// such workers would meet again at each of them.
	rest := ids[1:]
	c.q.driver.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	for _, id := range ids {
		j, failed := c.claim(ctx, id)
		if failed == nil || !c.tryNext(ctx, id, failed) {
			return j, failed == nil, failed
		}
		if !errors.Is(err, lifecycle.ErrConflict) {
			err = failed // ErrConflict if any of them was: then another round is worth it
		}
	}
	return model.Job{}, false, err
}

// tryNext reports whether to try another job after one that could not be taken. The job may be damaged, which must not
// keep the worker from the jobs behind it.
func (c *claim) tryNext(ctx context.Context, id string, err error) bool {
	if lost := errors.Is(err, lifecycle.ErrConflict); lost || op.Transient(ctx, err) {
		return lost
	}
	c.q.log.Warn("job cannot be claimed; trying the next", logkey.Service, c.worker.Service, logkey.Job, id, logkey.Error, err)
	return true
}

// claim takes a waiting job, after it has written the job into the worker's row: ErrConflict if another worker has it. The row
// is written even if it names the job already: another call of the worker, which could not get the job before it was queued
// again, then does not write a second one in its place.
func (c *claim) claim(ctx context.Context, id string) (model.Job, error) {
	j, err := c.q.Store.Work(ctx, c.worker.Service, id)
	if err == nil && j.RunBy(c.worker.ID) {
		return c.take(ctx, id)
	}
	if errors.Is(err, lifecycle.ErrNotFound) || err == nil && j.State != model.JobWaiting {
		return j, fmt.Errorf("claim job %s: %w", id, lifecycle.ErrConflict) // the index lags
	}
	if err != nil {
		return j, err
	}
	w := c.worker.WithHeartbeat(c.version, c.now)
	w.JobID = id
	stored, err := c.q.Store.UpdateWorker(ctx, w)
	if err != nil {
		return j, err
	}
	c.worker = stored
	return c.take(ctx, id)
}

// take takes a job that was written into the worker's row, or finds that the worker has it already, possibly by another of
// its calls. The error is ErrConflict if another worker has the job, or it has ended.
func (c *claim) take(ctx context.Context, id string) (model.Job, error) {
	for try := 0; ; try++ {
		j, err := c.q.Store.Work(ctx, c.worker.Service, id)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			return j, fmt.Errorf("claim job %s: %w", id, lifecycle.ErrConflict)
		case err != nil:
			return j, err
		case j.RunBy(c.worker.ID) && !c.now.After(j.ActivityAt):
			return j, nil
		case j.RunBy(c.worker.ID):
			// The call is a report of the worker: the sweep must not find it silent now.
			j, err = j.Append(model.JobAttempt{WorkerID: c.worker.ID, Number: j.Attempt}, j.LogBytes, "", c.now)
		default:
			j, err = j.Claim(c.worker.ID, c.now)
		}
		if err != nil {
			return j, err
		}
		j, err = c.q.Store.UpdateWork(ctx, j)
		if err == nil || !errors.Is(err, lifecycle.ErrConflict) {
			return j, err
		}
		// The other write may be this worker's own, or the sweep's.
		if try == updateTries {
			return j, &lifecycle.UnavailableError{What: "claim job " + id, Err: fmt.Errorf("it is written all the time: %v", err)}
		}
	}
}

// heartbeat renews the heartbeat of a worker that gets no job.
func (c *claim) heartbeat(ctx context.Context) error {
	w := c.worker
	if c.now.Sub(w.HeartbeatAt) < heartbeatGap && (c.version == "" || c.version == w.WorkerVersion) {
		return nil
	}
	_, err := c.q.Store.UpdateWorker(ctx, w.WithHeartbeat(c.version, c.now))
	if errors.Is(err, lifecycle.ErrConflict) {
		return nil // another call of the same worker renewed it
	}
	return err
}
