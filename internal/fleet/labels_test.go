package fleet_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// labelWorld is a world with a job pool. With defaults its pools ask for GitHub's default labels.
func labelWorld(t *testing.T, defaults bool, do func(context.Context, *testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 4)
		w.fleet = w.newFleet("labels", func(o *fleet.Options) {
			withJobs(o, w.hub, 4, byWebhook(policy.Rule{MaxHosts: 2, Labels: []string{"*"}}))
			for name, p := range o.Pools {
				p.DefaultLabels = defaults
				o.Pools[name] = p
			}
		})
		w.live(t, func(ctx context.Context) { do(ctx, t, w) })
	})
}

func queuedJob(id int64, run string, labels ...string) lifecycle.WorkflowJob {
	return lifecycle.WorkflowJob{ID: id, RunID: run, RunAttempt: 1, Repository: repository, Labels: labels, Status: lifecycle.StatusQueued, QueuedAt: time.Now()}
}

// GitHub gives a job to any idle runner that has all of its labels, so a host has those of its run or pool and
// no others.
func TestLabelsOfHosts(t *testing.T) {
	for name, c := range map[string]struct {
		defaults       bool
		run, jobScoped []string
	}{
		"as GitHub's runner does not add them": {false, []string{"gpu"}, []string{"remuda-small"}},
		"default_labels": {
			true, []string{"gpu", "self-hosted", "linux", "x64"}, []string{"remuda-small", "self-hosted", "linux", "x64"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			labelWorld(t, c.defaults, func(ctx context.Context, t *testing.T, w *world) {
				d := demand("5", "q", 1)
				d.Spec.Labels = []string{"gpu"}
				if d := cmp.Diff(c.run, w.mustProvision(ctx, d)[0].Labels); d != "" {
					t.Errorf("a launched host: %s", d)
				}
				w.release(ctx, "5", true)
				d.RunID = "6"
				claimed := w.mustProvision(ctx, d)[0]
				if d := cmp.Diff(c.run, claimed.Labels); d != "" || claimed.Uses != 2 {
					t.Errorf("a claimed host, used %d times: %s", claimed.Uses, d)
				}
				w.hub.queue(ctx, queuedJob(1, "1", "remuda-small"), time.Second)
				w.until("the job of the pool is over", time.Minute, w.allOver)
				w.hub.mu.Lock()
				defer w.hub.mu.Unlock()
				for _, r := range w.hub.runners {
					if d := cmp.Diff(c.jobScoped, r.labels); d != "" {
						t.Errorf("a job-scoped host: %s", d)
					}
				}
			})
		})
	}
}

// A job that names a default label beside a label of ours gets no host, which could not take it, unless its
// pool's hosts have default labels. One that names default labels alone is never ours.
func TestJobsThatNameDefaultLabels(t *testing.T) {
	for name, c := range map[string]struct {
		labels   []string
		defaults bool
		hosts    int
		answer   string // of the webhook when it is ignored
		result   string // of the webhook when it is stored
	}{
		"default labels alone":          {[]string{"self-hosted", "linux", "x64"}, false, 0, "about no job or run of ours: ignored", ""},
		"alone, with default_labels":    {[]string{"self-hosted", "linux", "x64"}, true, 0, "about no job or run of ours: ignored", ""},
		"beside a pool's label":         {[]string{"Self-Hosted", "remuda-small"}, false, 0, "names the label Self-Hosted, which the hosts of pool jobs do not have: remove it from runs-on, or set default_labels: true for the pool (default_labels): about no job", ""},
		"beside it, default_labels":     {[]string{"self-hosted", "remuda-small"}, true, 1, "", ""},
		"beside a run's id":             {[]string{"self-hosted", "5"}, false, 0, "", "not provisioned: job 1 gets no host: runs-on names the label self-hosted, which the hosts of pool default do not have: remove it from runs-on, or set default_labels: true for the pool (default_labels)"},
		"beside an id, default_labels":  {[]string{"self-hosted", "linux", "5"}, true, 1, "", "provisioned by its rule"},
		"its machine beside a run's id": {[]string{"5", "x64"}, false, 0, "", "(default_labels)"},
		"the run's id alone":            {[]string{"5"}, false, 1, "", "provisioned by its rule"},
	} {
		t.Run(name, func(t *testing.T) {
			labelWorld(t, c.defaults, func(ctx context.Context, t *testing.T, w *world) {
				answer := ""
				w.hub.hearBy(func(ctx context.Context, webhook lifecycle.Webhook) error {
					err := w.fleet.TakeWebhook(ctx, webhook, time.Now())
					if err != nil && answer == "" {
						answer = err.Error()
					}
					return err
				})
				w.hub.queue(ctx, queuedJob(1, "5", c.labels...), time.Hour)
				time.Sleep(time.Minute)
				if (answer == "") != (c.answer == "") || !strings.Contains(answer, c.answer) {
					t.Errorf("answered %q, want %q", answer, c.answer)
				}
				if c.result != "" {
					wantHeard(t, w, c.result)
				}
				if n := len(w.records(lifecycle.StateCreated, lifecycle.StateClaimed, lifecycle.StateRunning)); n != c.hosts {
					t.Errorf("%d hosts, want %d", n, c.hosts)
				}
			})
		})
	}
}

