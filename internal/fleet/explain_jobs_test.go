package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
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
			if err != nil {
				t.Fatal(err)
			}
			host := w.records()[0]
			for i, want := range []string{
				fmt.Sprintf(`Job 1 "build" runs on %s since `, host.RunnerName),
				fmt.Sprintf("Host %s (c5.large) is running since ", host.InstanceID),
				`Job 2 "build" waits for job pool jobs since `,
				"Why: pool jobs has 1 of 1 host, its maximum, and it is at work (pool_full), since 00:00:00Z. It gets a host when one of them is free.",
				"00:00:00Z start_job: job 1 \"build\" started on " + host.RunnerName + ", ",
			} {
				if i >= len(e.Sentences) || !strings.HasPrefix(e.Sentences[i], want) {
					t.Errorf("sentence %d does not begin with %q:\n%s", i, want, strings.Join(e.Sentences, "\n"))
				}
			}
		})
	})
}

// What a run's jobs did is in its history, and a job is explained by its id, also after it is over.
func TestExplainTellsOfJobsThatAreOver(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.hub.queue(ctx, poolJob(1, time.Now()), 90*time.Second)
		w.hub.queue(ctx, poolJob(2, time.Now()), time.Second)
		w.until("both are over", 10*time.Minute, w.allOver)
		time.Sleep(time.Second) // the last webhooks are worked on
		runner := w.hub.jobs[1].RunnerName
		e, err := w.fleet.Explain(ctx, repository, "1", time.Now())
		if want := `end_job: job 1 "build" is over: success after 1m30s on ` + runner + "."; err != nil || !strings.Contains(strings.Join(e.Sentences, "\n"), want) {
			t.Errorf("%v: no %q in\n%s", err, want, strings.Join(e.Sentences, "\n"))
		}
		e, err = w.fleet.ExplainJob(ctx, 1, fleet.OfRun{}, fleet.OfRun{}, time.Now())
		if err != nil || len(e.Events) != 2 || len(e.Sentences) != 4 || !strings.HasPrefix(e.Sentences[0], `Job 1 "build" is of run 1 of `+repository) {
			t.Errorf("%v: %d events\n%s", err, len(e.Events), strings.Join(e.Sentences, "\n"))
		}
		if over := e.Sentences[1]; !strings.HasPrefix(over, `Job 1 "build" is over since `) || !strings.HasSuffix(over, ": success after 1m30s on "+runner+".") {
			t.Errorf("how it ended: %s", over)
		}
		if j := w.hub.jobs[1]; e.Events[0].JobID != 1 || e.Events[0].JobName != "build" || !e.Events[0].Since.Equal(j.QueuedAt) || !e.Events[1].Since.Equal(j.StartedAt) {
			t.Errorf("the job %+v started and ended as %+v", j, e.Events)
		}
		for of, id := range map[fleet.OfRun]int64{{}: 99, {Repository: repository, RunID: "2"}: 1, {Repository: "acme/other", RunID: "1"}: 1} {
			if _, err := w.fleet.ExplainJob(ctx, id, of, fleet.OfRun{}, time.Now()); !errors.Is(err, lifecycle.ErrNotFound) {
				t.Errorf("job %d for %+v: %v", id, of, err)
			}
		}
		own := fleet.OfRun{Repository: strings.ToUpper(repository), RunID: "1"}
		if _, err := w.fleet.ExplainJob(ctx, 1, own, own, time.Now()); err != nil {
			t.Errorf("for its own run: %v", err)
		}
		var invalid *fleet.InvalidError
		for _, named := range []fleet.OfRun{{Repository: repository, RunID: "2"}, {Repository: "acme/other", RunID: "1"}} {
			_, err := w.fleet.ExplainJob(ctx, 1, fleet.OfRun{}, named, time.Now())
			if want := "job 1 is of run 1 of " + repository; !errors.As(err, &invalid) || !strings.Contains(invalid.Rule, want) {
				t.Errorf("named with %+v: %v, want %q", named, err, want)
			}
		}
	})
}

