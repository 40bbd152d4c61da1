package fleet_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// jobOfUnknownRun sends the webhook of a queued job of whose run GitHub knows nothing.
func jobOfUnknownRun(ctx context.Context, h *hub, id int64, run string) {
	j := poolJob(id, time.Now())
	j.RunID, j.RunAttempt, j.Repository, j.Status = run, 1, repository, lifecycle.StatusQueued
	h.say(ctx, j)
}

// Whether a run is a fork's is asked of GitHub, also for runs that it does not know. Such deliveries cost few
// calls, they end, and a job beside them waits for none of them.
func TestRunsThatGitHubDoesNotKnowCostLittle(t *testing.T) {
	const deliveries = 300
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		for n := range int64(deliveries) {
			jobOfUnknownRun(ctx, w.hub, 1000+n, fmt.Sprint(1000+n))
		}
		good := poolJob(1, time.Now())
		w.hub.queue(ctx, good, time.Second)
		w.until("the job beside them", time.Minute, w.ran(1))
		if took := time.Since(good.QueuedAt); took > 20*time.Second {
			t.Errorf("the job beside them took %s", took)
		}
		time.Sleep(time.Until(good.QueuedAt.Add(time.Minute)))
		if n := w.hub.calls("WorkflowRun"); n > deliveries+20 {
			t.Errorf("%d questions in the first minute", n)
		}
		before := w.hub.calls("WorkflowRun")
		time.Sleep(time.Minute)
		if n := w.hub.calls("WorkflowRun") - before; n > 20 {
			t.Errorf("%d questions in the second minute", n)
		}
		time.Sleep(20 * time.Minute)
		for n := range deliveries {
			hook, err := w.store.Webhook(ctx, fmt.Sprintf("delivery-%d", n+1))
			want := fmt.Sprintf("refused: GitHub knows no run %d of %s (run_unknown)", 1000+n, repository)
			if err != nil || hook.Reason != want || !hook.DueAt.IsZero() {
				t.Fatalf("delivery %d: got %q, due %s, %v; want %q", n+1, hook.Reason, hook.DueAt, err, want)
			}
		}
		before = w.hub.calls("WorkflowRun")
		time.Sleep(20 * time.Minute)
		if n := w.hub.calls("WorkflowRun") - before; n != 0 {
			t.Errorf("%d questions after they were given up", n)
		}
	})
}

// GitHub's API may know a run a moment later than its webhooks. The jobs of one run share its questions.
func TestARunThatGitHubKnowsLaterIsServed(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		for id := range int64(3) {
			jobOfUnknownRun(ctx, w.hub, id+1, "7")
			time.Sleep(time.Second)
		}
		if n := w.hub.calls("WorkflowRun"); n != 1 {
			t.Errorf("%d questions about one run", n)
		}
		w.hub.hearBy(func(context.Context, lifecycle.Webhook) error { return nil }) // their webhooks were sent already
		for id := range int64(3) {
			j := poolJob(id+1, time.Now())
			j.RunID = "7"
			w.hub.queue(ctx, j, time.Second)
		}
		w.hub.hearBy(func(ctx context.Context, webhook lifecycle.Webhook) error {
			return w.fleet.TakeWebhook(ctx, webhook, time.Now())
		})
		for id := range int64(3) {
			w.until("its jobs", 2*time.Minute, w.ran(id+1))
		}
		if n := w.hub.calls("WorkflowRun"); n != 2 {
			t.Errorf("%d questions about one run", n)
		}
	})
}

// A run that stays unknown is asked about a few times, after pauses that grow, and then no more.
func TestPausesOfAnUnknownRunGrow(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		jobOfUnknownRun(ctx, w.hub, 1, "7")
		start, asked := time.Now(), 0
		var at []time.Duration
		for time.Since(start) < 30*time.Minute {
			time.Sleep(time.Second)
			if n := w.hub.calls("WorkflowRun"); n > asked {
				asked = n
				at = append(at, time.Since(start))
			}
		}
		if asked < 4 || asked > 6 {
			t.Errorf("asked %d times: %v", asked, at)
		}
		for n := 3; n < len(at); n++ {
			if at[n]-at[n-1] <= at[n-1]-at[n-2] {
				t.Errorf("the pauses do not grow: %v", at)
				break
			}
		}
		wantHeard(t, w, "run_unknown")
	})
}
