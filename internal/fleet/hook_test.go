package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

func runJob(id int64, run string, attempt int) lifecycle.WorkflowJob {
	return lifecycle.WorkflowJob{ID: id, RunID: run, RunAttempt: attempt, Labels: []string{run, "remuda-large"}}
}

func ended(run string, attempt int) lifecycle.WorkflowRun {
	return lifecycle.WorkflowRun{RunID: run, RunAttempt: attempt, Repository: repository, Status: lifecycle.StatusCompleted, Conclusion: "cancelled"}
}

// heard is what came of the last webhook.
func (w *world) heard(t *testing.T) string {
	t.Helper()
	w.hub.mu.Lock()
	id := fmt.Sprintf("delivery-%d", w.hub.said)
	w.hub.mu.Unlock()
	hook, err := w.store.Webhook(t.Context(), id)
	if err != nil {
		t.Fatalf("webhook %s: %v", id, err)
	}
	return hook.Reason
}

func wantHeard(t *testing.T, w *world, part string) {
	t.Helper()
	if got := w.heard(t); !strings.Contains(got, part) {
		t.Errorf("webhook came to %q, want something about %q", got, part)
	}
}

func (w *world) serving(run string) []lifecycle.Record {
	return slices.DeleteFunc(w.records(), func(r lifecycle.Record) bool { return r.RunID != run })
}

func inJobWorld(t *testing.T, do func(context.Context, *testing.T, *world), change ...func(*fleet.JobOptions)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 4, change...)
		w.live(t, func(ctx context.Context) { do(ctx, t, w) })
	})
}

func byWebhook(rule policy.Rule) func(*fleet.JobOptions) {
	rule.RepositoryID, rule.Repository, rule.Webhook = repositoryID, repository, true
	return func(o *fleet.JobOptions) { o.Rules = policy.Rules{rule} }
}

func TestTheEndOfARunReleasesItsHosts(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("5", "q", 2))
		w.hub.sayRun(ctx, ended("5", 1))
		w.until("both hosts are released and the webhook is worked on", time.Minute, func() bool {
			return len(w.records(lifecycle.StateIdle)) == 2 && len(w.serving("5")) == 0 && w.heard(t) != ""
		})
		wantHeard(t, w, "released 2 hosts")
	})
}

func TestTheEndOfAnOlderAttemptReleasesNothing(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		d := demand("5", "q", 1)
		d.Spec.RunAttempt = 2
		w.mustProvision(ctx, d)
		w.mustProvision(ctx, demand("5", "of attempt 1", 1))
		w.hub.sayRun(ctx, ended("5", 1))
		time.Sleep(10 * time.Second)
		if n := len(w.serving("5")); n != 2 {
			t.Errorf("%d hosts serve the run, want 2", n)
		}
		wantHeard(t, w, "ignored: attempt 1")
	})
}

// What was heard late is confirmed first: the run may have been started again.
func TestALateEndIsConfirmed(t *testing.T) {
	for name, c := range map[string]struct {
		is   *lifecycle.WorkflowRun
		left int
	}{
		"it is over":         {&lifecycle.WorkflowRun{RunAttempt: 1, Status: lifecycle.StatusCompleted}, 0},
		"it runs again":      {&lifecycle.WorkflowRun{RunAttempt: 2, Status: lifecycle.StatusInProgress}, 1},
		"it ran once more":   {&lifecycle.WorkflowRun{RunAttempt: 2, Status: lifecycle.StatusCompleted}, 1},
		"GitHub forgot it":   {nil, 0},
		"it is not over yet": {&lifecycle.WorkflowRun{RunAttempt: 1, Status: lifecycle.StatusInProgress}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
				w.mustProvision(ctx, demand("5", "q", 1))
				if c.is != nil {
					w.hub.runs["5"] = *c.is
				}
				w.hub.hearBy(func(ctx context.Context, webhook lifecycle.Webhook) error {
					webhook.Late = true
					return w.fleet.TakeWebhook(ctx, webhook, time.Now())
				})
				w.hub.sayRun(ctx, ended("5", 1))
				time.Sleep(10 * time.Second)
				if n := len(w.serving("5")); n != c.left {
					t.Errorf("%d hosts serve the run, want %d: %s", n, c.left, w.heard(t))
				}
			})
		})
	}
}