// jobURL is where people see a job.
func jobURL(repository, runID string, id int64) string {
	return fmt.Sprintf("https://github.com/%s/actions/runs/%s/job/%d", repository, runID, id)
}

// A host of a job pool serves no run: it is explained by the job that it runs.
func TestExplainAHostOfAJobPool(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.hub.queue(ctx, poolJob(7, time.Now()), time.Hour)
		w.until("the job runs", time.Minute, w.ran(7))
		time.Sleep(time.Second)
		w.says(ctx, w.records()[0].InstanceID, "serves one job of job pool jobs, for its request turn:jobs:1,",
			`It runs job 7 "build" of run 1 of `+repository+", attempt 1, since ", ": "+jobURL(repository, "1", 7)+".")
		e, err := w.fleet.ExplainJob(ctx, 7, fleet.OfRun{}, fleet.OfRun{}, time.Now())
		if err != nil || !strings.HasSuffix(e.Sentences[0], jobURL(repository, "1", 7)+".") {
			t.Errorf("%v: %q names no URL", err, e.Sentences)
		}
	}, func(o *fleet.JobOptions) { o.URL = jobURL })
}

// The job of a host that serves a run is known by its runner, whether each run is read or all open jobs are.
func TestJobsOnHostsOfRuns(t *testing.T) {
	for _, runs := range []int{1, 12} {
		t.Run(fmt.Sprint(runs), func(t *testing.T) {
			inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
				var of []lifecycle.Record
				for i := range runs {
					run := fmt.Sprint(100 + i)
					of = append(of, w.mustProvision(ctx, demand(run, "a", 2))...)
				}
				for i, r := range of[:len(of)-1] {
					j := queuedJob(int64(i+1), r.RunID, r.RunID)
					w.hub.say(ctx, j)
					j.Status, j.RunnerName, j.StartedAt = lifecycle.StatusInProgress, r.RunnerName, time.Now()
					w.hub.say(ctx, j)
				}
				time.Sleep(10 * time.Second)
				on, err := w.fleet.JobsOn(ctx, of, time.Now())
				if err != nil || len(on) != len(of)-1 {
					t.Fatalf("%v: jobs on %d hosts, want %d", err, len(on), len(of)-1)
				}
				for i, r := range of[:len(of)-1] {
					if j := on[r.HostKey]; j.ID != int64(i+1) || j.URL != jobURL(repository, r.RunID, j.ID) {
						t.Errorf("host %s of run %s: %+v", r.InstanceID, r.RunID, j)
					}
				}
				w.says(ctx, of[0].InstanceID, "serves run 100 of "+repository+", ", "It runs job 1", "of run 100 of ", jobURL(repository, "100", 1))
			}, func(o *fleet.JobOptions) { o.URL = jobURL })
		})
	}
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
		stranger := queuedJob(4, "5", "remuda-small")
		stranger.Repository = "other/app"
		w.hub.queue(ctx, stranger, time.Second)
		w.hub.queue(ctx, queuedJob(5, "6", "remuda-smal"), time.Second)
		w.hub.queue(ctx, queuedJob(6, "7", "remuda-small", "gpu"), time.Second)
		w.hub.queue(ctx, queuedJob(7, "8", "8"), time.Second)
		w.hub.queue(ctx, queuedJob(8, "9", "ubuntu-latest"), time.Second)
		w.hub.queue(ctx, queuedJob(9, "10", "remuda-xlarge"), time.Second)
		time.Sleep(20 * time.Minute)
		const changes = " Nothing happens until the workflow or the configuration changes"
		for of, want := range map[fleet.OfRun]string{
			{Repository: repository, RunID: "6"}: `Job 5 gets no host: no pool has the label "remuda-smal"; did you mean remuda-small, of pool jobs?` +
				changes + ": correct runs-on, or add the label to pools.jobs.jobs.labels.",
			{Repository: repository, RunID: "10"}: `Job 9 gets no host: no pool has the label "remuda-xlarge"; of those that begin alike the nearest is remuda-small, of pool jobs.` +
				changes + ": correct runs-on, or add the label to pools.jobs.jobs.labels.",
			{Repository: repository, RunID: "7"}: `Job 6 gets no host: pool jobs has not all of its labels, it lacks ["gpu"].` +
				changes + ": correct runs-on, or add the label to pools.jobs.jobs.labels.",
			{Repository: repository, RunID: "8"}: "Job 7 gets no host: runs-on names the id of its run, and nothing was provisioned for the run: " +
				"call Provision in a job before it, or add a rule with webhook: true for acme/app. It gets a host once hosts are requested for its run.",
			{Repository: repository, RunID: "2"}: `Job 1 "build" gets no host: run 2 is of a fork, and job pool jobs takes none.` +
				" Nothing happens until the configuration changes: set pools.jobs.jobs.forks, if jobs of forks are to have hosts.",
			{Repository: repository, RunID: "3"}: "Job 2 gets no host: runs-on names the label self-hosted, which the hosts of pool jobs do not have: " +
				"remove it from runs-on, or set default_labels: true for the pool." + changes + ".",
			{Repository: repository, RunID: "4"}: "Job 3 \"build\" gets no host: GitHub knows no run 4 of " + repository + "." +
				" It is not looked at again: see that the App may read actions, and start the run again.",
			{Repository: "other/app", RunID: "5"}: "Job 4 gets no host: other/app may not use job pool jobs; it may be used by [acme/*]." +
				" Nothing happens until the configuration changes: add the repository to pools.jobs.jobs.repositories.",
		} {
			e, err := w.fleet.Explain(ctx, of.Repository, of.RunID, time.Now())
			if err != nil || len(e.Sentences) != 1 || e.Sentences[0] != want {
				t.Errorf("run %s: %q, %v; want one sentence %q", of.RunID, e.Sentences, err, want)
			}
			refused := e.Events[0]
			if refused.Since.IsZero() || !strings.HasPrefix(want, fmt.Sprint("Job ", refused.JobID, " ")) || (refused.JobName == "build") != strings.Contains(want, `"build"`) {
				t.Errorf("run %s: the event is %+v", of.RunID, refused)
			}
			for name, asked := range map[string]struct{ of, named fleet.OfRun }{"by its URL": {named: of}, "by its id alone": {}, "by its own run": {of: of}} {
				e, err := w.fleet.ExplainJob(ctx, refused.JobID, asked.of, asked.named, time.Now())
				if err != nil || len(e.Sentences) != 2 || e.Sentences[0] != want || !strings.HasPrefix(e.Sentences[1], "It is of run "+of.RunID+" of "+of.Repository+", ") || len(e.Events) != 1 {
					t.Errorf("job %d %s: %q, %v; want %q", refused.JobID, name, e.Sentences, err, want)
				}
			}
		}
		other := fleet.OfRun{Repository: repository, RunID: "3"}
		for name, asked := range map[string]struct{ of, named fleet.OfRun }{"of another run": {of: other}, "named with another run": {named: other}} {
			if e, err := w.fleet.ExplainJob(ctx, 5, asked.of, asked.named, time.Now()); !errors.Is(err, lifecycle.ErrNotFound) {
				t.Errorf("a refused job %s: %q, %v", name, e.Sentences, err)
			}
		}
		for run, of := range map[string]string{"5": repository, "9": repository} {
			if e, err := w.fleet.Explain(ctx, of, run, time.Now()); !errors.Is(err, lifecycle.ErrNotFound) {
				t.Errorf("run %s of %s: %q, %v", run, of, e.Sentences, err)
			}
		}
	})
}

