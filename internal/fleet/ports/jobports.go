package ports

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// JobStore keeps what GitHub told us, the jobs and the accounts of the job
// pools. Its errors are those of Store.
type JobStore interface {
	// CreateWebhook remembers a delivery: ErrExists if its id is known.
	CreateWebhook(ctx context.Context, w lifecycle.Webhook) error
	// UpdateWebhook replaces the row whose stored version is w.Version and
	// returns it as stored, with the next version. Else: ErrLost.
	UpdateWebhook(ctx context.Context, w lifecycle.Webhook) (lifecycle.Webhook, error)
	// Webhook reads one, consistently: ErrNotFound.
	Webhook(ctx context.Context, deliveryID string) (lifecycle.Webhook, error)
	// DueWebhooks is DueInstances for webhooks.
	DueWebhooks(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Webhook], error)

	// CreateJob writes a new job: ErrExists if its id is taken.
	CreateJob(ctx context.Context, j lifecycle.Job) error
	// UpdateJob replaces the job whose stored version is j.Version and returns
	// it as stored, with the next version. Else: ErrLost.
	UpdateJob(ctx context.Context, j lifecycle.Job) (lifecycle.Job, error)
	// Job reads one, consistently: ErrNotFound.
	Job(ctx context.Context, id int64) (lifecycle.Job, error)
	// OpenJobsOfRun lists the jobs of a run that are not done, in any order. The index may lag.
	OpenJobsOfRun(ctx context.Context, repository, runID string) ([]lifecycle.Job, error)
	// WaitingJobs lists the waiting jobs of a pool, in the order of Job.Before. The index may lag.
	WaitingJobs(ctx context.Context, pool string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Job], error)
	// DueJobs is DueInstances for jobs.
	DueJobs(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Job], error)

	// SlotTable reads the accounts of a pool, consistently. A pool that has none has
	// empty ones, of version 0.
	SlotTable(ctx context.Context, pool string) (lifecycle.SlotTable, error)
	// UpdateSlotTable replaces the accounts whose stored version is t.Version (0: there are none) and returns
	// them as stored, with the next version. Else: ErrLost.
	UpdateSlotTable(ctx context.Context, t lifecycle.SlotTable) (lifecycle.SlotTable, error)

	// SeeOnce remembers an id of a kind until a time: ErrExists if it is
	// remembered already. It is one conditional write.
	SeeOnce(ctx context.Context, kind, id string, until time.Time) error
}

// GitHubJobs is what jobs need of GitHub beside the registrations of runs.
type GitHubJobs interface {
	// JIT registers a runner for exactly one job, and returns the configuration that its listener starts
	// with, and the id of the registration. A name that an earlier call took, whose answer was lost, is taken
	// over; while the runner of that name runs a job it is ErrBusy.
	JIT(ctx context.Context, repository, name string, labels []string) (lifecycle.Registration, int64, error)
	// WorkflowRun reads a run as it is now: ErrNotFound.
	WorkflowRun(ctx context.Context, repository, runID string) (lifecycle.WorkflowRun, error)
	// WorkflowJob reads a job as it is now: ErrNotFound.
	WorkflowJob(ctx context.Context, repository string, id int64) (lifecycle.WorkflowJob, error)
	// RerunFailedJobs starts those jobs of a completed run again that did not
	// succeed, as its next attempt. ErrRefused where GitHub does not.
	RerunFailedJobs(ctx context.Context, repository, runID string) error
	// MissedDeliveries lists the deliveries since a time that GitHub could not
	// hand over, the oldest first: those of the webhook of each App. With a
	// personal access token there are none to be asked for: ErrNotFound.
	MissedDeliveries(ctx context.Context, since time.Time) ([]lifecycle.MissedDelivery, error)
	// DeliveryPayload is the body of a missed delivery.
	DeliveryPayload(ctx context.Context, d lifecycle.MissedDelivery) ([]byte, error)
	// QueuedJobs lists the jobs of a repository that wait for a runner.
	QueuedJobs(ctx context.Context, repository string) ([]lifecycle.WorkflowJob, error)
}
