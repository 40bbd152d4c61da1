package cost_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/github/webhook"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/policy"
)

// poolJobs is what the jobs of job pools use.
type poolJobs struct {
	// told is one warm job, by GitHub's webhooks, in pools in which this number of
	// other hosts is at work.
	told map[int][]told
	// looks are due sweeps that find so many running job-scoped hosts due, without
	// what one that finds nothing uses.
	looks map[int]cost.Usage
	// news is what the first such look at a host uses in addition, for its event.
	news cost.Usage
	rest []atRest
}

// told is what a webhook leads to, and how often GitHub was asked for something.
type told struct {
	what  string
	used  cost.Usage
	asked map[string]int
}

const (
	poolMaximum = 1000 // the most that a pool may have
	jobLabel    = "remuda-small"
	firstJob    = 44731890000
)

// othersAtWork are in the pool in which a job is measured.
var othersAtWork = []int{0, 19, 199, 999}

func jobPoolName(n int) string { return fmt.Sprintf("jobs-%d", n) }

// withJobPools gives a fleet some job pools. The first serves jobLabel.
func (w *world) withJobPools(h *hub, pools, maximum int) func(*fleet.Options) {
	return func(o *fleet.Options) {
		o.GitHub = h
		o.Jobs = &fleet.JobOptions{
			Store: w.store, GitHub: h, Parse: webhook.Parse, Scope: strings.ToLower, Pools: map[string]fleet.JobPool{},
		}
		for n := range pools {
			name, label := jobPoolName(n+1), jobLabel
			if n > 0 {
				label = fmt.Sprintf("%s-%d", jobLabel, n+1)
			}
			o.Pools[name] = o.Pools["default"]
			o.Jobs.Pools[name] = fleet.JobPool{
				JobPool:      policy.JobPool{Maximum: maximum, UnclaimedTimeout: 2 * time.Minute},
				Labels:       []string{label},
				Spec:         lifecycle.Spec{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand},
				Repositories: []string{"acme/*"},
			}
		}
	}
}

// measureJobs measures a job beside so many others.
func measureJobs(t *testing.T) map[int][]told {
	all := map[int][]told{}
	for _, others := range othersAtWork {
		t.Run(fmt.Sprint(others), func(t *testing.T) { all[others] = measureJob(t, others) })
	}
	return all
}

// TestJobsAreServed has in the race pass what starts goroutines in a measurement:
// ServeJobs, beside the meter, the clock and the hub that it shares with the test.
func TestJobsAreServed(t *testing.T) {
	t.Parallel()
	measureJob(t, othersAtWork[1])
}

// measureJob lets one host of a pool run two jobs, of two runs, while the fleet
// serves jobs and so many other hosts of it are at work. The sweeps are measured
// apart. The first job finds a process that has not been at work. Others may change the fleet.
func measureJob(t *testing.T, others int, with ...func(*world) func(*fleet.Options)) (all []told) {
	w := newWorld(t, func(w *world) { w.bubbles = true })
	h := newHub(w.clock)
	changes := []func(*fleet.Options){w.withJobPools(h, 1, poolMaximum)}
	for _, change := range with {
		changes = append(changes, change(w))
	}
	w.fleet = w.newFleet(w.compute, changes...)
	w.busy, w.begun = true, 1
	w.work(0, others)
	synctest.Test(t, func(t *testing.T) {
		w.t, w.clock.runs = t, true
		time.Sleep(time.Until(began))
		r := w.pooled(instanceID(others))
		r.Pool = jobPoolName(1)
		w.create(r)
		w.must(w.queue.Send(t.Context(), r.Message()))
		w.keys = []string{r.HostKey}

		ctx, cancel := context.WithCancel(t.Context())
		go w.fleet.ServeJobs(ctx)
		synctest.Wait()
		w.runJob(h, "15872034116", 1)
		all = w.runJob(h, "15872034117", 2)
		cancel()
		synctest.Wait()
	})
	return all
}

