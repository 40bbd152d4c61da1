package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/provision"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/lifecycle/runnername"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/unserved"
)

const (
	// webhookTakeover is how long a webhook may stay unprocessed before the jobs sweep picks it up.
	webhookTakeover = 10 * time.Second
	// webhookRetry is how long a webhook is put off after a failure, such as an outage of GitHub.
	webhookRetry = 30 * time.Second
	// keepWebhooks is how long a delivery is remembered, so that a repeat is known. The webhook of a job that
	// was made more than a day ago is confirmed with GitHub, so this is more than enough.
	keepWebhooks = 3 * 24 * time.Hour
)

// ErrNotOurs is returned for a webhook about a job or run that this fleet does not serve.
var ErrNotOurs = fmt.Errorf("about no job or run of ours: %w", lifecycle.ErrWebhookIgnored)

// TakeWebhook stores a delivery and starts to process it in the background. The caller acknowledges the
// delivery to GitHub only after TakeWebhook returns, when it is safe in the store. The error is ErrNotOurs
// for a webhook that does not concern the fleet, and lifecycle.ErrExists for a delivery that is known.
func (js *Jobs) TakeWebhook(ctx context.Context, w lifecycle.Webhook, now time.Time) error {
	if js.Options.Parse == nil {
		return ErrNotOurs
	}
	w = canonical(w)
	if w.Job != nil {
		js.OnJob(*w.Job)
	}
	if ours, err := js.concerns(ctx, w); err != nil {
		return fmt.Errorf("take webhook %s: %w", w.DeliveryID, err)
	} else if !ours {
		return js.notOurs(ctx, w, now)
	}
	w.Kind = cmp.Or(w.Kind, lifecycle.WebhookDelivered)
	w.ReceivedAt, w.DueAt, w.ExpiresAt, w.Version = now, now.Add(webhookTakeover), now.Add(keepWebhooks), 1
	if err := js.Options.Store.CreateWebhook(ctx, w); err != nil {
		return fmt.Errorf("take webhook %s: %w", w.DeliveryID, err)
	}
	js.submit("webhook "+w.DeliveryID, js.newWebhookOp(w))
	return nil
}

// canonical is a delivery with the name of its repository as the rows of the fleet have it.
func canonical(w lifecycle.Webhook) lifecycle.Webhook {
	if w.Job != nil {
		j := *w.Job
		j.Repository, w.Job = lifecycle.Canonical(j.Repository), &j
	}
	if w.Run != nil {
		r := *w.Run
		r.Repository, w.Run = lifecycle.Canonical(r.Repository), &r
	}
	return w
}

// concerns reports whether a webhook is about something that this fleet serves: a job
// with labels of the fleet, or the end of a run that has requests.
func (js *Jobs) concerns(ctx context.Context, w lifecycle.Webhook) (bool, error) {
	switch {
	case w.Job != nil:
		row, ok := js.served(*w.Job)
		if !ok || row.Pool != "" {
			return ok && policy.ServesRepository(js.Options.Pools[row.Pool].Repositories, row.Repository), nil
		}
		if rule, ok := js.Options.Rules.Find(w.RepositoryID, w.OwnerID); ok && rule.Webhook || w.RepositoryID == 0 {
			return true, nil
		}
		requests, err := js.Store.RequestsOfRun(ctx, row.Repository, row.RunID)
		js.runPools.note(row, requests)
		return len(requests) > 0, err
	case w.Run != nil && w.Run.Status == lifecycle.StatusCompleted:
		requests, err := js.Store.RequestsOfRun(ctx, w.Run.Repository, w.Run.RunID)
		return len(requests) > 0, err
	}
	return false, nil
}

// notOurs is ErrNotOurs, with the reason where the author of a queued job expects a host of this fleet.
func (js *Jobs) notOurs(ctx context.Context, w lifecycle.Webhook, now time.Time) error {
	if w.Job == nil || w.Job.Status != lifecycle.StatusQueued {
		return ErrNotOurs
	}
	why := unserved.Why(*w.Job, js.unserved)
	js.countUnserved(why.Code)
	if !why.Expected {
		return ErrNotOurs
	}
	js.logRefusal(*w.Job, why.Reason)
	events := js.Ops.Recorder("")
	row, _ := js.served(*w.Job)
	row.Pool = why.Pool
	js.noteRefusal(&events, row, why.Reason, now)
	events.Flush(ctx)
	return fmt.Errorf("%s (%s): %w", why.Text, why.Code, ErrNotOurs)
}