// The explanation of a run says which of its jobs wait for a label that no host has.
func TestExplainTellsOfDefaultLabels(t *testing.T) {
	for _, defaults := range []bool{false, true} {
		labelWorld(t, defaults, func(ctx context.Context, t *testing.T, w *world) {
			w.mustProvision(ctx, demand("5", "q", 1))
			w.hub.queue(ctx, queuedJob(1, "5", "self-hosted", "5"), time.Hour)
			time.Sleep(time.Second)
			e, err := w.fleet.Explain(ctx, repository, "5", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			const want = "Job 1 names the label self-hosted, which these hosts do not have: remove it from runs-on, or set default_labels: true for their pool."
			if slices.Contains(e.Sentences, want) == defaults {
				t.Errorf("with default labels %t: %q", defaults, e.Sentences)
			}
		})
	}
}

// The labels of a pool that the run has no hosts of do not count.
func TestExplainTellsOfDefaultLabelsOfOtherPools(t *testing.T) {
	for name, lacks := range map[string]bool{"default": false, "once": true} {
		labelWorld(t, false, func(ctx context.Context, t *testing.T, w *world) {
			w.mustProvision(ctx, demand("5", "q", 1))
			w.hub.queue(ctx, queuedJob(1, "5", "self-hosted", "5"), time.Hour)
			time.Sleep(time.Second)
			asked := w.newFleet("asked", func(o *fleet.Options) {
				withJobs(o, w.hub, 4)
				p := o.Pools[name]
				p.DefaultLabels = true
				o.Pools[name] = p
			})
			e, err := asked.Explain(ctx, repository, "5", time.Now())
			if said := strings.Join(e.Sentences, "\n"); err != nil || strings.Contains(said, "Job 1 names the label self-hosted, which these hosts do not have") != lacks {
				t.Errorf("with the labels of pool %s: %v\n%s", name, err, said)
			}
		})
	}
}

// What a run may not have its hosts do by a rule, it may not have by asking either.
func TestProvisionWithDefaultLabels(t *testing.T) {
	for _, label := range []string{"self-hosted", "Linux", "X64", "arm64"} {
		labelWorld(t, false, func(_ context.Context, t *testing.T, w *world) {
			d := demand("5", "q", 1)
			d.Spec.Labels = []string{"gpu", label}
			if _, err := w.fleet.NewProvision(d); err == nil || !strings.Contains(err.Error(), `"`+label+`" is a default label of GitHub's runner`) {
				t.Errorf("%s: %v", label, err)
			}
		})
		labelWorld(t, true, func(ctx context.Context, t *testing.T, w *world) {
			d := demand("5", "q", 1)
			d.Spec.Labels = []string{"gpu", label}
			labels := w.mustProvision(ctx, d)[0].Labels
			if !slices.Contains(labels, label) || slices.ContainsFunc(labels[2:], func(l string) bool { return strings.EqualFold(l, label) }) {
				t.Errorf("%s: %v", label, labels)
			}
		})
	}
}
