package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/delivery"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// Sweep continues unfinished work: webhooks that are not processed, jobs whose state was not reported for
// long, and the slot tables of the pools. Its cost grows with the number of due rows and of job pools.
type Sweep struct {
	op.Stages
	env *Jobs

	webhooks []lifecycle.Webhook
	jobs     []lifecycle.Job
	pools    []string
	op       op.Op
	seen     map[string]bool
}

// NewSweep begins a sweep.
func (js *Jobs) NewSweep() *Sweep {
	s := &Sweep{env: js, Stages: js.Ops.Stages(""), seen: map[string]bool{}}
	s.pools = slices.Sorted(maps.Keys(js.Options.Pools))
	s.Next = s.listWebhooks
	return s
}

func (s *Sweep) listWebhooks(ctx context.Context, now time.Time) (op.Progress, error) {
	page, err := s.env.Options.Store.DueWebhooks(ctx, now, lifecycle.PageOf{Limit: op.PageSize})
	if err != nil {
		return op.Again, fmt.Errorf("list due webhooks: %w", err)
	}
	for _, w := range page.Items {
		if !s.seen[w.DeliveryID] {
			s.seen[w.DeliveryID] = true
			s.webhooks = append(s.webhooks, w)
		}
	}
	s.Next = s.webhook
	if len(s.webhooks) == 0 {
		s.Next = s.listJobs
	}
	return op.Again, nil
}

// webhook steps one webhook until it is done or has to wait. A webhook that fails is
// put off, so it does not hold up the others.
func (s *Sweep) webhook(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.webhooks) == 0 {
		return s.Then(s.listWebhooks)
	}
	if s.op == nil {
		s.op = s.env.newWebhookOp(s.webhooks[0])
	}
	progress, err := s.op.Step(ctx, now)
	if err == nil && !progress.Done && progress.Wait == 0 {
		return op.Again, nil
	}
	if err != nil {
		s.env.Log.Warn("webhook not worked on; trying again", logkey.Delivery, s.webhooks[0].DeliveryID, logkey.Error, err)
	}
	w := s.webhooks[0]
	s.webhooks, s.op = s.webhooks[1:], nil
	if err == nil {
		return op.Again, nil
	}
	w.DueAt = now.Add(webhookRetry)
	if errors.Is(err, lifecycle.ErrRefused) {
		// A refusal lasts until an operator changes something, so the wait grows with the webhook's age: many
		// of these must not use up the calls that GitHub allows.
		w.DueAt = now.Add(max(webhookRetry, now.Sub(w.ReceivedAt)/2))
	}
	if _, err := s.env.Options.Store.UpdateWebhook(ctx, w); err != nil && !errors.Is(err, lifecycle.ErrConflict) {
		if err = fmt.Errorf("put off webhook %s: %w", w.DeliveryID, err); !s.Past(ctx, err) {
			return op.Again, err
		}
	}
	return op.Again, nil
}

// listJobs lists the jobs whose state was not reported for long. Without the store
// the sweep has nothing left to do; without GitHub the jobs stay due.
func (s *Sweep) listJobs(ctx context.Context, now time.Time) (op.Progress, error) {
	page, err := s.env.Options.Store.DueJobs(ctx, now, lifecycle.PageOf{Limit: op.PageSize})
	if err != nil {
		return op.Again, fmt.Errorf("list due jobs: %w", err)
	}
	s.jobs, s.Next = page.Items, s.job
	return op.Again, nil
}

// job asks GitHub about one job.
func (s *Sweep) job(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.jobs) == 0 {
		return s.Then(s.reconcile)
	}
	j := s.jobs[0]
	s.jobs = s.jobs[1:]
	is, err := s.env.Options.GitHub.WorkflowJob(ctx, j.Repository, j.ID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		is = lifecycle.WorkflowJob{ID: j.ID, Status: lifecycle.StatusCompleted, CompletedAt: now}
	case errors.Is(err, lifecycle.ErrRefused):
		// The jobs after this one are still asked about.
		s.env.Log.Warn("job not confirmed; asking again in an hour", logkey.Job, j.ID, logkey.Repository, j.Repository, logkey.Error, err)
		is = unconfirmed(j, now)
	case err != nil:
		s.env.Log.Warn("job not confirmed; asking again", logkey.Job, j.ID, logkey.Error, err)
		s.jobs = nil
		return op.Again, nil
	}
	if err := s.confirm(ctx, j, is, now); !s.Past(ctx, err) {
		return op.Again, err
	}
	return op.Again, nil
}