// A job that is queued long after it was made is confirmed first: it waited for an approval, or its webhook is old.
func TestALateJobIsConfirmed(t *testing.T) {
	for name, c := range map[string]struct {
		status string // empty: GitHub has no such job
		runs   bool
		result string
	}{
		"it is queued":             {lifecycle.StatusQueued, true, ""},
		"it waits for an approval": {"waiting", false, "ignored: it came late, and the job is waiting"},
		"it is over":               {lifecycle.StatusCompleted, false, "job 3 is done"},
		"GitHub forgot it":         {"", false, "GitHub no longer has the job"},
	} {
		t.Run(name, func(t *testing.T) {
			inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
				j := poolJob(3, time.Now().Add(-29*24*time.Hour))
				j.Repository, j.Status, j.RunAttempt = repository, c.status, 1
				w.hub.mu.Lock()
				w.hub.runs[j.RunID] = lifecycle.WorkflowRun{RunID: j.RunID, RunAttempt: 1, RepositoryID: repositoryID, HeadRepositoryID: repositoryID}
				if c.status != "" {
					w.hub.jobs[j.ID] = &hubJob{j, time.Second}
				}
				w.hub.mu.Unlock()
				w.hub.hearBy(func(ctx context.Context, webhook lifecycle.Webhook) error {
					webhook.Late = webhook.Action == lifecycle.StatusQueued
					return w.fleet.TakeWebhook(ctx, webhook, time.Now())
				})
				j.Status = lifecycle.StatusQueued
				w.hub.say(ctx, j)
				time.Sleep(10 * time.Second)
				if c.result != "" {
					wantHeard(t, w, c.result)
				}
				time.Sleep(time.Minute)
				w.hub.mu.Lock()
				got := slices.Contains(w.hub.given, j.ID)
				w.hub.mu.Unlock()
				if got != c.runs {
					t.Errorf("it ran: %t, want %t: %s", got, c.runs, w.heard(t))
				}
			})
		})
	}
}

func TestARunWithoutProvisionIsProvisionedByItsRule(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		for id := range int64(5) {
			w.hub.queue(ctx, runJob(id+1, "5", 1), time.Hour)
		}
		w.until("three hosts", time.Minute, func() bool { return len(w.records(lifecycle.StateRunning)) == 3 })
		time.Sleep(time.Minute)
		hosts := w.serving("5")
		if len(hosts) != 3 {
			t.Errorf("%d hosts for a rule of at most 3", len(hosts))
		}
		for _, r := range hosts {
			if r.ResourceClass != "large" || r.JobsOf != "" || !slices.Contains(r.Labels, "remuda-large") || slices.Contains(r.Labels, "5") {
				t.Errorf("host: %s, %q, labels %v", r.ResourceClass, r.JobsOf, r.Labels)
			}
		}
		w.hub.sayRun(ctx, ended("5", 1))
		w.until("they are released", time.Minute, func() bool { return len(w.serving("5")) == 0 })
	}, byWebhook(policy.Rule{MaxHosts: 3}))
}

