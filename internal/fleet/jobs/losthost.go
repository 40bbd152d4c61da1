package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

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