// confirm writes the state that GitHub reports for a job now, if it is a later one.
func (s *Sweep) confirm(ctx context.Context, j lifecycle.Job, is lifecycle.WorkflowJob, now time.Time) error {
	row, _ := s.env.served(is)
	before := j
	if ahead(row.State, j.State) {
		j = advance(j, row, now)
	}
	if j.State != lifecycle.JobDone {
		j.DueAt = now.Add(jobLook)
	}
	if err := s.env.writeTime(ctx, j); err != nil {
		return err
	}
	_, err := s.env.Options.Store.UpdateJob(ctx, j)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		return nil
	case err != nil:
		return fmt.Errorf("write job %d: %w", j.ID, err)
	}
	recordProgress(&s.Events, before, j, s.env.runPools.of(j), now)
	return nil
}

// askGitHub brings the row of a job up to date with what GitHub reports for it now. If GitHub does not know it, or
// refuses to answer, the error is nil, and the row is as it was unless the job must be over.
func (js *Jobs) askGitHub(ctx context.Context, events *op.Recorder, j lifecycle.Job, now time.Time) (lifecycle.Job, error) {
	is, err := js.Options.GitHub.WorkflowJob(ctx, j.Repository, j.ID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		is = lifecycle.WorkflowJob{ID: j.ID, Status: lifecycle.StatusCompleted, CompletedAt: now}
	case errors.Is(err, lifecycle.ErrRefused):
		is = unconfirmed(j, now)
	case err != nil:
		return j, fmt.Errorf("ask GitHub about job %d: %w", j.ID, err)
	}
	row, _ := js.served(is)
	if !ahead(row.State, j.State) {
		return j, nil
	}
	return js.noteJob(ctx, events, row, now)
}

// waitsAtMost is how long GitHub lets a job wait for a runner before it gives up.
const waitsAtMost = 24 * time.Hour

// unconfirmed stands for GitHub's answer about a job where GitHub refuses to answer, for instance because the
// repository was deleted. It says nothing new, unless the job has waited for as long as GitHub lets a job
// wait: then the job is over. Otherwise it would use slots of its pool for as long as its row is kept.
func unconfirmed(j lifecycle.Job, now time.Time) lifecycle.WorkflowJob {
	is := lifecycle.WorkflowJob{ID: j.ID}
	if j.State == lifecycle.JobWaiting && now.Sub(j.QueuedAt) >= waitsAtMost {
		is.Status, is.CompletedAt = lifecycle.StatusCompleted, now
	}
	return is
}

// reconcile brings the slot table of one pool in line with its jobs and hosts. A pool
// that fails or has to wait is left to the next sweep.
func (s *Sweep) reconcile(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.pools) == 0 {
		return op.Done, nil
	}
	if s.op == nil {
		s.op = s.env.newReconcilePool(s.pools[0])
	}
	progress, err := s.op.Step(ctx, now)
	if err != nil {
		s.env.Log.Warn("pool not balanced; trying again", logkey.Pool, s.pools[0], logkey.Error, err)
	}
	if err != nil || progress.Done || progress.Wait > 0 {
		s.pools, s.op = s.pools[1:], nil
	}
	return op.Again, nil
}

const (
	// missedSince is how far back the first sweep of a replica asks: GitHub keeps
	// deliveries for three days, and a queued job for one.
	missedSince = 24 * time.Hour
	// missedOverlap is how far a sweep reaches into the time that the sweep before it
	// covered: a delivery shows as missed only once GitHub has given up on it.
	missedOverlap = 10 * time.Minute
)

// MissedSweep recovers webhooks that did not arrive. It goes by the deliveries that GitHub lists as failed
// or, where the fleet cannot list those, by the jobs that wait in the configured repositories.
type MissedSweep struct {
	op.Stages
	env *Jobs

	began        time.Time
	missed       []delivery.Missed
	repositories []string
	found        []lifecycle.WorkflowJob
	// unread is set when a delivery could not be read; unavailable counts such deliveries in a row.
	unread      bool
	unavailable int
}

// NewMissedSweep begins a sweep.
func (js *Jobs) NewMissedSweep() *MissedSweep {
	s := &MissedSweep{env: js, Stages: js.Ops.Stages("")}
	s.Next = s.list
	return s
}

func (s *MissedSweep) list(ctx context.Context, now time.Time) (op.Progress, error) {
	s.began = now
	s.env.mu.Lock()
	since := s.env.recovered
	s.env.mu.Unlock()
	if since.IsZero() {
		since = now.Add(-missedSince)
	}
	missed, err := s.env.Options.GitHub.MissedDeliveries(ctx, since)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		s.repositories, s.Next = s.env.Repositories, s.listQueued
		return op.Again, nil
	case err != nil:
		return op.Again, fmt.Errorf("list missed deliveries: %w", err)
	}
	s.missed, s.Next = missed, s.recover
	return op.Again, nil
}