func TestWhoIsNotProvisionedByWebhook(t *testing.T) {
	rule := policy.Rule{MaxHosts: 3}
	for name, c := range map[string]struct {
		change func(*fleet.JobOptions)
		run    func(*lifecycle.WorkflowRun)
		why    string
	}{
		"there is no rule": {func(o *fleet.JobOptions) {}, nil, "no rule"},
		"the rule does not say": {func(o *fleet.JobOptions) {
			o.Rules = policy.Rules{{RepositoryID: repositoryID, Repository: repository, MaxHosts: 1}}
		}, nil, "no rule"},
		"another repository's": {func(o *fleet.JobOptions) {
			o.Rules = policy.Rules{{RepositoryID: 8, Repository: "acme/other", MaxHosts: 1, Webhook: true}}
		}, nil, "no rule"},
		"it is of a fork":        {byWebhook(rule), func(r *lifecycle.WorkflowRun) { r.HeadRepositoryID = 99 }, "fork"},
		"it may be of a fork":    {byWebhook(rule), func(r *lifecycle.WorkflowRun) { r.Event, r.HeadRepositoryID = "pull_request", 0 }, "it is not known whether the run's commit is of a fork"},
		"its own id is unknown":  {byWebhook(rule), func(r *lifecycle.WorkflowRun) { r.Event, r.RepositoryID = "pull_request", 0 }, "it is not known whether the run's commit is of a fork"},
		"the event is not ruled": {byWebhook(policy.Rule{MaxHosts: 3, Events: []string{"push"}}), func(r *lifecycle.WorkflowRun) { r.Event = "schedule" }, "schedule"},
		"the ref is not ruled":   {byWebhook(policy.Rule{MaxHosts: 3, Refs: []string{"refs/heads/main"}}), func(r *lifecycle.WorkflowRun) { r.HeadBranch = "main" }, "not known"},
		"it has another name":    {byWebhook(rule), func(r *lifecycle.WorkflowRun) { r.Repository = "acme/renamed" }, "renamed"},
		"the run is over":        {byWebhook(rule), func(r *lifecycle.WorkflowRun) { r.Status = lifecycle.StatusCompleted }, "is over"},
		"GitHub knows no run":    {byWebhook(rule), func(r *lifecycle.WorkflowRun) { r.RunID = "" }, "knows no run"},
	} {
		t.Run(name, func(t *testing.T) {
			inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
				run := lifecycle.WorkflowRun{
					RunID: "5", RunAttempt: 1, Repository: repository, RepositoryID: repositoryID, OwnerID: ownerID, HeadRepositoryID: repositoryID,
					Event: "push", HeadBranch: "main", Path: ".github/workflows/ci.yml",
				}
				if c.run != nil {
					c.run(&run)
				}
				w.hub.runs["5"] = run
				if run.RunID == "" {
					w.hub.hearBy(func(ctx context.Context, webhook lifecycle.Webhook) error {
						w.hub.mu.Lock()
						delete(w.hub.runs, "5")
						w.hub.mu.Unlock()
						return w.fleet.TakeWebhook(ctx, webhook, time.Now())
					})
				}
				w.hub.queue(ctx, runJob(1, "5", 1), time.Second)
				time.Sleep(10 * time.Second)
				if n := len(w.records()); n != 0 {
					t.Errorf("%d hosts", n)
				}
				if c.why == "no rule" { // no caller asked for hosts, and the job belongs to no pool
					if _, err := w.store.Webhook(ctx, "delivery-1"); !errors.Is(err, lifecycle.ErrNotFound) {
						t.Errorf("the webhook was kept: %v", err)
					}
					return
				}
				wantHeard(t, w, c.why)
			}, c.change)
		})
	}
}

// A run that provisions itself gets no host for its jobs beside those.
func TestARunWithHostsGetsNoMore(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("5", "q", 1))
		for id := range int64(3) {
			w.hub.queue(ctx, runJob(id+1, "5", 1), time.Second)
		}
		time.Sleep(time.Minute)
		if n := len(w.serving("5")); n != 1 {
			t.Errorf("%d hosts serve the run, want 1", n)
		}
		wantHeard(t, w, "has hosts")
	}, byWebhook(policy.Rule{MaxHosts: 9}))
}

// A re-run of failed jobs comes with no Provision: the stored request is made
// again, one host for each job and never more than before.
func TestAReRunGetsHostsAgain(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		d := demand("5", "q", 2)
		d.Spec.Labels = []string{"gpu"}
		w.mustProvision(ctx, d)
		w.release(ctx, "5", true)
		w.hub.queue(ctx, runJob(1, "5", 2), time.Hour)
		w.until("a host", time.Minute, func() bool { return len(w.serving("5")) == 1 })
		time.Sleep(10 * time.Second)
		if hosts := w.serving("5"); len(hosts) != 1 || !slices.Equal(hosts[0].Labels, []string{"gpu"}) || hosts[0].RunAttempt != 2 {
			t.Errorf("hosts: %+v", hosts)
		}
		for id := range int64(3) {
			w.hub.queue(ctx, runJob(id+2, "5", 2), time.Hour)
		}
		time.Sleep(time.Minute)
		if n := len(w.serving("5")); n != 2 {
			t.Errorf("%d hosts for a request of two", n)
		}
		w.hub.sayRun(ctx, ended("5", 1))
		time.Sleep(10 * time.Second)
		if n := len(w.serving("5")); n != 2 {
			t.Errorf("the end of the attempt before left %d hosts", n)
		}
		w.hub.sayRun(ctx, ended("5", 2))
		w.until("they are released", time.Minute, func() bool { return len(w.serving("5")) == 0 })
	})
}