// The events of a job and of a request name the pool, since they have no host whose pool it would be.
func TestEventsWithoutAHostNameThePool(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.hub.queue(ctx, poolJob(1, time.Now()), time.Second)
		w.until("it is over", 10*time.Minute, w.allOver)
		time.Sleep(time.Second) // the last webhook is worked on
		page, err := w.store.EventsSince(ctx, lifecycle.PageOf{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[lifecycle.Action]bool{}
		for _, e := range page.Items {
			if seen[e.Action] = true; e.InstanceID == "" && e.Pool != "jobs" {
				t.Errorf("%s of run %s names pool %q", e.Action, e.RunID, e.Pool)
			}
		}
		if !seen[lifecycle.ActionStartJob] || !seen[lifecycle.ActionEndJob] {
			t.Errorf("the history has %v", seen)
		}
	})
}

// Each job of the largest matrix that GitHub allows has its reason, and the run has it in one sentence.
func TestEachRefusedJobOfAMatrixHasItsReason(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		const matrix = 256
		for id := range int64(matrix) {
			for range 2 { // a job that is announced again has one event
				w.hub.say(ctx, queuedJob(id+1, "2", "remuda-smal"))
			}
		}
		of := fleet.OfRun{Repository: repository, RunID: "2"}
		for id := range int64(matrix) {
			e, err := w.fleet.ExplainJob(ctx, id+1, fleet.OfRun{}, of, time.Now())
			if want := fmt.Sprintf("Job %d gets no host: no pool has the label", id+1); err != nil || len(e.Events) != 1 || !strings.HasPrefix(e.Sentences[0], want) {
				t.Errorf("job %d: %q, %v", id+1, e.Sentences, err)
			}
		}
		e, err := w.fleet.Explain(ctx, repository, "2", time.Now())
		if want := "Job 1 and 255 other jobs get no host: no pool has the label"; err != nil || len(e.Sentences) != 1 || !strings.HasPrefix(e.Sentences[0], want) {
			t.Errorf("the run: %q, %v", e.Sentences, err)
		}
	})
}

