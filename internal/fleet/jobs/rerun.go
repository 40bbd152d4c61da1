package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

const (
	// rerunKind is the kind of the rows that record each attempt of a run whose
	// failed jobs were started again.
	rerunKind = "rerun"
	// rerunAttempts is the attempt from which an interrupted run is left to people, so it is started again
	// only once. Where capacity is taken back twice it is likely to be taken back again.
	rerunAttempts = 2
)

// lostJob reports whether an attempt of a run failed and lost a job with an interrupted host, in a pool that
// has such runs started again. It counts hosts whose record says that they took the job with them, and
// interrupted hosts that were busy by the last report of their agent.
func (js *Jobs) lostJob(ctx context.Context, requests []lifecycle.Request, run lifecycle.WorkflowRun, now time.Time) (bool, error) {
	if run.Conclusion != "failure" || run.RunAttempt >= rerunAttempts {
		return false, nil
	}
	for _, q := range requests {
		if !js.Pools[q.Spec.Pool].RerunInterrupted || q.Spec.RunAttempt != run.RunAttempt {
			continue
		}
		keys := make([]string, 0, len(q.Taken))
		for _, t := range q.Taken {
			keys = append(keys, t.HostKey)
		}
		records, err := js.Store.Instances(ctx, keys)
		if err != nil {
			return false, fmt.Errorf("read hosts of request %s: %w", q.RequestID, err)
		}
		reports, err := js.Hosts.Reports(ctx, keys, now)
		if err != nil {
			return false, err
		}
		for _, r := range records {
			report := reports[r.HostKey]
			interrupted := !r.InterruptionAt.IsZero() || !report.InterruptionAt.IsZero()
			ofIt := hosts.Serves(r, q) || hosts.Leaves(r, q)
			if r.LostJob == lifecycle.LostJobOf(run.Repository, run.RunID, run.RunAttempt) || ofIt && interrupted && report.Busy {
				return true, nil
			}
		}
	}
	return false, nil
}

// startAgain has the failed jobs of an attempt started again, once. The intent is written before GitHub is
// called. A replica that finds it written asks GitHub whether the jobs were started, so a crash in between
// loses nothing and repeats nothing.
func (h *webhookOp) startAgain(released string) func(context.Context, time.Time) (op.Progress, error) {
	run := *h.w.Run
	return func(ctx context.Context, now time.Time) (op.Progress, error) {
		budget, err := h.env.Provision.Quota.BudgetAgainst(ctx, run.Repository, now)
		if err != nil {
			return op.Again, err
		}
		if budget != nil { // they would wait for hosts that they do not get
			return h.finish(released + "; its failed jobs are not started again: " + budget.Reason().Text)
		}
		err = h.env.Options.Store.SeeOnce(ctx, rerunKind, lifecycle.LostJobOf(run.Repository, run.RunID, run.RunAttempt), now.Add(keepWebhooks))
		if errors.Is(err, lifecycle.ErrExists) {
			var is lifecycle.WorkflowRun
			if is, err = h.env.Options.GitHub.WorkflowRun(ctx, run.Repository, run.RunID); err == nil &&
				(is.Status != lifecycle.StatusCompleted || is.RunAttempt != run.RunAttempt) {
				return h.finish(released + "; its failed jobs were started again")
			}
		}
		if err != nil {
			return op.Again, fmt.Errorf("start the failed jobs of run %s again: %w", run.RunID, err)
		}
		h.Next = func(ctx context.Context, now time.Time) (op.Progress, error) {
			err := h.env.Options.GitHub.RerunFailedJobs(ctx, run.Repository, run.RunID)
			switch {
			case errors.Is(err, lifecycle.ErrUnavailable):
				h.Next = h.startAgain(released) // the call may have taken effect
				return op.Again, err
			case err != nil:
				return h.finish(released + "; its failed jobs were not started again: " + err.Error())
			}
			h.Events.RecordEffect(lifecycle.Event{
				At: now, Repository: run.Repository, RunID: run.RunID, Action: lifecycle.ActionSettle, Code: lifecycle.ReasonInterruption,
				Reason: fmt.Sprintf("attempt %d lost a job with an interrupted host: its failed jobs are started again", run.RunAttempt),
			})
			return h.finish(released + "; its failed jobs are started again, since a job was lost with an interrupted host")
		}
		return op.Again, nil
	}
}

// RunOf asks GitHub for the run of some jobs, which must all be of the same run. The
// rules need the run's repository and owner ids, and one call answers for all jobs. If
// GitHub does not answer, the webhook of each job asks when it is handled.
func (js *Jobs) RunOf(ctx context.Context, jobs []lifecycle.Job) lifecycle.WorkflowRun {
	if len(js.Options.Rules) == 0 {
		return lifecycle.WorkflowRun{}
	}
	run, err := js.Options.GitHub.WorkflowRun(ctx, jobs[0].Repository, jobs[0].RunID)
	if err != nil {
		js.Log.Warn("GitHub not asked about a run that lost a host; its jobs ask later", logkey.Run, jobs[0].RunID, logkey.Error, err)
	}
	return run
}

// ProvideAgain handles a waiting job that lost host as if its webhook came now. The
// delivery is named after the assignment of the host, so a repeat does nothing.
func (js *Jobs) ProvideAgain(ctx context.Context, host lifecycle.Record, j lifecycle.Job, run lifecycle.WorkflowRun, now time.Time) error {
	err := js.TakeWebhook(ctx, lifecycle.Webhook{
		DeliveryID: fmt.Sprintf("ended-%s-%d-%d", host.InstanceID, host.Assignment, j.ID), Kind: lifecycle.WebhookHostEnded, Action: lifecycle.StatusQueued,
		RepositoryID: run.RepositoryID, OwnerID: run.OwnerID,
		Job: &lifecycle.WorkflowJob{
			ID: j.ID, Repository: j.Repository, RunID: j.RunID, RunAttempt: j.RunAttempt, Labels: j.Labels,
			Status: lifecycle.StatusQueued, QueuedAt: j.QueuedAt,
		},
	}, now)
	if errors.Is(err, ErrNotOurs) || errors.Is(err, lifecycle.ErrExists) {
		return nil
	}
	return err
}
