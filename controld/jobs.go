package main

import (
	"context"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/github/webhook"
	"github.com/remuda-ci/remuda/internal/inputs"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/runnerage"
	"github.com/remuda-ci/remuda/internal/settings"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/web"
)

// strandedAfter is how long a host of a job pool may wait without a job before it goes back.
// Webhooks come within seconds. A webhook that was lost is recovered within the interval of
// the cloud sweep, and then another host is claimed from the pool.
const strandedAfter = 2 * time.Minute

// renewAfter is how long a host of a registered minimum waits before another takes its place. GitHub removes idle
// just-in-time runners after 2 to 6 minutes (actions/runner#4726); a renewal takes seconds, and those of a pool take turns.
const renewAfter = 90 * time.Second

// jobOptions are the fleet's options for webhooks, job pools and the origins of runs, or nil
// if the configuration uses none of these.
func jobOptions(c *config.Config, store fleet.JobStore, hub *github.Client) *fleet.JobOptions {
	if c.Webhooks == nil && c.Callers.Audience == "" {
		return nil
	}
	o := &fleet.JobOptions{Store: store, GitHub: hub, Pools: jobPools(c), Rules: c.Rules(), Scope: settings.Scope(c), URL: hub.JobURL}
	if c.Webhooks != nil {
		o.Parse = webhook.Parse
	}
	return o
}

// checkOptions are the fleet's options for check runs, or nil if GitHub takes none, as without an App. Without check_runs_after they complete those
// that are open since an earlier configuration.
func checkOptions(c *config.Config, store store.Store, hub fleet.GitHubChecks) *fleet.CheckOptions {
	if len(c.GitHub.Apps) == 0 {
		return nil
	}
	return &fleet.CheckOptions{GitHub: hub, Store: store, After: c.GitHub.CheckRunsAfter}
}

func jobPools(c *config.Config) map[string]fleet.JobPool {
	pools := map[string]fleet.JobPool{}
	for name, p := range c.Pools {
		j := p.Jobs
		if j == nil {
			continue
		}
		repository, minimum := standsFor(j), j.Minimum
		if !j.RegisteredMinimum {
			minimum = 0 // they wait in the pool: see config.Pool.Ahead
		}
		pools[name] = fleet.JobPool{
			JobPool: policy.JobPool{
				Minimum: minimum, Maximum: j.Maximum, UnclaimedTimeout: strandedAfter, RenewAfter: renewAfter, Repository: repository, Scope: settings.Scope(c)(repository),
			},
			Labels: j.Labels, Spec: j.Spec(), Repositories: j.Repositories, Forks: j.Forks,
		}
	}
	return pools
}

// standsFor is the repository for which the minimum of a pool is ready. For the runners of an
// organization it may be any of its repositories.
func standsFor(j *config.Jobs) string {
	for _, r := range j.Repositories {
		if !strings.Contains(r, "*") {
			return r
		}
	}
	return lifecycle.Owner(j.Repositories[0]) + "/.github"
}

// sweptRepositories are the repositories whose registrations are swept. Where the runners
// belong to the organization, one repository lists all of them.
func sweptRepositories(c *config.Config) []string {
	var list []string
	seen := map[string]bool{}
	for _, r := range c.GitHub.Repositories {
		if of := settings.Scope(c)(r); !seen[of] {
			seen[of] = true
			list = append(list, r)
		}
	}
	return list
}

// runnerReleases lists the releases of actions/runner in the types of the policy for the age of runners; nil: there are
// no hosts that have one.
func runnerReleases(c *config.Config, hub *github.Client) func(context.Context) ([]runnerage.Release, error) {
	if c.WithoutHosts {
		return nil
	}
	return func(ctx context.Context) ([]runnerage.Release, error) {
		releases, err := hub.RunnerReleases(ctx)
		list := make([]runnerage.Release, 0, len(releases))
		for _, r := range releases {
			list = append(list, runnerage.Release(r))
		}
		return list, err
	}
}

// webhooks is the receiver of GitHub's deliveries, or nil if the configuration has none.
func (d *daemon) webhooks(in *inputs.Inputs) *web.Webhooks {
	if in.Webhooks == nil {
		return nil
	}
	take := func(ctx context.Context, w lifecycle.Webhook) error { return d.fleet.TakeWebhook(ctx, w, time.Now()) }
	return &web.Webhooks{Secrets: in.Webhooks, Take: take, Observer: d.metrics}
}
