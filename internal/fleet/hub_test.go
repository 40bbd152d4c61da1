package fleet_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/delivery"
)

// hub is GitHub as far as jobs go: runs, jobs, the runners that were registered
// for one job each, and webhooks that are lost when told to be.
type hub struct {
	github *fakeGitHub
	// hear is where webhooks go; lose says which are lost on the way.
	hear func(context.Context, lifecycle.Webhook) error
	lose func(lifecycle.Webhook) bool

	mu      sync.Mutex
	runs    map[string]lifecycle.WorkflowRun
	jobs    map[int64]*hubJob
	runners map[string]*hubRunner // by name
	said    int
	missed  []lifecycle.Webhook
	// noDeliveries: the missed ones cannot be listed.
	noDeliveries bool
	// refuses is a repository for which nothing is registered.
	refuses string
	// mute: it does not answer to register anything, and to all else it does.
	mute bool
	// asked counts the calls that were made.
	asked map[string]int
	// given has the ids of jobs in the order in which they began.
	given []int64
}

type hubJob struct {
	lifecycle.WorkflowJob
	takes time.Duration
}

type hubRunner struct {
	id     int64
	scope  string
	labels []string
	online bool
	job    *hubJob
	jobs   int
}

func newHub(g *fakeGitHub) *hub {
	return &hub{
		github: g, lose: func(lifecycle.Webhook) bool { return false }, runs: map[string]lifecycle.WorkflowRun{},
		jobs: map[int64]*hubJob{}, runners: map[string]*hubRunner{}, asked: map[string]int{},
	}
}

const (
	repositoryID = 7
	ownerID      = 70
)

// queue queues a job of a run.
func (h *hub) queue(ctx context.Context, j lifecycle.WorkflowJob, takes time.Duration) {
	h.mu.Lock()
	if j.Repository == "" {
		j.Repository = repository
	}
	if j.QueuedAt.IsZero() {
		j.QueuedAt = time.Now()
	}
	j.Status, j.RunAttempt = lifecycle.StatusQueued, cmp.Or(j.RunAttempt, 1)
	if _, ok := h.runs[j.RunID]; !ok {
		h.runs[j.RunID] = lifecycle.WorkflowRun{
			RunID: j.RunID, RunAttempt: j.RunAttempt, Repository: j.Repository, RepositoryID: repositoryID, OwnerID: ownerID,
			HeadRepositoryID: repositoryID, Event: "push", HeadBranch: "main", Path: ".github/workflows/ci.yml", Status: lifecycle.StatusInProgress,
		}
	}
	h.jobs[j.ID] = &hubJob{j, takes}
	h.mu.Unlock()
	h.say(ctx, j)
}

// say sends the webhook of a job as it is.
func (h *hub) say(ctx context.Context, j lifecycle.WorkflowJob) {
	h.send(ctx, lifecycle.Webhook{Action: j.Status, Job: &j, RepositoryID: repositoryID, OwnerID: ownerID})
}

func (h *hub) sayRun(ctx context.Context, run lifecycle.WorkflowRun) {
	h.send(ctx, lifecycle.Webhook{Action: run.Status, Run: &run, RepositoryID: repositoryID, OwnerID: ownerID})
}

func (h *hub) send(ctx context.Context, w lifecycle.Webhook) {
	h.mu.Lock()
	h.said++
	w.DeliveryID = fmt.Sprintf("delivery-%d", h.said)
	lost := h.lose(w)
	if lost {
		h.missed = append(h.missed, w)
	}
	hear := h.hear
	h.mu.Unlock()
	if !lost {
		_ = hear(ctx, w) // GitHub never tries again either
	}
}

// hearBy changes where webhooks go, and returns where they went.
func (h *hub) hearBy(hear func(context.Context, lifecycle.Webhook) error) func(context.Context, lifecycle.Webhook) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.hear
	h.hear = hear
	return before
}