func TestARunMayHaveSoManyHosts(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		ask := func(request string, count int) error {
			d := demand("5", request, count)
			d.MaxHosts = 3
			_, err := w.provision(ctx, d)
			return err
		}
		if err := ask("a", 2); err != nil {
			t.Fatal(err)
		}
		if err := ask("b", 2); err == nil || !strings.Contains(err.Error(), "may have 3 at once") {
			t.Errorf("the fourth host: got %v", err)
		}
		if err := ask("c", 1); err != nil {
			t.Errorf("the third host: got %v", err)
		}
		w.release(ctx, "5", true)
		if err := ask("d", 3); err != nil {
			t.Errorf("after a release: got %v", err)
		}
	})
}

// Five requests of one run that are all written before the first is checked do not
// refuse each other: the first two in their order get their hosts.
func TestRequestsAtOnceGetWhatTheRunMayHave(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		var all []*fleet.Provision
		for _, id := range []string{"c", "a", "e", "b", "d"} {
			d := demand("5", id, 1)
			d.MaxHosts = 2
			p, err := w.fleet.NewProvision(d)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Step(ctx, time.Now()); err != nil { // its row is written
				t.Fatal(err)
			}
			all = append(all, p)
		}
		for i, p := range []*fleet.Provision{all[1], all[3]} { // the later ones are to give way
			if progress, err := p.Step(ctx, time.Now()); err != nil || progress.Wait == 0 {
				t.Errorf("request %d of two has others in its way, and waits for %s: %v", i+1, progress.Wait, err)
			}
		}
		errs := make([]error, len(all))
		var driving sync.WaitGroup
		for i, p := range all {
			driving.Go(func() { errs[i] = w.fleet.Drive(ctx, p, patience) })
		}
		driving.Wait()
		var got []string
		for i, p := range all {
			if q := p.Request(); q.Outcome == lifecycle.OutcomeReady && errs[i] == nil {
				got = append(got, q.RequestID)
			}
		}
		slices.Sort(got)
		if want := []string{"a", "b"}; !slices.Equal(got, want) {
			t.Errorf("requests %v got their hosts, want %v: %v", got, want, errors.Join(errs...))
		}
		if n := len(w.serving("5")); n != 2 {
			t.Errorf("%d hosts serve the run, want 2", n)
		}
	})
}

// Where deliveries cannot be listed, the jobs that wait are listed, and runs
// are provisioned for those too.
func TestQueuedJobsAreFoundWithoutDeliveries(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.hub.mu.Lock()
		w.hub.noDeliveries = true
		w.hub.lose = func(lifecycle.Webhook) bool { return true }
		w.hub.mu.Unlock()
		w.hub.queue(ctx, runJob(1, "5", 1), time.Hour)
		w.hub.queue(ctx, poolJob(2, time.Now()), time.Second)
		w.until("a host of the run", 10*time.Minute, func() bool { return len(w.serving("5")) == 1 })
		w.until("the job of the pool", 10*time.Minute, w.ran(2))
	}, byWebhook(policy.Rule{MaxHosts: 3}))
}

// A host of one class takes no job of another: each gets its own.
func TestJobsOfTwoClassesGetHostsOfBoth(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.hub.queue(ctx, runJob(1, "5", 1), time.Hour)
		w.until("a large host", time.Minute, func() bool { return len(w.serving("5")) == 1 })
		w.hub.cancel(ctx, 1)
		bigger := runJob(2, "5", 1)
		bigger.Labels = []string{"5", "remuda-xlarge"}
		w.hub.queue(ctx, bigger, time.Hour)
		w.until("an xlarge one", time.Minute, func() bool {
			return slices.ContainsFunc(w.serving("5"), func(r lifecycle.Record) bool { return r.ResourceClass == "xlarge" })
		})
	}, byWebhook(policy.Rule{MaxHosts: 3}))
}

