package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
			if told := w.whyRun("1"); !strings.HasPrefix(told, "Job 1 ") {
				t.Errorf("with one job and its start alone:\n%s", told)
			}
			w.hub.queue(ctx, poolJob(3, time.Now()), time.Hour)
			time.Sleep(2 * time.Second)
			w.hub.queue(ctx, poolJob(2, time.Now()), time.Hour)
			time.Sleep(time.Second)
			e, err := w.fleet.Explain(ctx, repository, "1", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			queued := time.Now().UTC().Add(-time.Second).Format("15:04:05Z")
			host := w.records()[0]
			for i, want := range []string{
				fmt.Sprintf(`Job 1 "build" runs on %s since `, host.RunnerName),
				fmt.Sprintf("Host %s (c5.large) is running since ", host.InstanceID),
				`Job 3 "build" waits for job pool jobs since `,
				"Why: pool jobs has 1 of 1 host, its maximum, and it is at work (pool_full), since 00:00:00Z. It gets a host when one of them is free.",
				`Job 2 "build" waits for job pool jobs since ` + queued + " (1s), the 2nd of 2.",
				"Why: pool jobs has 1 of 1 host, its maximum, and it is at work (pool_full), since 00:00:00Z. It gets a host when one of them is free, after the job before it.",
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
					of = append(of, w.mustProvision(ctx, demand(run, "a", 3))...)
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
				if on, err = w.fleet.JobsOn(ctx, of[:1], time.Now()); err != nil || len(on) != 1 {
					t.Errorf("%v: of one host there are the jobs %+v", err, on)
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
		for id := range int64(3) {
			label := "remuda-smal"
			if id == 2 {
				label = "remuda-xlarge"
			}
			w.hub.say(ctx, queuedJob(300+id, "3", label))
		}
		e, err = w.fleet.Explain(ctx, repository, "3", time.Now())
		if err != nil || len(e.Sentences) != 2 || !strings.HasPrefix(e.Sentences[0], "Job 300 and 1 other job get no host: ") || !strings.HasPrefix(e.Sentences[1], "Job 302 gets no host: ") {
			t.Errorf("a run with two reasons: %q, %v", e.Sentences, err)
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
		if e, err = w.fleet.ExplainJob(ctx, 1, fleet.OfRun{}, fleet.OfRun{}, time.Now()); err != nil || !strings.HasPrefix(e.Sentences[1], "Job 1 runs on ") || len(e.Sentences) != 2+len(e.Events) {
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

// While a job of a run waits, it is said what its run still waits for.
func TestExplainAJobThatWaitsForTheHostsOfItsRun(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		host := w.mustProvision(ctx, demand("2", "a", 1))[0]
		w.compute.SetCapacity("*", 1)
		go w.provisionQuietly(ctx, demand("2", "b", 1))
		time.Sleep(time.Second)
		job := queuedJob(1, "2", "2")
		w.hub.say(ctx, job)
		w.hub.queue(ctx, lifecycle.WorkflowJob{ID: 2, RunID: "2", Labels: []string{"remuda-small"}}, time.Second)
		time.Sleep(2 * time.Second)
		explained := func(id int64) []string {
			t.Helper()
			e, err := w.fleet.ExplainJob(ctx, id, fleet.OfRun{}, fleet.OfRun{}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return e.Sentences
		}
		got := explained(1)
		want := []string{
			"Job 1 is of run 2 of acme/app, attempt 1, with the labels 2.", "Job 1 waits for the hosts of its run since ",
			"Request b of attempt 1 asked for 1 large on-demand host of pool default at ",
		}
		for i, begin := range want {
			if len(got) != len(want) || !strings.HasPrefix(got[i], begin) {
				t.Errorf("while the run waits: %q, want %q", got, want)
			}
		}
		if left := "it has taken 0, with 9m57s left: the last launch was short: "; !strings.Contains(got[2], left) {
			t.Errorf("%q, want %q", got[2], left)
		}
		if told := strings.Join(explained(2), "\n"); strings.Contains(told, "Request b") {
			t.Errorf("a job of a pool waits for a request of its run:\n%s", told)
		}
		for _, status := range []string{lifecycle.StatusInProgress, lifecycle.StatusCompleted} {
			job.Status, job.RunnerName, job.StartedAt, job.CompletedAt = status, host.RunnerName, time.Now(), time.Now()
			w.hub.say(ctx, job)
			time.Sleep(time.Second)
			if told := strings.Join(explained(1), "\n"); strings.Contains(told, "Request") || !strings.Contains(told, " on "+host.RunnerName) {
				t.Errorf("once it is %s:\n%s", status, told)
			}
		}
		w.hub.say(ctx, queuedJob(3, "2", "2"))
		time.Sleep(time.Second)
		w.release(ctx, "2", false)
		if got := explained(3); len(got) != 2 {
			t.Errorf("once the run is released: %q", got)
		}
	})
}

// A job of a pool whose host is on its way is explained with the host.
func TestExplainAJobWhoseHostIsOnItsWay(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.mute = true })
		w.hub.queue(ctx, poolJob(1, time.Now()), time.Second)
		time.Sleep(time.Second)
		host := w.records()[0].InstanceID
		e, err := w.fleet.ExplainJob(ctx, 1, fleet.OfRun{}, fleet.OfRun{}, time.Now())
		want := []string{
			`Job 1 "build" is of run 1 of `, `Job 1 "build" waits for job pool jobs since 00:00:00Z (1s), the only one.`,
			"Why: host " + host + " is on its way: it boots or registers (waiting_for_registration). GitHub gives the host to a job with its labels, this one or another.",
			"Host " + host + " (c5.large) is created since 00:00:00Z: ",
		}
		for i, begin := range want {
			if err != nil || i >= len(e.Sentences) || !strings.HasPrefix(e.Sentences[i], begin) {
				t.Errorf("%v: no %q at its place in:\n%s", err, begin, strings.Join(e.Sentences, "\n"))
			}
		}
	})
}