// live gives jobs to runners and ends them, ten times a second, until ctx ends.
func (h *hub) live(ctx context.Context) {
	for ctx.Err() == nil {
		for _, j := range h.turn() {
			h.say(ctx, j)
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// turn lets a moment pass, and returns the jobs that began or ended in it.
func (h *hub) turn() []lifecycle.WorkflowJob {
	h.mu.Lock()
	defer h.mu.Unlock()
	var moved []lifecycle.WorkflowJob
	for _, name := range slices.Sorted(maps.Keys(h.runners)) {
		r := h.runners[name]
		switch {
		case r.job != nil && time.Since(r.job.StartedAt) >= r.job.takes:
			r.job.Status, r.job.Conclusion, r.job.CompletedAt = lifecycle.StatusCompleted, "success", time.Now()
			moved = append(moved, r.job.WorkflowJob)
			r.job, r.online = nil, false
			h.github.deregister(name) // it was for one job
		case r.job == nil && r.online && r.jobs == 0:
			if j := h.next(r); j != nil {
				j.Status, j.RunnerName, j.RunnerID, j.StartedAt = lifecycle.StatusInProgress, name, r.id, time.Now()
				r.job, r.jobs = j, 1
				h.given = append(h.given, j.ID)
				moved = append(moved, j.WorkflowJob)
			}
		}
	}
	return moved
}

// next is the job that a runner gets: the oldest that is for it.
func (h *hub) next(r *hubRunner) *hubJob {
	var first *hubJob
	for _, j := range h.jobs {
		fits := j.Status == lifecycle.StatusQueued && (j.Repository == r.scope || lifecycle.Owner(j.Repository) == r.scope) &&
			!slices.ContainsFunc(j.Labels, func(l string) bool { return !slices.Contains(r.labels, l) })
		if fits && (first == nil || j.QueuedAt.Before(first.QueuedAt) || j.QueuedAt.Equal(first.QueuedAt) && j.ID < first.ID) {
			first = j
		}
	}
	return first
}

// report is what the agent of a job-scoped host says.
func (h *hub) report(r lifecycle.Record) lifecycle.Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := lifecycle.Report{HostKey: r.HostKey, HeartbeatAt: time.Now(), Assignment: r.Assignment}
	runner := h.runners[r.RunnerName]
	if runner != nil {
		p.Jobs, p.Busy = runner.jobs, runner.job != nil
	}
	switch {
	case r.Releasing() && !p.Busy:
		p.Signal, p.Jobs = lifecycle.SignalRemoveRegOK, 0
		if runner != nil {
			runner.online = false
		}
	case r.Pooled():
		p.Signal = lifecycle.SignalRemoveRegOK
	case r.Registration != nil || r.State == lifecycle.StateRunning:
		if runner == nil {
			p.Signal, p.Cause = lifecycle.SignalRegFailed, lifecycle.CauseGitHub
			break
		}
		p.Signal, runner.online = lifecycle.SignalRegOK, runner.jobs == 0 || runner.job != nil
	}
	return p
}

// steal lets another runner take a job.
func (h *hub) steal(ctx context.Context, id int64) {
	h.mu.Lock()
	j := h.jobs[id]
	j.Status, j.RunnerName, j.StartedAt = lifecycle.StatusInProgress, "another-fleets", time.Now()
	moved := j.WorkflowJob
	h.mu.Unlock()
	h.say(ctx, moved)
}

// cancel ends a job, whether it runs or waits.
func (h *hub) cancel(ctx context.Context, id int64) {
	h.mu.Lock()
	j := h.jobs[id]
	if j.Status == lifecycle.StatusInProgress {
		j.takes = 0 // its runner ends it
		h.mu.Unlock()
		return
	}
	j.Status, j.Conclusion, j.CompletedAt = lifecycle.StatusCompleted, "cancelled", time.Now()
	moved := j.WorkflowJob
	h.mu.Unlock()
	h.say(ctx, moved)
}

// open counts the jobs that are not over.
func (h *hub) open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, j := range h.jobs {
		if j.Status != lifecycle.StatusCompleted {
			n++
		}
	}
	return n
}

func (h *hub) calls(what string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[what]
}

// ask counts a call, which fails while GitHub is down.
func (h *hub) ask(what string) error {
	h.asked[what]++
	h.github.mu.Lock()
	defer h.github.mu.Unlock()
	return h.github.fail()
}

func (h *hub) setMute(mute bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mute = mute
}

func (h *hub) JIT(_ context.Context, repository, name string, labels []string) (lifecycle.Registration, int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.ask("JIT"); err != nil {
		return lifecycle.Registration{}, 0, err
	}
	if h.mute {
		return lifecycle.Registration{}, 0, &lifecycle.UnavailableError{What: "github", Err: context.DeadlineExceeded}
	}
	if repository == h.refuses {
		h.asked["refused"]++
		return lifecycle.Registration{}, 0, lifecycle.ErrRefused
	}
	h.github.register(lifecycle.Record{RunnerName: name})
	h.github.mu.Lock()
	id := h.github.next
	h.github.mu.Unlock()
	h.runners[name] = &hubRunner{id: id, scope: repository, labels: slices.Clone(labels)}
	return lifecycle.Registration{
		Kind: lifecycle.RegistrationJIT, URL: "https://github.test/" + repository, Secret: "jit", ExpiresAt: time.Now().Add(time.Hour),
	}, id, nil
}

// deleted is what the deletion of a registration does here.
func (h *hub) deleted(id int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, r := range h.runners {
		if r.id == id && r.job != nil {
			return lifecycle.ErrBusy
		}
		if r.id == id {
			delete(h.runners, name)
		}
	}
	return nil
}

func (h *hub) WorkflowRun(_ context.Context, _, runID string) (lifecycle.WorkflowRun, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.ask("WorkflowRun"); err != nil {
		return lifecycle.WorkflowRun{}, err
	}
	run, ok := h.runs[runID]
	if !ok {
		return run, lifecycle.ErrNotFound
	}
	return run, nil
}

func (h *hub) WorkflowJob(_ context.Context, _ string, id int64) (lifecycle.WorkflowJob, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.ask("WorkflowJob"); err != nil {
		return lifecycle.WorkflowJob{}, err
	}
	j, ok := h.jobs[id]
	if !ok {
		return lifecycle.WorkflowJob{}, lifecycle.ErrNotFound
	}
	return j.WorkflowJob, nil
}

// RerunFailedJobs begins the next attempt of a run that is over. It then returns "no
// answer" if the test asks for it.
func (h *hub) RerunFailedJobs(_ context.Context, _, runID string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.ask("RerunFailedJobs"); err != nil {
		return err
	}
	run := h.runs[runID]
	if run.Status != lifecycle.StatusCompleted {
		return fmt.Errorf("run %s is %s: %w", runID, run.Status, lifecycle.ErrRefused)
	}
	run.RunAttempt, run.Status, run.Conclusion = run.RunAttempt+1, lifecycle.StatusQueued, ""
	h.runs[runID] = run
	return nil
}

func (h *hub) MissedDeliveries(context.Context, time.Time) ([]delivery.Missed, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.noDeliveries {
		return nil, lifecycle.ErrNotFound
	}
	var list []delivery.Missed
	for i, w := range h.missed {
		list = append(list, delivery.Missed{ID: int64(i), DeliveryID: w.DeliveryID, Event: "workflow_job"})
	}
	return list, h.ask("MissedDeliveries")
}

// DeliveryPayload gives the place of the delivery, which parse knows.
func (h *hub) DeliveryPayload(_ context.Context, d delivery.Missed) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return []byte(d.DeliveryID), h.ask("DeliveryPayload")
}

func (h *hub) parse(_, deliveryID string, _ []byte, _ time.Time) (lifecycle.Webhook, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.missed {
		if w.DeliveryID == deliveryID {
			return w, nil
		}
	}
	return lifecycle.Webhook{}, lifecycle.ErrNotFound
}

func (h *hub) QueuedJobs(_ context.Context, repository string) ([]lifecycle.WorkflowJob, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []lifecycle.WorkflowJob
	for _, id := range slices.Sorted(maps.Keys(h.jobs)) {
		if j := h.jobs[id]; j.Status == lifecycle.StatusQueued && strings.EqualFold(j.Repository, repository) {
			list = append(list, j.WorkflowJob)
		}
	}
	return list, h.ask("QueuedJobs")
}

func isExists(err error) bool  { return errors.Is(err, lifecycle.ErrExists) }
func isNotOurs(err error) bool { return errors.Is(err, fleet.ErrNotOurs) }