// recover handles one missed delivery as if it had arrived. It is marked as late,
// since what it says may not hold any more.
func (s *MissedSweep) recover(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.missed) == 0 {
		if !s.unread {
			s.env.mu.Lock()
			s.env.recovered = s.began.Add(-missedOverlap)
			s.env.mu.Unlock()
		}
		return op.Done, nil
	}
	m := s.missed[0]
	if m.Event != lifecycle.EventWorkflowJob && m.Event != lifecycle.EventWorkflowRun {
		s.missed = s.missed[1:]
		return op.Again, nil
	}
	if _, err := s.env.Options.Store.Webhook(ctx, m.DeliveryID); !errors.Is(err, lifecycle.ErrNotFound) {
		if err != nil {
			err = fmt.Errorf("read webhook %s: %w", m.DeliveryID, err)
		}
		if !s.Past(ctx, err) {
			return op.Again, err
		}
		s.missed = s.missed[1:]
		return op.Again, nil
	}
	body, err := s.env.Options.GitHub.DeliveryPayload(ctx, m)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
	case err != nil:
		// A delivery that cannot be read does not hold up the others. The next sweep tries it again.
		if s.unavailable++; s.unavailable >= op.UnavailableAtMost {
			return op.Again, fmt.Errorf("read delivery %s: %w", m.DeliveryID, err)
		}
		s.env.Log.Warn("missed delivery not read; trying again", logkey.Delivery, m.DeliveryID, logkey.Error, err)
		s.unread, s.missed = true, s.missed[1:]
		return op.Again, nil
	default:
		s.unavailable = 0
		err := s.take(ctx, m, body, now)
		if !s.Past(ctx, err) {
			return op.Again, err
		}
		s.unread = s.unread || err != nil
	}
	s.missed = s.missed[1:]
	return op.Again, nil
}

func (s *MissedSweep) take(ctx context.Context, m delivery.Missed, body []byte, now time.Time) error {
	w, err := s.env.Options.Parse(m.Event, m.DeliveryID, body, now)
	if err != nil {
		s.env.Log.Debug("missed delivery skipped", logkey.Delivery, m.DeliveryID, logkey.Event, m.Event, logkey.Error, err)
		return nil
	}
	w.Late = true
	return s.note(ctx, w, now)
}

func (s *MissedSweep) note(ctx context.Context, w lifecycle.Webhook, now time.Time) error {
	err := s.env.TakeWebhook(ctx, w, now)
	if errors.Is(err, ErrNotOurs) || errors.Is(err, lifecycle.ErrExists) {
		return nil
	}
	if err == nil {
		s.env.Log.Info("webhook recovered", logkey.Delivery, w.DeliveryID, logkey.Action, w.Action)
	}
	return err
}

// listQueued lists the jobs that wait in one repository.
func (s *MissedSweep) listQueued(ctx context.Context, _ time.Time) (op.Progress, error) {
	if len(s.repositories) == 0 {
		return op.Done, nil
	}
	repository := s.repositories[0]
	jobs, err := s.env.Options.GitHub.QueuedJobs(ctx, repository)
	if err != nil {
		err = fmt.Errorf("list queued jobs of %s: %w", repository, err)
	}
	if !s.Past(ctx, err) {
		return op.Again, err
	}
	s.repositories, s.found, s.Next = s.repositories[1:], jobs, s.noteQueued
	return op.Again, nil
}

// noteQueued handles one waiting job as if its webhook had arrived. A job that has a
// row is known already and needs nothing.
func (s *MissedSweep) noteQueued(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.found) == 0 {
		return s.Then(s.listQueued)
	}
	j := s.found[0]
	s.found = s.found[1:]
	_, err := s.env.Options.Store.Job(ctx, j.ID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		w := lifecycle.Webhook{DeliveryID: fmt.Sprintf("found-%d", j.ID), Kind: lifecycle.WebhookFound, Action: j.Status, Job: &j}
		if err = s.note(ctx, w, now); err == nil {
			err = s.findAgain(ctx, w.DeliveryID, now)
		}
	case err != nil:
		err = fmt.Errorf("read job %d: %w", j.ID, err)
	}
	if !s.Past(ctx, err) {
		return op.Again, err
	}
	return op.Again, nil
}

// findAgain has a webhook worked on again that has made the row of a job which was found to have none. The row was lost, or an older
// state of its table was restored. The webhook is read, since it may be a new one, or one whose job gets no row.
func (s *MissedSweep) findAgain(ctx context.Context, deliveryID string, now time.Time) error {
	w, err := s.env.Options.Store.Webhook(ctx, deliveryID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("read webhook %s: %w", deliveryID, err)
	case !w.DueAt.IsZero() || w.Refused:
		return nil
	}
	w.ReceivedAt, w.DueAt, w.Reason = now, now, ""
	if _, err := s.env.Options.Store.UpdateWebhook(ctx, w); err != nil && !errors.Is(err, lifecycle.ErrConflict) {
		return fmt.Errorf("write webhook %s: %w", deliveryID, err)
	}
	return nil
}
