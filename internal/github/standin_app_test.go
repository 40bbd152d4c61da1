package github_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/github/webhook"
	"github.com/remuda-ci/remuda/internal/githubsim/openapitest"
	"github.com/remuda-ci/remuda/internal/githubsim/runner/runnerfiles"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// An App on the stand-in does all that jobs need, for repositories and for an
// organization.
func TestAnAppAgainstTheStandIn(t *testing.T) {
	for _, organisation := range []bool{false, true} {
		s := startStandin(t)
		s.call(200, "PUT", "/_standin/apps", "", map[string]any{
			"app_id": 7, "client_id": "Iv23mine", "private_key": appPEM().Reveal(), "owners": []string{"acme"}}, nil)
		c := newClient(t, github.Config{URL: s.url + "/api/v3", Transport: openapitest.Check(t, nil), Organization: organisation,
			Apps: []github.App{{ClientID: "Iv23mine", PrivateKey: appPEM()}}})
		var first int64
		for range 2 { // the second takes the name over
			r, id, err := c.JIT(t.Context(), repository, "remuda-1-i-1", []string{"box"})
			if err != nil || r.Secret == "" || id == first {
				t.Fatalf("got %d after %d, %v", id, first, err)
			}
			files, err := runnerfiles.Decode(r.Secret.Reveal())
			var settings runnerfiles.Settings
			if err == nil {
				err = json.Unmarshal(files[runnerfiles.Runner], &settings)
			}
			if err != nil || !settings.DisableUpdate || settings.AgentID != id {
				t.Errorf("settings of the runner: %+v, %v", settings, err)
			}
			first = id
		}
		checkList(t, c, []string{"remuda-1-i-1"})
		s.call(201, "POST", "/_standin/runs", "", map[string]any{"repository": repository,
			"workflow": "on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'true'}]}\n"}, nil)
		jobs, err := c.QueuedJobs(t.Context(), repository)
		if err != nil || len(jobs) != 1 || jobs[0].Labels[0] != "box" || jobs[0].QueuedAt.IsZero() {
			t.Fatalf("got %+v, %v", jobs, err)
		}
		job, err := c.WorkflowJob(t.Context(), repository, jobs[0].ID)
		if err != nil || job.Status != "queued" || job.RunID != jobs[0].RunID {
			t.Errorf("got %+v, %v", job, err)
		}
		run, err := c.WorkflowRun(t.Context(), repository, job.RunID)
		if err != nil || run.Event == "" || run.RunAttempt != 1 || run.RepositoryID == 0 || run.HeadRepositoryID != run.RepositoryID {
			t.Errorf("got %+v, %v", run, err)
		}
		if _, err := c.WorkflowRun(t.Context(), repository, "1"); !errors.Is(err, lifecycle.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		if missed, err := c.MissedDeliveries(t.Context(), time.Time{}); len(missed) != 0 || (err != nil && !errors.Is(err, lifecycle.ErrNotFound)) {
			t.Errorf("got %v, %v", missed, err)
		}
		if releases, err := c.RunnerReleases(t.Context()); err != nil || len(releases) == 0 || releases[0].PublishedAt.IsZero() {
			t.Errorf("releases: %v, %v", releases, err)
		}
		s.call(204, "PUT", "/_standin/webhooks", "", map[string]any{"target": "http://127.0.0.1:1/", "secret": "s", "lose_every": 1}, nil)
		s.call(201, "POST", "/_standin/runs", "", map[string]any{"repository": repository,
			"workflow": "on: push\njobs:\n  lost: {runs-on: box, steps: [{run: 'true'}]}\n"}, nil)
		checkRecovered(t, c)
	}
}

// TestFailedJobsAreStartedAgain: as the next attempt of a run that is over, and
// of no other.
func TestFailedJobsAreStartedAgain(t *testing.T) {
	s := startStandin(t)
	c := newClient(t, github.Config{URL: s.url + "/api/v3", Transport: openapitest.Check(t, nil)})
	s.call(201, "POST", "/_standin/runs", "", map[string]any{"repository": repository,
		"workflow": "on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'true'}]}\n"}, nil)
	jobs, err := c.QueuedJobs(t.Context(), repository)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("got %+v, %v", jobs, err)
	}
	run := jobs[0].RunID
	refused := func(what, run string) {
		t.Helper()
		if err := c.RerunFailedJobs(t.Context(), repository, run); !errors.Is(err, lifecycle.ErrRefused) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	refused("while it waits", run)
	s.call(202, "POST", "/_standin/runs/"+run+"/cancel", "", nil, nil)
	if err := c.RerunFailedJobs(t.Context(), repository, run); err != nil {
		t.Fatal(err)
	}
	is, err := c.WorkflowRun(t.Context(), repository, run)
	if err != nil || is.RunAttempt != 2 || is.Status == lifecycle.StatusCompleted {
		t.Errorf("got %+v, %v", is, err)
	}
	refused("once more", run)
	refused("a run that is not there", "1")
	refused("no run at all", "turn:default:1")
}

// checkRecovered wants a queued job among the deliveries that were lost.
func checkRecovered(t *testing.T, c *github.Client) {
	t.Helper()
	missed, err := c.MissedDeliveries(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range missed {
		body, err := c.DeliveryPayload(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if w, err := webhook.Parse(m.Event, m.DeliveryID, body, time.Now()); err == nil && w.Job != nil && w.Job.Status == lifecycle.StatusQueued {
			return
		}
	}
	t.Errorf("no queued job in %+v", missed)
}

// Runners of an organization join its group, by JIT and by token.
func TestAGroupOnTheStandIn(t *testing.T) {
	s := startStandin(t)
	s.call(204, "PUT", "/_standin/runner-groups", "", map[string]any{"groups": []map[string]any{{"id": 7, "name": "Big builders"}}}, nil)
	c := newClient(t, github.Config{URL: s.url + "/api/v3", Transport: openapitest.Check(t, nil), Organization: true, RunnerGroup: "Big builders"})
	if _, _, err := c.JIT(t.Context(), repository, "remuda-1-i-1", []string{"box"}); err != nil {
		t.Error(err)
	}
	c = newClient(t, github.Config{URL: s.url + "/api/v3", Transport: openapitest.Check(t, nil), Organization: true, RunnerGroup: "No such group"})
	if _, _, err := c.JIT(t.Context(), repository, "remuda-1-i-2", []string{"box"}); !errors.Is(err, lifecycle.ErrRefused) {
		t.Errorf("no such group: got %v", err)
	}
}

// Jobs beside one that waits for an approval are queued, and their run is not.
func TestQueuedJobsOfARunThatWaits(t *testing.T) {
	s := startStandin(t)
	c := newClient(t, github.Config{URL: s.url + "/api/v3", Transport: openapitest.Check(t, nil)})
	s.call(201, "POST", "/_standin/runs", "", map[string]any{"repository": repository, "run_id": "77", "workflow": "on: push\njobs:\n" +
		"  deploy: {runs-on: box, environment: production, steps: [{run: 'true'}]}\n  test: {runs-on: box, steps: [{run: 'true'}]}\n"}, nil)
	jobs, err := c.QueuedJobs(t.Context(), repository)
	if err != nil || len(jobs) != 1 || jobs[0].RunID != "77" || jobs[0].Status != lifecycle.StatusQueued {
		t.Errorf("got %+v, %v", jobs, err)
	}
}
