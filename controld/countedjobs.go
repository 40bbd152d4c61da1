package main

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

type (
	webhook = lifecycle.Webhook
	job     = lifecycle.Job
	turns   = lifecycle.SlotTable
)

// countedJobs is a job store whose calls are counted.
type countedJobs struct {
	fleet.JobStore
	counter
}

func (s countedJobs) CreateWebhook(ctx context.Context, w webhook) (err error) {
	defer s.count("create_webhook", &err)
	return s.JobStore.CreateWebhook(ctx, w)
}

func (s countedJobs) UpdateWebhook(ctx context.Context, w webhook) (_ webhook, err error) {
	defer s.count("update_webhook", &err)
	return s.JobStore.UpdateWebhook(ctx, w)
}

func (s countedJobs) Webhook(ctx context.Context, deliveryID string) (_ webhook, err error) {
	defer s.count("webhook", &err)
	return s.JobStore.Webhook(ctx, deliveryID)
}

func (s countedJobs) DueWebhooks(ctx context.Context, now time.Time, page pageOf) (_ lifecycle.Page[webhook], err error) {
	defer s.count("due_webhooks", &err)
	return s.JobStore.DueWebhooks(ctx, now, page)
}

func (s countedJobs) CreateJob(ctx context.Context, j job) (err error) {
	defer s.count("create_job", &err)
	return s.JobStore.CreateJob(ctx, j)
}

func (s countedJobs) UpdateJob(ctx context.Context, j job) (_ job, err error) {
	defer s.count("update_job", &err)
	return s.JobStore.UpdateJob(ctx, j)
}

func (s countedJobs) Job(ctx context.Context, id int64) (_ job, err error) {
	defer s.count("job", &err)
	return s.JobStore.Job(ctx, id)
}

func (s countedJobs) OpenJobsOfRun(ctx context.Context, repository, runID string) (_ []job, err error) {
	defer s.count("open_jobs_of_run", &err)
	return s.JobStore.OpenJobsOfRun(ctx, repository, runID)
}

func (s countedJobs) WaitingJobs(ctx context.Context, pool string, page pageOf) (_ lifecycle.Page[job], err error) {
	defer s.count("waiting_jobs", &err)
	return s.JobStore.WaitingJobs(ctx, pool, page)
}

func (s countedJobs) DueJobs(ctx context.Context, now time.Time, page pageOf) (_ lifecycle.Page[job], err error) {
	defer s.count("due_jobs", &err)
	return s.JobStore.DueJobs(ctx, now, page)
}

func (s countedJobs) SlotTable(ctx context.Context, pool string) (_ turns, err error) {
	defer s.count("turns", &err)
	return s.JobStore.SlotTable(ctx, pool)
}

func (s countedJobs) UpdateSlotTable(ctx context.Context, t turns) (_ turns, err error) {
	defer s.count("update_turns", &err)
	return s.JobStore.UpdateSlotTable(ctx, t)
}

func (s countedJobs) SeeOnce(ctx context.Context, kind, id string, until time.Time) (err error) {
	defer s.count("see_once", &err)
	return s.JobStore.SeeOnce(ctx, kind, id, until)
}
