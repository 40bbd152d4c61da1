package jobs

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/jobname"
)

// recordProgress records that a job has started or is over, if its state has changed so. The history of its run then answers for it
// after its row is done, and for a job of a job pool there is no other: its host works for the pool and not for its run.
func recordProgress(events *op.Recorder, before, after lifecycle.Job, pool string, now time.Time) {
	e := lifecycle.Event{At: now, Repository: after.Repository, RunID: after.RunID, Pool: pool, JobID: after.ID, JobName: after.Name, Since: after.QueuedAt}
	switch {
	case before.State == after.State:
		return
	case after.State == lifecycle.JobRunning:
		e.Action, e.Code = lifecycle.ActionStartJob, lifecycle.ReasonJobStarted
		e.Reason = fmt.Sprintf("job %s started on %s, %s after it was queued", jobname.Of(after), after.RunnerName, lasted(after.QueuedAt, after.StartedAt))
	case after.State == lifecycle.JobDone:
		e.Action, e.Code = lifecycle.ActionEndJob, lifecycle.ReasonJobEnded
		e.Reason = fmt.Sprintf("job %s is over: %s", jobname.Of(after), jobname.Outcome(after))
		if hasRunner(after) {
			e.Since = after.StartedAt
		}
	default:
		return
	}
	events.Record(e)
}

func lasted(from, to time.Time) time.Duration { return max(0, to.Sub(from)).Round(time.Second) }