// What a rule refused then widens nothing when the run is started again, and a
// rule that is gone lets nothing through.
func TestAReRunIsHeldAgainstTheRulesOfToday(t *testing.T) {
	for name, c := range map[string]struct {
		rules policy.Rules
		want  int
	}{
		"the rule stands":  {policy.Rules{{RepositoryID: repositoryID, Repository: repository, MaxHosts: 1}}, 1},
		"the rule is gone": {nil, 0},
		"its class is not allowed any more": {policy.Rules{{
			RepositoryID: repositoryID, Repository: repository, MaxHosts: 1, ResourceClasses: []string{"xlarge"}}}, 0},
		"its ref is not asked for again": {policy.Rules{{
			RepositoryID: repositoryID, Repository: repository, MaxHosts: 1, Refs: []string{"refs/heads/main"}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
				for n := range 4 { // the first gets a host, the others are refused
					d := demand("5", fmt.Sprintf("q%d", n), 1)
					d.MaxHosts = 1
					_, err := w.provision(ctx, d)
					if (err == nil) != (n == 0) {
						t.Fatalf("request %d: %v", n, err)
					}
				}
				w.release(ctx, "5", true)
				for id := range int64(4) {
					w.hub.queue(ctx, runJob(id+1, "5", 2), time.Hour)
				}
				time.Sleep(time.Minute)
				if n := len(w.serving("5")); n != c.want {
					t.Errorf("%d hosts, want %d", n, c.want)
				}
			}, func(o *fleet.JobOptions) { o.Rules = c.rules })
		})
	}
}

// A run brings its own labels to its hosts only where its rule allows them.
func TestLabelsOfOthersAreNotProvisioned(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		j := runJob(1, "5", 1)
		j.Labels = append(j.Labels, "prod-deploy")
		w.hub.queue(ctx, j, time.Hour)
		time.Sleep(10 * time.Second)
		if n := len(w.records()); n != 0 {
			t.Errorf("%d hosts", n)
		}
		wantHeard(t, w, "prod-deploy")
	}, byWebhook(policy.Rule{MaxHosts: 3}))
}

// A rule that allows fewer hosts than it did holds for a run that is started again. No request is made for more.
func TestAReRunMayHaveWhatItsRuleAllowsNow(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		d := demand("5", "q", 3)
		d.MaxHosts = 3
		w.mustProvision(ctx, d)
		w.release(ctx, "5", true)
		for id := range int64(4) {
			w.hub.queue(ctx, runJob(id+1, "5", 2), time.Hour)
			time.Sleep(10 * time.Second)
		}
		wantHeard(t, w, "run 5 has 2 hosts, and may have 2")
		requests, err := w.store.RequestsOfRun(ctx, repository, "5")
		if err != nil {
			t.Fatal(err)
		}
		again := slices.DeleteFunc(requests, func(q lifecycle.Request) bool { return q.Kind == lifecycle.RequestByCaller })
		for _, q := range again {
			if q.MaxHosts != 2 {
				t.Errorf("request %s may bring the run to %d hosts, want 2", q.RequestID, q.MaxHosts)
			}
		}
		if len(again) != 2 || len(w.serving("5")) != 2 {
			t.Errorf("%d requests were made and %d hosts serve the run, want 2", len(again), len(w.serving("5")))
		}
	}, func(o *fleet.JobOptions) {
		o.Rules = policy.Rules{{RepositoryID: repositoryID, Repository: repository, MaxHosts: 2}}
	})
}

// awayRuns is GitHub as it answers questions about runs with err.
type awayRuns struct {
	*hub
	err   error
	calls int
}

func (g *awayRuns) WorkflowRun(ctx context.Context, repository, runID string) (lifecycle.WorkflowRun, error) {
	if g.calls++; g.err != nil {
		return lifecycle.WorkflowRun{}, g.err
	}
	return g.hub.WorkflowRun(ctx, repository, runID)
}