// served returns the row of a job, and whether the fleet's hosts are to run it: those
// of a job pool, or those that were requested for its run.
func (js *Jobs) served(j lifecycle.WorkflowJob) (lifecycle.Job, bool) {
	row := lifecycle.Job{
		ID: j.ID, Repository: j.Repository, RunID: j.RunID, RunAttempt: j.RunAttempt, Name: j.Name, Workflow: j.Workflow, Labels: j.Labels,
		QueuedAt: j.QueuedAt, RunnerName: j.RunnerName, StartedAt: j.StartedAt, EndedAt: j.CompletedAt, Conclusion: j.Conclusion,
	}
	switch j.Status {
	case lifecycle.StatusInProgress:
		row.State = lifecycle.JobRunning
	case lifecycle.StatusCompleted:
		row.State = lifecycle.JobDone
	default:
		row.State = lifecycle.JobWaiting
	}
	if _, _, ok := policy.RunLabels(j.Labels, j.RunID); ok {
		return row, true
	}
	pool, ok := policy.MatchPool(js.labels, j.Labels)
	row.Pool, row.Scope = pool, js.Options.Scope(j.Repository)
	return row, ok
}

// webhookOp handles one stored webhook. All of its steps are safe to repeat.
type webhookOp struct {
	op.Stages
	env *Jobs
	w   lifecycle.Webhook

	row     lifecycle.Job // of a workflow_job
	runner  int64         // the id of the runner that took the job; 0: unknown
	release *provision.Release
	tries   int // how often the runner's host was found not to be ready yet
}

// Subject implements op.Described.
func (h *webhookOp) Subject() op.Subject {
	if run := h.w.Run; run != nil {
		return op.Subject{Name: "webhook of a run", Repository: run.Repository, RunID: run.RunID, RunAttempt: run.RunAttempt}
	}
	j := h.w.Job
	return op.Subject{Name: "webhook of a job", Repository: j.Repository, RunID: j.RunID, RunAttempt: j.RunAttempt, JobID: j.ID}
}

func (js *Jobs) newWebhookOp(w lifecycle.Webhook) *webhookOp {
	h := &webhookOp{env: js, Stages: js.Ops.Stages(""), w: w}
	h.Next = h.jobStep
	if w.Run != nil {
		h.Next = h.runStep
	}
	return h
}

// finish has the result of the webhook written by the next step. The webhook is then no longer due.
func (h *webhookOp) finish(result string) (op.Progress, error) {
	return h.Then(func(ctx context.Context, _ time.Time) (op.Progress, error) {
		w := h.w
		w.Reason, w.DueAt = result, time.Time{}
		_, err := h.env.Options.Store.UpdateWebhook(ctx, w)
		if err != nil && !errors.Is(err, lifecycle.ErrConflict) {
			return op.Again, fmt.Errorf("write webhook %s: %w", w.DeliveryID, err)
		}
		h.env.Log.Info("webhook worked on", logkey.Delivery, w.DeliveryID, logkey.Action, w.Action, logkey.Result, result)
		return op.Done, nil
	})
}

// runStep releases the hosts of a run that has ended. It does nothing if a request is
// of a later attempt than the webhook: the run has been started again.
func (h *webhookOp) runStep(ctx context.Context, now time.Time) (op.Progress, error) {
	run := *h.w.Run
	if h.w.Late {
		ignored, err := h.startedAgain(ctx, run)
		switch {
		case err != nil:
			return op.Again, err
		case ignored != "":
			return h.finish(ignored)
		}
	}
	requests, err := h.env.Store.RequestsOfRun(ctx, run.Repository, run.RunID)
	if err != nil {
		return op.Again, fmt.Errorf("list requests of run %s: %w", run.RunID, err)
	}
	for _, q := range requests {
		if q.Spec.RunAttempt > run.RunAttempt {
			return h.finish(fmt.Sprintf("ignored: attempt %d of run %s is over, and attempt %d has hosts", run.RunAttempt, run.RunID, q.Spec.RunAttempt))
		}
	}
	lost, err := h.env.lostJob(ctx, requests, run, now)
	if err != nil {
		return op.Again, err
	}
	h.release = h.env.Provision.NewRelease(run.Repository, run.RunID, run.RunAttempt, false)
	h.Next = func(ctx context.Context, now time.Time) (op.Progress, error) {
		progress, err := h.release.Step(ctx, now)
		if err != nil || !progress.Done {
			return progress, err
		}
		// A release in the background follows the hosts until they are back in the pool:
		// the due sweep would look at them less often.
		if len(h.release.Instances()) > 0 {
			h.env.submit("release of run "+run.RunID, h.env.Provision.NewFollow(run.Repository, run.RunID, run.RunAttempt))
		}
		released := fmt.Sprintf("run %s is over: released %s", run.RunID, plural.Of(len(h.release.Instances()), "host", "hosts"))
		if lost {
			return h.Then(h.startAgain(released))
		}
		return h.finish(released)
	}
	return op.Again, nil
}

