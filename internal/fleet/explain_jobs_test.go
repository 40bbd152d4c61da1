package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// A run whose jobs a pool serves has no request of its own: it is explained by
// its jobs.
func TestExplainTellsOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		w.live(t, func(ctx context.Context) {
			w.hub.queue(ctx, poolJob(1, time.Now()), time.Hour)
			w.until("the first job runs", time.Minute, w.ran(1))
			w.hub.queue(ctx, poolJob(2, time.Now()), time.Hour)
			time.Sleep(time.Second)
			e, err := w.fleet.Explain(ctx, repository, "1", time.Now())
			if err != nil || len(e.Sentences) != 2 {
				t.Fatalf("%v: %q", err, e.Sentences)
			}
			runner := w.records()[0].RunnerName
			if want := fmt.Sprintf("Job 1 runs on %s since ", runner); e.Sentences[0][:len(want)] != want {
				t.Errorf("running: %q", e.Sentences[0])
			}
			if want := "Job 2 waits for job pool jobs since "; e.Sentences[1][:len(want)] != want {
				t.Errorf("waiting: %q", e.Sentences[1])
			}
		})
	})
}

// forkOf has GitHub say that a run is of a fork.
func (h *hub) forkOf(run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs[run] = lifecycle.WorkflowRun{RunID: run, Repository: repository, RepositoryID: repositoryID, HeadRepositoryID: 99}
}

// A job that gets no host at its webhook is explained for as long as the history is kept.
func TestExplainTellsOfRefusedJobs(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.hub.forkOf("2")
		fork := poolJob(1, time.Now())
		fork.RunID = "2"
		w.hub.queue(ctx, fork, time.Second)
		w.hub.queue(ctx, queuedJob(2, "3", "self-hosted", "remuda-small"), time.Second)
		jobOfUnknownRun(ctx, w.hub, 3, "4")
		stranger := queuedJob(4, "5", "self-hosted", "remuda-small")
		stranger.Repository = "other/app"
		w.hub.queue(ctx, stranger, time.Second)
		time.Sleep(20 * time.Minute)
		for run, want := range map[string]string{
			"2": "Z refuse_job: job 1 gets no host: run 2 is of a fork, and job pool jobs takes none.",
			"3": "Z refuse_job: job 2 names the label self-hosted, which the hosts of pool jobs do not have: " +
				"remove it from runs-on, or set default_labels: true for the pool.",
			"4": "Z refuse_job: job 3 gets no host: GitHub knows no run 4 of " + repository + ".",
		} {
			e, err := w.fleet.Explain(ctx, repository, run, time.Now())
			if err != nil || len(e.Sentences) != 1 || !strings.HasSuffix(e.Sentences[0], want) {
				t.Errorf("run %s: %q, %v; want one sentence that ends with %q", run, e.Sentences, err, want)
			}
		}
		for _, of := range []string{repository, "other/app"} {
			if e, err := w.fleet.Explain(ctx, of, "5", time.Now()); !errors.Is(err, lifecycle.ErrNotFound) {
				t.Errorf("run 5 of %s: %q, %v", of, e.Sentences, err)
			}
		}
	})
}

// What GitHub delivers about forks and labels does not fill the history: the refusals of a run and of a repository
// are bounded.
func TestNotesOfRefusedJobsAreBounded(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		for id := range int64(50) {
			w.hub.say(ctx, queuedJob(id+1, "2", "self-hosted", "remuda-small"))
		}
		e, err := w.fleet.Explain(ctx, repository, "2", time.Now())
		if err != nil || len(e.Sentences) != 10 {
			t.Errorf("of 50 jobs of a run: %d sentences, %v; want 10", len(e.Sentences), err)
		}
		for id := range int64(500) {
			w.hub.say(ctx, queuedJob(100+id, fmt.Sprint(100+id), "self-hosted", "remuda-small"))
		}
		refused := func() (n int) {
			page, err := w.store.EventsSince(ctx, lifecycle.PageOf{Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Items {
				if e.Action == lifecycle.ActionRefuseJob {
					n++
				}
			}
			return n
		}
		if n := refused(); n != 60 {
			t.Errorf("of 550 jobs of a repository in a minute %d are in the history, want 60", n)
		}
		time.Sleep(time.Minute)
		w.hub.say(ctx, queuedJob(1000, "1000", "self-hosted", "remuda-small"))
		if n := refused(); n != 61 {
			t.Errorf("a minute later: %d, want 61", n)
		}
	})
}
