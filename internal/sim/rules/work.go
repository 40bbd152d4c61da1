package rules

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// workRowReplaced forgets what the row of a job no longer knows: which attempts were given to a worker, and since when.
func (w *Watcher) workRowReplaced(id string) {
	w.workReplaced[id] = true
	maps.DeleteFunc(w.had, func(attempt, _ string) bool { return strings.HasPrefix(attempt, id+" ") })
	w.claimedAt[id], w.waitsSince[id] = w.Now, w.Now
}

// WorkWasReplaced reports whether the row of a service's job was lost, or got an older state, at some time.
func (w *Watcher) WorkWasReplaced(id string) bool { return w.workReplaced[id] }

// WorkGiven checks that one attempt of a job belongs to one worker.
func (w *Watcher) WorkGiven(worker string, j model.Job) {
	attempt := fmt.Sprintf("%s attempt %d", j.ID, j.Attempt)
	if other := w.had[attempt]; other != "" && other != worker {
		w.Broken(RuleWorkTwice, "%s is given to %s, and %s has it", attempt, worker, other)
	}
	w.had[attempt] = worker
}

// workWritten follows a job.
func (w *Watcher) workWritten(before, after model.Job) {
	if before.State == model.JobRunning && after.State == model.JobRunning && before.WorkerID != after.WorkerID || after.Version != before.Version+1 {
		w.Broken(RuleWorkTwice, "%s goes from %q to %q, version %d to %d", after.ID, before.WorkerID, after.WorkerID, before.Version, after.Version)
	}
	if after.State == model.JobRunning && before.State != model.JobRunning {
		w.claimedAt[after.ID] = w.Now
		row, err := w.Truth.Worker(engine.Background, after.Service, after.WorkerID)
		if (err != nil || row.JobID != after.ID) && !w.workersReplaced[after.WorkerID] {
			w.Broken(RuleWorkUnnamed, "%s goes to %s, whose row names %q: %v", after.ID, after.WorkerID, row.JobID, err)
		}
	}
	if after.State == model.JobWaiting {
		w.waitsSince[after.ID] = w.Now
	}
}

// workerWritten checks that a row goes on naming the job that its worker has: a worker that did not get the answer of its
// claim has the job by that alone.
func (w *Watcher) workerWritten(before, after model.Worker) {
	delete(w.workersReplaced, after.ID)
	if before.JobID == "" || before.JobID == after.JobID {
		return
	}
	j, err := w.Truth.Work(engine.Background, before.Service, before.JobID)
	if err == nil && j.RunBy(before.ID) {
		w.Broken(RuleWorkUnnamed, "the row of %s goes from %s, which it has, to %q", before.ID, before.JobID, after.JobID)
	}
}

// workBound is how long a job may wait once the faults are over: until the next check of the
// service, the start of a container, and the jobs before it. Each of those takes at most
// 4 minutes, or fails after a silence and is started once more.
const workBound = 45 * time.Minute

// runnerBound is how long a service may have no runner while a job waits.
const runnerBound = 5 * time.Minute

// checkWork checks that a waiting job gets a runner within bounded time.
func (w *Watcher) checkWork() {
	if w.CalmSince.IsZero() {
		return
	}
	for _, id := range w.WorkIDs {
		j, err := w.Truth.Work(engine.Background, world.ServiceName, id)
		if err != nil || j.State != model.JobWaiting {
			continue
		}
		waits := min(w.Now.Sub(w.waitsSince[id]), w.Now.Sub(w.CalmSince)-settleAfter)
		if waits > workBound || waits > runnerBound && w.ECS.Desired == 0 {
			w.Broken(RuleUnserved, "job %s waits since %s, and the service has a desired count of %d", id, engine.SinceEpoch(w.waitsSince[id]), w.ECS.Desired)
		}
	}
}

// checkScaled checks that a service is not scaled in while a runner is busy, as far as the
// replica that does it could see when it counted last.
func (w *Watcher) checkScaled(desired int) {
	if desired >= w.ECS.Desired || w.scalesOutLate(desired) {
		return
	}
	counted := w.Current.LastLook(world.SeesJobCounts).At
	for _, id := range w.WorkIDs {
		j, err := w.Truth.Work(engine.Background, world.ServiceName, id)
		if err == nil && j.State == model.JobRunning && w.claimedAt[id].Before(counted) {
			w.Broken(RuleBusyScaledIn, "the service goes from %d to %d while %s has %s since %s; it was counted at %s",
				w.ECS.Desired, desired, j.WorkerID, id, engine.SinceEpoch(w.claimedAt[id]), engine.SinceEpoch(counted))
		}
	}
	w.Mark(engine.MarkScaledIn)
}

// justBefore is how long a replica may take between its last look at a service and its call, beside the time for which it is suspended.
const justBefore = time.Second

// scalesOutLate reports whether the replica saw no more runners than it asks for just before its call, and was suspended until another one had asked for more.
// ECS takes no condition, so the late call ends runners. Their workers keep them by the protection of their tasks (docs/services.md).
func (w *Watcher) scalesOutLate(desired int) bool {
	for n := range desired + 1 {
		if look := w.Current.LastLook(world.SeesDesired(n)); !look.At.IsZero() && w.AgeOf(look) < justBefore {
			return true
		}
	}
	return false
}