// A job that was refused, and has a host after hosts were requested for its run, is not said to get none.
func TestARefusedJobThatGetsAHostLater(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		job := queuedJob(1, "2", "2")
		w.hub.say(ctx, job)
		r := w.mustProvision(ctx, demand("2", "a", 1))[0]
		job.Status, job.RunnerName, job.StartedAt = lifecycle.StatusInProgress, r.RunnerName, time.Now()
		w.hub.say(ctx, job)
		time.Sleep(10 * time.Second)
		e, err := w.fleet.Explain(ctx, repository, "2", time.Now())
		said := strings.Join(e.Sentences, "\n")
		if err != nil || strings.Contains(said, "Job 1 gets no host") || !strings.Contains(said, "Job 1 runs on "+r.RunnerName) || !strings.Contains(said, "Z job 1 gets no host: ") {
			t.Errorf("%v:\n%s", err, said)
		}
		if e, err = w.fleet.ExplainJob(ctx, 1, fleet.OfRun{}, fleet.OfRun{}, time.Now()); err != nil || !strings.HasPrefix(e.Sentences[1], "Job 1 runs on ") {
			t.Errorf("the job: %q, %v", e.Sentences, err)
		}
	})
}

// What GitHub delivers about forks and labels does not fill the history: the refusals of a run and of a repository
// are bounded.
func TestNotesOfRefusedJobsAreBounded(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		for id := range int64(300) {
			w.hub.say(ctx, queuedJob(id+1, "2", "self-hosted", "remuda-small"))
		}
		e, err := w.fleet.Explain(ctx, repository, "2", time.Now())
		if err != nil || len(e.Events) != 256 {
			t.Errorf("of 300 jobs of a run: %d events, %v; want 256", len(e.Events), err)
		}
		for id := range int64(500) {
			w.hub.say(ctx, queuedJob(1000+id, fmt.Sprint(1000+id), "self-hosted", "remuda-small"))
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
		if n := refused(); n != 512 {
			t.Errorf("of 800 jobs of a repository at once %d are in the history, want 512", n)
		}
		time.Sleep(time.Minute)
		for id := range int64(100) {
			w.hub.say(ctx, queuedJob(2000+id, fmt.Sprint(2000+id), "self-hosted", "remuda-small"))
		}
		if n := refused(); n != 512+60 {
			t.Errorf("a minute later: %d, want 60 more", n)
		}
	})
}