// Of each job the last refusal counts, and none once the job waits for a host.
func TestExplainTellsOfTheLastRefusals(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.set(func() { w.mute = true })
		w.hub.queue(ctx, poolJob(3, time.Now()), time.Second)
		refused := func(job int64, why string) lifecycle.Event {
			return lifecycle.Event{
				At: time.Now(), Repository: repository, RunID: "1", Action: lifecycle.ActionRefuseJob, JobID: job, Reason: fmt.Sprintf("job %d gets no host: %s", job, why),
			}
		}
		other := lifecycle.Event{At: time.Now(), Repository: repository, RunID: "1", Action: lifecycle.ActionKeep, Reason: "it is no refusal"}
		if err := w.store.AddEvents(ctx, []lifecycle.Event{other, refused(1, "old"), refused(2, "theirs"), refused(1, "new"), refused(3, "over")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		var got []string
		for _, s := range strings.Split(w.whyRun("1"), "\n") {
			if before, _, ok := strings.Cut(s, ". "); ok && strings.HasPrefix(s, "Job ") && strings.Contains(s, " no host: ") {
				got = append(got, before)
			}
		}
		if diff := cmp.Diff([]string{"Job 2 gets no host: theirs", "Job 1 gets no host: new"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// The jobs of some hosts are those of these hosts alone, in whatever order the hosts are of runs and of job pools.
func TestJobsOnSomeHosts(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		of := w.mustProvision(ctx, demand("100", "a", 1))
		for id := range int64(2) {
			w.hub.queue(ctx, poolJob(1+id, time.Now()), time.Hour)
		}
		w.until("both jobs run", time.Minute, w.ran(1, 2))
		time.Sleep(time.Second)
		for _, r := range w.records(lifecycle.StateRunning) {
			if r.JobsOf != "" {
				of = append(of, r)
			}
		}
		for _, some := range [][]lifecycle.Record{of[:2], {of[2], of[0]}} {
			on, err := w.fleet.JobsOn(ctx, some, time.Now())
			if err != nil || len(on) != 1 {
				t.Errorf("%v: %+v, want the job of the host of the pool alone", err, on)
			}
		}
	})
}
