package cost_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
)

// atRest are the sweeps that come with webhooks, with so many job pools. The
// first has hosts at work, as many as it may if any, and jobs that wait for room.
type atRest struct {
	pools, atWork, waiting int
	jobs, webhooks         cost.Usage
	asked                  map[string]int
}

// poolsAtRest are the job pools that the sweeps are measured with, each with no
// fewer hosts and jobs than the one before.
var poolsAtRest = []atRest{
	{pools: 1}, {pools: 10}, {pools: 1, atWork: 20}, {pools: 1, atWork: 20, waiting: 100},
	{pools: 1, atWork: 20, waiting: 1000}, {pools: 1, atWork: 1000, waiting: 1000},
}

// lookedAt are how many running job-scoped hosts one sweep finds due.
var lookedAt = []int{1, 10}

// measureJobSweeps is what the sweeps of job pools use while nothing happens.
func measureJobSweeps(t *testing.T) (looks map[int]cost.Usage, news cost.Usage, rest []atRest) {
	w := newWorld(t)
	h := newHub(w.clock)
	w.busy, w.begun = true, 1
	looks = map[int]cost.Usage{}
	atWork, waiting := 0, 0
	for _, r := range poolsAtRest {
		w.work(atWork, r.atWork)
		w.queueUp(waiting, r.waiting)
		atWork, waiting = r.atWork, r.waiting
		w.fleet = w.newFleet(w.compute, w.withJobPools(h, r.pools, max(1, r.atWork)))
		r.jobs = w.sweep(w.fleet.NewJobSweep())
		r.asked = h.of(func() { r.webhooks = w.sweep(w.fleet.NewMissedSweep()) })
		rest = append(rest, r)
	}
	nothing := w.sweep(w.fleet.NewDueSweep())
	for _, k := range lookedAt {
		first := w.look(k)
		again := w.look(k)
		looks[k] = again.Plus(nothing.Times(-1))
		if k == 1 {
			news = first.Plus(again.Times(-1))
		}
	}
	return looks, news, rest
}

// work makes hosts of the first job pool that have begun the jobs of its turns,
// so that there are so many.
func (w *world) work(from, to int) {
	w.t.Helper()
	if from == to {
		return
	}
	turns, err := w.plain.SlotTable(w.t.Context(), jobPoolName(1))
	w.must(err)
	records := make([]lifecycle.Record, to-from)
	for i := range records {
		n := from + i
		turn := slots.Slot{
			Number: int64(n + 1), JobID: firstJob + int64(n), Repository: repository, Scope: repository, AssignedAt: w.clock.now(),
			HostKey: hostKey(instanceID(n)), Runner: lifecycle.RunnerName(2, instanceID(n)), Started: true,
		}
		turns.Assigned, turns.Open, records[i] = turn.Number, append(turns.Open, turn), w.working(instanceID(n), turn)
	}
	_, err = w.plain.UpdateSlotTable(w.t.Context(), turns)
	w.must(err)
	w.written(len(records), func(ctx context.Context, s *dynamo.Store, n int) error {
		return s.CreateRequest(ctx, w.settled(records[n]))
	})
	w.create(records...)
}

// working is a host that runs the job of a turn.
func (w *world) working(instanceID string, turn slots.Slot) lifecycle.Record {
	r, now := w.pooled(instanceID), w.clock.now()
	r.Pool, r.State, r.PooledAt = jobPoolName(1), lifecycle.StateRunning, time.Time{}
	r.RunID, r.RunAttempt, r.RequestID = turn.RunID(r.Pool), 1, turn.RunID(r.Pool)
	r.JobsOf, r.RunnerName, r.GitHubRunnerID = turn.Scope, turn.Runner, 4711
	r.Labels = []string{jobLabel}
	r.Threshold, r.RuntimeEndsAt = now.Add(r.MaxRuntime), now.Add(r.MaxRuntime)
	r.DueAt, r.Reason = now.Add(lifecycle.DefaultPolicy().JobPoll), "registered for jobs of "+turn.Scope
	return r
}

// settled is the request that a host was claimed by.
func (w *world) settled(r lifecycle.Record) lifecycle.Request {
	now := w.clock.now()
	return lifecycle.Request{
		Repository: r.Repository, RunID: r.RunID, RequestID: r.RequestID, Unattended: true, Version: 1,
		Spec: lifecycle.Spec{
			Pool: r.Pool, Count: 1, MinimumCount: 1, RunAttempt: 1, ResourceClass: r.ResourceClass, UsageClass: r.UsageClass,
			Labels: r.Labels, JobsOf: r.JobsOf, MaxRuntime: r.MaxRuntime, Timeout: 5 * time.Minute,
		},
		Taken:   []lifecycle.Taken{{HostKey: r.HostKey, InstanceID: r.InstanceID, Reused: true}},
		Outcome: lifecycle.OutcomeReady, Reason: "1 of 1 host is ready",
		CreatedAt: now, Deadline: now.Add(5 * time.Minute), ExpiresAt: now.Add(7 * 24 * time.Hour),
	}
}

// queueUp makes jobs that wait for a turn of the first pool, so that there are
// so many.
func (w *world) queueUp(from, to int) {
	w.t.Helper()
	w.written(to-from, func(ctx context.Context, s *dynamo.Store, n int) error {
		now := w.clock.now()
		return s.CreateJob(ctx, lifecycle.Job{
			ID: firstJob + poolMaximum + int64(from+n), Repository: repository, RunID: "15872034118", RunAttempt: 1,
			Labels: []string{jobLabel}, Pool: jobPoolName(1), Scope: repository,
			State: lifecycle.JobWaiting, QueuedAt: now.Add(time.Duration(from+n) * time.Second), Reason: "new, waiting",
			DueAt: now.Add(time.Hour), Version: 1, ExpiresAt: now.Add(7 * 24 * time.Hour),
		})
	})
}

// look lets so many hosts that run jobs be due, and no others.
func (w *world) look(k int) cost.Usage {
	w.t.Helper()
	for n := range k {
		r, err := w.plain.Instance(w.t.Context(), hostKey(instanceID(n)))
		w.must(err)
		r.DueAt = w.clock.now()
		_, err = w.plain.UpdateInstance(w.t.Context(), r)
		w.must(err)
	}
	used := w.sweep(w.fleet.NewDueSweep())
	var due []string
	for n := range k {
		r, err := w.plain.Instance(w.t.Context(), hostKey(instanceID(n)))
		w.must(err)
		if want := w.clock.now().Add(lifecycle.DefaultPolicy().JobPoll); r.State != lifecycle.StateRunning || !r.DueAt.Equal(want) {
			due = append(due, fmt.Sprintf("%s is %s and due at %s", r.InstanceID, r.Condition(), r.DueAt))
		}
	}
	if diff := cmp.Diff([]string(nil), due); diff != "" {
		w.t.Errorf("hosts that run jobs, looked at (-want +got):\n%s", diff)
	}
	return used
}