// startedAgain asks GitHub whether a run was started again since the end that a late webhook reports, and returns
// why the webhook is ignored then. A run that GitHub does not know any more is over.
func (h *webhookOp) startedAgain(ctx context.Context, run lifecycle.WorkflowRun) (ignored string, err error) {
	is, err := h.env.Options.GitHub.WorkflowRun(ctx, run.Repository, run.RunID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("confirm the end of run %s: %w", run.RunID, err)
	case is.Status == lifecycle.StatusCompleted && is.RunAttempt == run.RunAttempt:
		return "", nil
	}
	return fmt.Sprintf("ignored: it came late, and attempt %d of run %s is %s", is.RunAttempt, run.RunID, is.Status), nil
}

// jobStep brings the row of a job up to date. A late webhook is confirmed with GitHub
// first, except for one that says that the job is completed.
func (h *webhookOp) jobStep(ctx context.Context, now time.Time) (op.Progress, error) {
	job := *h.w.Job
	if h.w.Late && job.Status != lifecycle.StatusCompleted {
		is, err := h.env.Options.GitHub.WorkflowJob(ctx, job.Repository, job.ID)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			return h.finish("ignored: it came late, and GitHub no longer has the job")
		case err != nil:
			return op.Again, fmt.Errorf("confirm job %d: %w", job.ID, err)
		case !slices.Contains([]string{lifecycle.StatusQueued, lifecycle.StatusInProgress, lifecycle.StatusCompleted}, is.Status):
			return h.finish("ignored: it came late, and the job is " + is.Status) // it waits for an approval, and is queued after that
		}
		job = is
	}
	row, ours := h.env.served(job)
	if !ours {
		return h.finish("ignored: " + ErrNotOurs.Error())
	}
	switch why, err := h.refused(ctx, row, now); {
	case errors.Is(err, lifecycle.ErrNotFound):
		return h.putOff(row, now)
	case err != nil:
		return op.Again, err
	case why.Text != "":
		return h.refuse(row, why, now)
	}
	h.row, h.runner = row, job.RunnerID
	stored, err := h.env.noteJob(ctx, &h.Events, row, now)
	if err != nil {
		return op.Again, err
	}
	return h.Then(h.followUp(stored))
}

// followUp returns the step that a job needs once its row is written.
func (h *webhookOp) followUp(row lifecycle.Job) func(context.Context, time.Time) (op.Progress, error) {
	switch {
	case row.Pool == "" && row.State == lifecycle.JobWaiting:
		return h.provide
	case row.Pool != "" && h.row.State == lifecycle.JobDone && h.row.RunnerName != "":
		return h.freeHost
	}
	if row.Pool != "" && row.State == lifecycle.JobRunning {
		h.row.RunnerName = row.RunnerName // a queued webhook that came late names no runner
		return h.markStarted
	}
	return h.reconcile(fmt.Sprintf("job %d is %s", row.ID, row.State))
}

// markStarted notes in the slot table that a job started on a host of the pool,
// whichever job the slot was assigned for. The host serves no other job.
func (h *webhookOp) markStarted(ctx context.Context, _ time.Time) (op.Progress, error) {
	table, err := h.env.Options.Store.SlotTable(ctx, h.row.Pool)
	if err != nil {
		return op.Again, fmt.Errorf("read the turns of pool %s: %w", h.row.Pool, err)
	}
	table.Open = slices.Clone(table.Open)
	i, err := h.slotOfRunner(ctx, table.Open)
	if err != nil {
		return op.Again, err
	}
	runs := fmt.Sprintf("job %d runs on %s", h.row.ID, h.row.RunnerName)
	if i < 0 {
		return h.Then(h.reconcile(runs))
	}
	if t := &table.Open[i]; !t.Started || !t.UnannouncedAt.IsZero() || t.Runs != h.row.ID {
		t.Started, t.UnannouncedAt, t.Runs = true, time.Time{}, h.row.ID
		_, err := h.env.Options.Store.UpdateSlotTable(ctx, table)
		switch {
		case errors.Is(err, lifecycle.ErrConflict):
			return op.Again, nil // the table has changed: read it again
		case err != nil:
			return op.Again, fmt.Errorf("write the turns of pool %s: %w", h.row.Pool, err)
		}
	}
	return h.finish(runs) // one waiting job less and one free host less: the pool needs no reconciliation
}