// The ids by which a rule is found are asked of GitHub for a job that was found in a list. The job waits while GitHub does not
// answer, and no rule is for a run that GitHub does not know.
func TestTheIDsOfAFoundJob(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		reason   string // of its webhook
		requests int    // once GitHub answers
	}{
		"GitHub is away":      {errDown, "", 1},
		"GitHub knows no run": {lifecycle.ErrNotFound, "not provisioned: no rule with webhook: true is for acme/app", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs *awayRuns
				w := jobWorld(t, 1, byWebhook(policy.Rule{MaxHosts: 3}), func(o *fleet.JobOptions) {
					runs = &awayRuns{hub: o.GitHub.(*hub), err: c.err}
					o.GitHub = runs
				})
				ctx := t.Context()
				w.hub.noDeliveries, w.hub.lose = true, func(lifecycle.Webhook) bool { return true }
				w.hub.queue(ctx, runJob(1, "5", 1), time.Hour)
				w.sweepOnce(ctx, w.fleet.NewMissedSweep())
				sweep := func() {
					time.Sleep(31 * time.Second)
					w.sweepOnce(ctx, w.fleet.NewJobSweep())
				}
				sweep()
				if hook, err := w.store.Webhook(ctx, "found-1"); err != nil || hook.Reason != c.reason || hook.DueAt.IsZero() != (c.reason != "") {
					t.Errorf("the webhook came to %q, due %s, error %v; want %q", hook.Reason, hook.DueAt, err, c.reason)
				}
				runs.err = nil
				sweep()
				requests, err := w.store.RequestsOfRun(ctx, repository, "5")
				if err != nil || len(requests) != c.requests {
					t.Errorf("%d requests, error %v, want %d", len(requests), err, c.requests)
				}
			})
		})
	}
}

// A re-run repeats the newest request of the newest attempt, for as many hosts as callers asked for in that attempt.
func TestWhichRequestIsMadeAgain(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		for _, d := range []struct {
			request string
			attempt int
			count   int
		}{{"z", 1, 4}, {"c", 2, 1}, {"a", 2, 1}, {"b", 2, 1}} {
			of := demand("5", d.request, d.count)
			of.Spec.RunAttempt, of.Spec.Labels = d.attempt, []string{d.request}
			w.mustProvision(ctx, of)
			w.release(ctx, "5", true)
			time.Sleep(time.Minute)
		}
		w.hub.queue(ctx, runJob(1, "5", 1), time.Hour)
		time.Sleep(10 * time.Second)
		wantHeard(t, w, "ignored: job 1 is of attempt 1, and attempt 2 has hosts")
		for id := range int64(5) {
			w.hub.queue(ctx, runJob(id+2, "5", 2), time.Hour)
			time.Sleep(10 * time.Second)
		}
		wantHeard(t, w, "run 5 has 3 hosts for 6 jobs, and may have 3")
		hosts := w.serving("5")
		if len(hosts) != 3 {
			t.Errorf("%d hosts serve the run, want the 3 that callers asked for in attempt 2", len(hosts))
		}
		for _, r := range hosts {
			if !slices.Equal(r.Labels, []string{"b"}) {
				t.Errorf("host %s has labels %v, want those of the newest request", r.InstanceID, r.Labels)
			}
		}
	})
}

// What a rule says first is what its hosts are: its first pool and usage class. Pull requests get spot where the rule says so.
func TestTheHostsOfARule(t *testing.T) {
	onDemand, spot := lifecycle.UsageOnDemand, lifecycle.UsageSpot
	for name, c := range map[string]struct {
		rule  policy.Rule
		event string
		pool  string
		usage lifecycle.UsageClass
	}{
		"of no word":                {policy.Rule{}, "push", "default", onDemand},
		"the first of each":         {policy.Rule{Pools: []string{"once", "default"}, UsageClasses: []lifecycle.UsageClass{spot, onDemand}}, "push", "once", spot},
		"spot, for a pull request":  {policy.Rule{SpotForPullRequests: true}, "pull_request", "default", spot},
		"no spot, for another push": {policy.Rule{SpotForPullRequests: true}, "push", "default", onDemand},
		"no spot, without a word":   {policy.Rule{}, "pull_request", "default", onDemand},
	} {
		t.Run(name, func(t *testing.T) {
			c.rule.MaxHosts = 1
			inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
				w.hub.runs["5"] = lifecycle.WorkflowRun{
					RunID: "5", RunAttempt: 1, Repository: repository, RepositoryID: repositoryID, OwnerID: ownerID, HeadRepositoryID: repositoryID, Event: c.event,
				}
				w.hub.queue(ctx, runJob(1, "5", 1), time.Hour)
				time.Sleep(10 * time.Second)
				if hosts := w.serving("5"); len(hosts) != 1 || hosts[0].Pool != c.pool || hosts[0].UsageClass != c.usage {
					t.Errorf("hosts: %+v, want one of pool %s on %s: %s", hosts, c.pool, c.usage, w.heard(t))
				}
			}, byWebhook(c.rule))
		})
	}
}
