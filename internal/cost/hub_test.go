package cost_test

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/delivery"
)

// jitLength is about that of a JIT configuration: the three files of a runner,
// one of them a key of 2,048 bits, each in base64, and then all in base64.
const jitLength = 4300

// hub is GitHub for job pools, which counts what it is asked for.
type hub struct {
	github
	mu    sync.Mutex
	calls map[string]int
	// lists: it has a runner of any name.
	lists bool
}

func newHub(c *clock) *hub { return &hub{github: github{c}, calls: map[string]int{}} }

func (h *hub) asked(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[what]++
}

// of is what was asked for while do ran.
func (h *hub) of(do func()) map[string]int {
	before := h.counts()
	do()
	asked := h.counts()
	for what, n := range before {
		if asked[what] -= n; asked[what] == 0 {
			delete(asked, what)
		}
	}
	return asked
}

func (h *hub) counts() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.calls)
}

func (h *hub) RegistrationToken(ctx context.Context, repository string) (lifecycle.Registration, error) {
	h.asked("RegistrationToken")
	return h.github.RegistrationToken(ctx, repository)
}

func (h *hub) RemoveToken(ctx context.Context, repository string) (lifecycle.Registration, error) {
	h.asked("RemoveToken")
	return h.github.RemoveToken(ctx, repository)
}

func (h *hub) FindRunner(ctx context.Context, repository, name string) (lifecycle.Runner, error) {
	h.asked("FindRunner")
	if h.lists {
		return lifecycle.Runner{ID: 4711, Name: name, Online: true}, nil
	}
	return h.github.FindRunner(ctx, repository, name)
}

func (h *hub) DeleteRunner(ctx context.Context, repository string, id int64) error {
	h.asked("DeleteRunner")
	return h.github.DeleteRunner(ctx, repository, id)
}

func (h *hub) SetLabels(ctx context.Context, repository string, id int64, labels []string) error {
	h.asked("SetLabels")
	return h.github.SetLabels(ctx, repository, id, labels)
}

func (h *hub) JIT(_ context.Context, _, _ string, _ []string) (lifecycle.Registration, int64, error) {
	h.asked("JIT")
	r, err := h.token(lifecycle.RegistrationJIT)
	r.Secret = lifecycle.Secret(strings.Repeat("e", jitLength))
	return r, 4711, err
}

// WorkflowRun: none is of a fork.
func (h *hub) WorkflowRun(_ context.Context, repository, runID string) (lifecycle.WorkflowRun, error) {
	h.asked("WorkflowRun")
	return lifecycle.WorkflowRun{
		RunID: runID, RunAttempt: 1, Repository: repository, RepositoryID: 7, HeadRepositoryID: 7,
		Event: "push", Status: lifecycle.StatusInProgress,
	}, nil
}

func (h *hub) WorkflowJob(_ context.Context, _ string, _ int64) (lifecycle.WorkflowJob, error) {
	h.asked("WorkflowJob")
	return lifecycle.WorkflowJob{}, lifecycle.ErrNotFound
}

func (h *hub) RerunFailedJobs(context.Context, string, string) error {
	h.asked("RerunFailedJobs")
	return lifecycle.ErrRefused
}

// MissedDeliveries: GitHub could hand over all.
func (h *hub) MissedDeliveries(context.Context, time.Time) ([]delivery.Missed, error) {
	h.asked("MissedDeliveries")
	return nil, nil
}

func (h *hub) DeliveryPayload(context.Context, delivery.Missed) ([]byte, error) {
	h.asked("DeliveryPayload")
	return nil, lifecycle.ErrNotFound
}

func (h *hub) QueuedJobs(context.Context, string) ([]lifecycle.WorkflowJob, error) {
	h.asked("QueuedJobs")
	return nil, nil
}