// slotOfRunner returns the index of the slot on whose host the job runs, or -1. The webhook may come before the slot has
// its host: then the host of the runner's name says which it is, and the slot gets its runner. The slot gets its host once the
// request is settled, since the request takes another one if this is lost before.
func (h *webhookOp) slotOfRunner(ctx context.Context, open []slots.Slot) (int, error) {
	i := slices.IndexFunc(open, func(t slots.Slot) bool {
		return t.Runner != "" && t.Runner == h.row.RunnerName && strings.EqualFold(t.Scope, h.row.Scope) && h.isRunner(t.RunnerID)
	})
	instanceID := runnername.InstanceOf(h.row.RunnerName)
	if i >= 0 || instanceID == "" || !slices.ContainsFunc(open, func(t slots.Slot) bool { return t.Runner == "" }) {
		return i, nil
	}
	r, err := h.env.Hosts.Find(ctx, instanceID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return -1, nil
	case err != nil:
		return -1, fmt.Errorf("read host %s: %w", instanceID, err)
	case r.RunnerName != h.row.RunnerName || !h.isRunner(r.GitHubRunnerID):
		return -1, nil
	}
	i = slices.IndexFunc(open, func(t slots.Slot) bool {
		return t.Runner == "" && t.RunID(h.row.Pool) == r.RequestID && strings.EqualFold(t.Scope, h.row.Scope)
	})
	if i >= 0 {
		open[i].Runner, open[i].RunnerID = r.RunnerName, r.GitHubRunnerID
	}
	return i, nil
}

// isRunner reports whether the job ran on the runner registration with this id, as
// far as both ids are known. The runner's name is not enough: names can be reused.
func (h *webhookOp) isRunner(id int64) bool { return h.runner == 0 || id == 0 || h.runner == id }

// reconcile finishes the webhook and has the job's pool reconciled in the background.
func (h *webhookOp) reconcile(result string) func(context.Context, time.Time) (op.Progress, error) {
	return func(context.Context, time.Time) (op.Progress, error) {
		if h.row.Pool != "" {
			h.env.enqueuePool(h.row.Pool)
		}
		return h.finish(result)
	}
}

const (
	// freeTries and freeLook bound how long the end of a short job waits until its host is known to be ready,
	// which the host's request finds out when it looks next. After that the due sweep finds the host.
	freeTries = 40
	freeLook  = 250 * time.Millisecond
)

// freeHost releases the host of a runner whose only job is over, whichever job its
// slot was assigned for. A repository may have other runners with names like those of
// the fleet, so the host must be of the job's scope, where a name is unique.
func (h *webhookOp) freeHost(ctx context.Context, _ time.Time) (op.Progress, error) {
	instanceID := runnername.InstanceOf(h.row.RunnerName)
	if instanceID == "" {
		return h.Then(h.reconcile(fmt.Sprintf("job %d is over: it ran on %s, which is not a runner of this fleet", h.row.ID, h.row.RunnerName)))
	}
	r, err := h.env.Hosts.Find(ctx, instanceID)
	if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
		return op.Again, fmt.Errorf("read host %s: %w", instanceID, err)
	}
	over := fmt.Sprintf("job %d is over on %s", h.row.ID, h.row.RunnerName)
	switch {
	case err != nil || r.RunnerName != h.row.RunnerName || r.JobsOf == "" || r.RequestID == "":
		return h.Then(h.reconcile(over + ", whose host is free already"))
	case !strings.EqualFold(r.JobsOf, h.row.Scope), !h.isRunner(r.GitHubRunnerID):
		return h.Then(h.reconcile(over + ", a runner of " + h.row.Scope + " with the name of a host of this fleet"))
	case !r.Releasing() && r.State != lifecycle.StateRunning && h.tries < freeTries:
		h.tries++
		return op.Wait(freeLook), nil
	case !r.Releasing() && r.State != lifecycle.StateRunning:
		return h.finish(over + ", whose host is not ready yet: it is released once it is") // its agent reports that it had its job
	}
	user := meter.User{Repository: h.row.Repository, Workflow: h.row.Workflow, RunID: h.row.RunID, Attempt: h.row.RunAttempt}
	if charged, err := h.charge(ctx, r, user); err != nil || !charged {
		return op.Again, err
	}
	release := h.env.Provision.NewRelease(r.Repository, r.RequestID, 0, true)
	release.ChargeTo(user)
	h.env.submit("release of "+r.RequestID, release)
	return h.finish(over) // the pool is reconciled once its host is clean
}

