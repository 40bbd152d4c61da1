package fleet_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/delivery"
)

// A user with runners of their own may give them names like ours: what jobs
// do on them does not change our hosts.
func TestARunnerElsewhereHasTheNameOfOurs(t *testing.T) {
	t.Run("in another repository", func(t *testing.T) { testNamesake(t, true) })
	t.Run("beside the organisation's", func(t *testing.T) { testNamesake(t, false) })
}

func testNamesake(t *testing.T, elsewhere bool) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.until("a host waits", time.Minute, func() bool { return len(w.records(lifecycle.StateRunning)) == 1 })
		ours := w.records(lifecycle.StateRunning)[0]
		w.until("its turn names it", time.Minute, func() bool { return w.turns().Open[0].Runner == ours.RunnerName })
		evil := poolJob(99, time.Now())
		evil.Repository, evil.RunnerName, evil.RunnerID = repository, ours.RunnerName, ours.GitHubRunnerID+1000
		if elsewhere {
			evil.Repository, evil.RunnerID = "acme/evil", 0
		}
		for _, status := range []string{lifecycle.StatusInProgress, lifecycle.StatusCompleted} {
			evil.Status = status
			w.hub.say(ctx, evil)
			time.Sleep(10 * time.Second)
			wantHeard(t, w, "job 99")
			if turn := w.turns().Open[0]; turn.Started || turn.Runner != ours.RunnerName {
				t.Errorf("%s elsewhere: our turn is %+v", status, turn)
			}
			if r := w.record(ours.HostKey); r.State != lifecycle.StateRunning || r.Assignment != ours.Assignment {
				t.Errorf("%s elsewhere: our host is %s: %s", status, r.Condition(), r.Reason)
			}
		}
	}, func(o *fleet.JobOptions) {
		p := o.Pools[jobPool]
		p.Minimum, p.Repository, p.Scope = 1, repository, repository
		o.Pools[jobPool] = p
	})
}

// The queue and the index are old now and then. A runner that is registered by
// an old message would take over the name of the host that was claimed.
func TestAnOldMessageTakesOverNoName(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.warm(ctx, 1)
		old := w.records(lifecycle.StateIdle)[0].Message()
		w.hub.queue(ctx, poolJob(10, time.Now()), 2*time.Minute)
		w.until("a job runs", time.Minute, w.ran(10))
		if err := w.queue.Send(ctx, old); err != nil {
			t.Fatal(err)
		}
		w.hub.queue(ctx, poolJob(11, time.Now()), time.Second)
		w.until("the other job runs", time.Minute, w.ran(11))
		w.until("both are over", 5*time.Minute, w.allOver)
		if n := w.hub.calls("JIT"); n != 3 {
			t.Errorf("%d registrations for three jobs", n)
		}
	})
}

// A caller that leaves, or a crash, right after its request is written must not
// get a run more hosts than it may have.
func TestTheLimitOfARunOutlivesItsCaller(t *testing.T) {
	for name, resume := range map[string]func(context.Context, *world, fleet.Demand){
		"a sweep goes on":       func(context.Context, *world, fleet.Demand) {},
		"the caller comes back": func(ctx context.Context, w *world, d fleet.Demand) { _, _ = w.provision(ctx, d) },
	} {
		t.Run(name, func(t *testing.T) {
			inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
				w.mustProvision(ctx, demand("5", "first", 2))
				d := demand("5", "second", 2)
				d.MaxHosts = 3
				p, err := w.fleet.NewProvision(d)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := p.Step(ctx, time.Now()); err != nil { // it writes the row
					t.Fatal(err)
				}
				resume(ctx, w, d)
				time.Sleep(2 * time.Minute)
				if n := len(w.serving("5")); n != 2 {
					t.Errorf("%d hosts serve the run, want the 2 that it had", n)
				}
				q, err := w.store.Request(ctx, repository, "5", "second")
				if err != nil || q.Outcome != lifecycle.OutcomeShort {
					t.Errorf("the request: %v, %q, %s", err, q.Outcome, q.Reason)
				}
			})
		})
	}
}

// mumHub is GitHub that says nothing about some jobs, and has some deliveries that
// cannot be read.
type mumHub struct {
	*hub
	mum        map[int64]bool
	deliveries []delivery.Missed
	read       *[]string
}

func (h mumHub) WorkflowJob(ctx context.Context, repository string, id int64) (lifecycle.WorkflowJob, error) {
	if h.mum[id] {
		return lifecycle.WorkflowJob{}, fmt.Errorf("get job %d: %w", id, lifecycle.ErrRefused)
	}
	return h.hub.WorkflowJob(ctx, repository, id)
}

func (h mumHub) MissedDeliveries(context.Context, time.Time) ([]delivery.Missed, error) {
	return h.deliveries, nil
}

func (h mumHub) DeliveryPayload(_ context.Context, d delivery.Missed) ([]byte, error) {
	*h.read = append(*h.read, d.DeliveryID)
	if h.mum[d.ID] {
		return nil, &lifecycle.UnavailableError{What: "delivery", Err: context.DeadlineExceeded}
	}
	return nil, nil
}

// A job of a repository that GitHub tells nothing of, such as one that was
// deleted, does not keep others from being asked about.
func TestARefusalHoldsUpNoOtherJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1, func(o *fleet.JobOptions) {
			o.GitHub = mumHub{hub: o.GitHub.(*hub), mum: map[int64]bool{1: true, 2: true}}
		})
		began := time.Now()
		for id, queued := range map[int64]time.Time{1: began.Add(-25 * time.Hour), 2: began, 3: began} {
			if err := w.store.CreateJob(t.Context(), lifecycle.Job{
				ID: id, Repository: repository, RunID: "1", State: lifecycle.JobWaiting, QueuedAt: queued,
				DueAt: began.Add(time.Duration(id) * time.Second), Version: 1, ExpiresAt: began.Add(time.Hour * 99),
			}); err != nil {
				t.Fatal(err)
			}
		}
		w.live(t, func(ctx context.Context) { time.Sleep(time.Minute) })
		got := map[int64]lifecycle.JobState{}
		for id := range int64(3) {
			j, err := w.store.Job(t.Context(), id+1)
			if err != nil {
				t.Fatal(err)
			}
			got[j.ID] = j.State
			if j.State == lifecycle.JobWaiting && j.DueAt.Before(began.Add(time.Hour)) {
				t.Errorf("job %d is asked about again at %s", j.ID, j.DueAt)
			}
		}
		want := map[int64]lifecycle.JobState{1: lifecycle.JobDone, 2: lifecycle.JobWaiting, 3: lifecycle.JobDone}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("jobs (-want +got):\n%s", diff)
		}
	})
}

// Events of no use cost no call, and one that cannot be read holds up no other.
func TestWhichMissedDeliveriesAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read []string
		w := jobWorld(t, 1, func(o *fleet.JobOptions) {
			o.GitHub = mumHub{
				hub: o.GitHub.(*hub), mum: map[int64]bool{2: true}, read: &read,
				deliveries: []delivery.Missed{
					{ID: 1, DeliveryID: "push", Event: "push"}, {ID: 2, DeliveryID: "unreadable", Event: "workflow_job"},
					{ID: 3, DeliveryID: "job", Event: "workflow_job"}, {ID: 4, DeliveryID: "run", Event: "workflow_run"},
				},
			}
		})
		sweep := w.fleet.NewMissedSweep()
		if err := w.fleet.Drive(t.Context(), sweep, 0); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"unreadable", "job", "run"}, read); diff != "" {
			t.Errorf("deliveries that were read (-want +got):\n%s", diff)
		}
	})
}