// runJob is the life of one job on the host.
func (w *world) runJob(h *hub, run string, id int64) (all []told) {
	w.t.Helper()
	job := lifecycle.WorkflowJob{
		ID: firstJob + poolMaximum + id, Repository: repository, RunID: run, RunAttempt: 1, QueuedAt: w.clock.now(),
		Labels: []string{jobLabel}, Status: lifecycle.StatusQueued,
	}
	hear := func(what string) {
		hook := lifecycle.Webhook{
			DeliveryID: fmt.Sprintf("0b989ba4-242f-11e5-81e1-c7b6966d2%d%s", id, what[:2]), Action: job.Status,
			RepositoryID: 7, OwnerID: 8, Job: &job,
		}
		w.hear(h, what, &all, func() error { return w.fleet.TakeWebhook(w.t.Context(), hook, w.clock.now()) })
	}
	hear("queued: a slot, a host is claimed and ready")
	w.wantTurn(lifecycle.StateRunning, &slots.Slot{})

	w.busy, w.begun = true, 1
	w.answer()
	r := w.host()
	job.Status, job.RunnerName, job.StartedAt = lifecycle.StatusInProgress, r.RunnerName, w.clock.now()
	hear("in progress: the slot has started")
	w.wantTurn(lifecycle.StateRunning, &slots.Slot{Started: true})

	time.Sleep(jobTime)
	w.busy = false
	w.answer()
	job.Status, job.CompletedAt = lifecycle.StatusCompleted, w.clock.now()
	hear("completed: the host is released, and is in the pool")
	w.wantTurn(lifecycle.StateIdle, nil)
	w.begun = 0

	over := lifecycle.Webhook{DeliveryID: "over-" + run, Action: lifecycle.StatusCompleted, Run: &lifecycle.WorkflowRun{
		RunID: run, RunAttempt: 1, Repository: repository, RepositoryID: 7, Status: lifecycle.StatusCompleted,
	}}
	w.hear(h, "the run is over: its jobs had their hosts", &all, func() error {
		err := w.fleet.TakeWebhook(w.t.Context(), over, w.clock.now())
		if !errors.Is(err, fleet.ErrNotOurs) {
			w.t.Errorf("the end of a run whose jobs a pool served: %v, want it not to be ours", err)
		}
		return nil
	})
	return all
}

// answerAfter is when the host carries out its order: between the first and the second
// look of the operation that waits for it.
const answerAfter = 200 * time.Millisecond

// hear takes a webhook and lets all that follows happen.
func (w *world) hear(h *hub, what string, all *[]told, take func() error) {
	w.t.Helper()
	one := told{what: what}
	one.asked = h.of(func() {
		one.used = w.meter.of(func() {
			w.must(take())
			synctest.Wait()
			time.Sleep(answerAfter)
			synctest.Wait()
			w.answer()
			time.Sleep(2 * time.Second)
			synctest.Wait()
		})
	})
	*all = append(*all, one)
}

// host is the host of the run in hand.
func (w *world) host() lifecycle.Record {
	w.t.Helper()
	r, err := w.plain.Instance(w.t.Context(), w.keys[0])
	w.must(err)
	return r
}

// wantTurn wants the host to be in a state, and to have a turn that is begun as
// want is, or none.
func (w *world) wantTurn(state lifecycle.State, want *slots.Slot) {
	w.t.Helper()
	turns, err := w.plain.SlotTable(w.t.Context(), jobPoolName(1))
	w.must(err)
	r := w.host()
	var has *slots.Slot
	for _, turn := range turns.Open {
		if turn.HostKey == r.HostKey && turn.Runner == r.RunnerName {
			has = &slots.Slot{Started: turn.Started}
		}
	}
	if diff := cmp.Diff(want, has); diff != "" || r.State != state || want == nil && !r.Pooled() {
		w.t.Fatalf("the host is %s (%s), want it %s; its turn (-want +got):\n%s", r.Condition(), r.Reason, state, diff)
	}
}