// charge names the run of the job on a host that was released before this, since its agent reported that the job was over: its release knew no run. It
// reports false if the record was written in between.
func (h *webhookOp) charge(ctx context.Context, r lifecycle.Record, user meter.User) (bool, error) {
	if c, ok := r.Meter.Cycle(); !r.Releasing() || !ok || c.User.RunID != "" {
		return true, nil
	}
	r.ChargeTo(user)
	_, err := h.env.Store.UpdateInstance(ctx, r)
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("charge host %s to run %s: %w", r.InstanceID, user.RunID, err)
	}
	return true, nil
}

// noteJob writes what is newly known about a job, and returns the stored row. A job's
// state only moves forward, since webhooks come late and more than once.
func (js *Jobs) noteJob(ctx context.Context, events *op.Recorder, row lifecycle.Job, now time.Time) (stored lifecycle.Job, err error) {
	var before lifecycle.Job
	err = op.Rewrite(fmt.Sprintf("job %d", row.ID), func() (err error) {
		stored, err = js.Options.Store.Job(ctx, row.ID)
		before = stored
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			before, stored = lifecycle.Job{}, newJob(row, now)
			if err = js.writeTime(ctx, stored); err == nil {
				err = js.Options.Store.CreateJob(ctx, stored)
			}
		case err == nil && ahead(row.State, stored.State):
			next := advance(stored, row, now)
			if err = js.writeTime(ctx, next); err == nil {
				stored, err = js.Options.Store.UpdateJob(ctx, next)
			}
		}
		if err != nil {
			return fmt.Errorf("write job %d: %w", row.ID, err)
		}
		return nil
	})
	if err == nil {
		recordProgress(events, before, stored, js.runPools.of(stored), now)
	}
	if err == nil && !hasRunner(before) && hasRunner(stored) && stored.Pool != "" && js.OnStart != nil {
		js.OnStart(stored.Pool, max(0, stored.StartedAt.Sub(stored.QueuedAt)))
		js.Ops.Past(op.JobSubject("job waits for a runner", stored), stored.QueuedAt, stored.StartedAt)
	}
	if err == nil && before.State != lifecycle.JobDone && stored.State == lifecycle.JobDone && hasRunner(stored) {
		js.Ops.Past(op.JobSubject("job runs", stored), stored.StartedAt, stored.EndedAt)
	}
	return stored, err
}

// hasRunner reports whether a runner has taken a job. One that was canceled before has a start and no runner.
func hasRunner(j lifecycle.Job) bool { return j.RunnerName != "" && !j.StartedAt.IsZero() }

const (
	// jobLook is after what time without news GitHub is asked about a job, in case its webhooks were lost.
	jobLook = time.Hour
	// keepJobs is how long the row of a job is kept: longer than GitHub lets a job
	// wait (a day) and run (five days).
	keepJobs = 7 * 24 * time.Hour
)

func newJob(row lifecycle.Job, now time.Time) lifecycle.Job {
	row.Version, row.ExpiresAt = 1, now.Add(keepJobs)
	row.Reason = fmt.Sprintf("new, %s", row.State)
	if row.State != lifecycle.JobDone {
		row.DueAt = now.Add(jobLook)
	}
	return row
}

func advance(stored, row lifecycle.Job, now time.Time) lifecycle.Job {
	n := stored
	n.State, n.Reason = row.State, fmt.Sprintf("%s, as GitHub reports", row.State)
	n.RunnerName, n.StartedAt, n.EndedAt, n.Conclusion = row.RunnerName, row.StartedAt, row.EndedAt, row.Conclusion
	n.Name = cmp.Or(n.Name, row.Name) // a row of an older controld has none
	n.NotBefore, n.Passed = time.Time{}, 0
	n.DueAt = now.Add(jobLook)
	if n.State == lifecycle.JobDone {
		n.DueAt = time.Time{}
	}
	return n
}

// ahead reports whether state a comes after state b in the life of a job.
func ahead(a, b lifecycle.JobState) bool {
	order := map[lifecycle.JobState]int{lifecycle.JobWaiting: 0, lifecycle.JobRunning: 1, lifecycle.JobDone: 2}
	return order[a] > order[b]
}
