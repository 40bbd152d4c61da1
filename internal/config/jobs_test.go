package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// signed is the section that job pools need.
const signed = "webhooks: {secret_file: /s}\n"

// orgScope is the configuration under which hosts are runners of an organization.
const orgScope = "github: {token_env: X, scope: organisation}\n"

func TestAJobPoolIsRead(t *testing.T) {
	c := parse(t, signed+`
pools:
  least: {jobs: {labels: [a], maximum: 1, repositories: [acme/app]}}
  most:
    default_labels: true
    resource_classes: [xlarge]
    usage_classes: [spot]
    jobs: {labels: [b, Self-Hosted], resource_class: xlarge, usage_class: spot, instance_types: ["c6*"], allow_on_demand_fallback: true,
           minimum: 2, maximum: 1000, repositories: [acme/app], forks: true}
`)
	if d := cmp.Diff(&config.Webhooks{SecretFile: "/s"}, c.Webhooks); d != "" {
		t.Error(d)
	}
	want := map[string]*config.Jobs{
		"default": nil,
		"least": {
			Labels: []string{"a"}, ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceTypes: []string{"c*", "m*", "r*"},
			Maximum: 1, Repositories: []string{"acme/app"},
		},
		"most": {
			Labels: []string{"b", "Self-Hosted"}, ResourceClass: "xlarge", UsageClass: lifecycle.UsageSpot, InstanceTypes: []string{"c6*"},
			AllowOnDemandFallback: true, Minimum: 2, Maximum: 1000, Repositories: []string{"acme/app"}, Forks: true,
		},
	}
	got := map[string]*config.Jobs{}
	for name, pool := range c.Pools {
		got[name] = pool.Jobs
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	wanted := []string{
		"pool most registers its runners with GitHub's default labels (default_labels): any job of the same scope that names these alone, a fork's too, comes to its hosts",
		"pool most gives hosts to jobs of forks: who opens a pull request runs what they like there",
	}
	if d := cmp.Diff(wanted, c.Warnings()[1:]); d != "" {
		t.Errorf("warnings: %s", d)
	}
}

// jobs is a job pool that is fine except for what is given.
func jobs(more string) string {
	text := "pools: {small: {jobs: {" + more
	for key, value := range map[string]string{"labels": "[a]", "maximum": "9", "repositories": "[acme/app]"} {
		if !strings.Contains(more, key+":") {
			text += fmt.Sprintf(", %s: %s", key, value)
		}
	}
	return text + "}}}"
}

func TestRulesOfJobs(t *testing.T) {
	many := "l"
	for i := range 20 {
		many += fmt.Sprintf(", l%d", i)
	}
	two := func(a, b string) string {
		return fmt.Sprintf("pools:\n  one: {jobs: {labels: %s, maximum: 1, repositories: [a/b]}}\n  two: {jobs: {labels: %s, maximum: 1, repositories: [a/b]}}", a, b)
	}
	tests := []struct{ name, text, want string }{
		{"no secret", "webhooks: {}", `2:1: webhooks: has no secret; write secret_file with a path or secret_env with the name of a variable`},
		{"two secrets", "webhooks: {secret_file: /s, secret_env: S}", `2:29: webhooks.secret_env: is there beside secret_file; remove one of them`},
		{"relative secret", "webhooks: {secret_file: s}", `2:12: webhooks.secret_file: is "s"; write an absolute path`},
		{"secret's variable", "webhooks: {secret_env: \"a secret\"}", `2:12: webhooks.secret_env: is not the name of an environment variable`},
		{"no webhooks", jobs("minimum: 0"), `2:17: pools.small.jobs: means nothing without webhooks`},
		{"no labels", signed + jobs("labels: []"), `3:24: pools.small.jobs.labels: has nothing but GitHub's default labels`},
		{"labels left out", signed + "pools: {small: {jobs: {maximum: 1, repositories: [a/b]}}}", `pools.small.jobs.labels: has nothing but GitHub's default labels`},
		{"no label of its own", signed + jobs("labels: [self-hosted, Linux]"), `pools.small.jobs.labels: has nothing but GitHub's default labels`},
		{"a machine alone", signed + jobs("labels: [self-hosted, arm64]"), `pools.small.jobs.labels: has nothing but GitHub's default labels`},
		{"a label that is a number", signed + jobs("labels: [12]"), `pools.small.jobs.labels[0]: `},
		{"an empty label alone", signed + jobs("labels: [\"\"]"), `pools.small.jobs.labels[0]: is ""; write a label`},
		{"an empty label", signed + jobs("labels: [a, \"\"]"), `3:36: pools.small.jobs.labels[1]: is ""; write a label`},
		{"a label of two words", signed + jobs("labels: [\"a b\"]"), `pools.small.jobs.labels[0]: is "a b"; write a label`},
		{"a number", signed + jobs("labels: [a, \"17\"]"), `pools.small.jobs.labels[1]: is a number, as the ids of runs are`},
		{"a label twice", signed + jobs("labels: [a, a]"), `pools.small.jobs.labels[1]: is here twice`},
		{"many labels", signed + jobs("labels: ["+many+"]"), `pools.small.jobs.labels: has 21 entries; write at most 20`},
		{"labels of another pool", signed + two("[a, b]", "[b, a]"), `5:16: pools.two.jobs.labels: are those of pool one too`},
		{"in another case", signed + two("[a]", "[A]"), `pools.two.jobs.labels: are those of pool one too`},
		{"with a default label", signed + strings.Replace(two("[a]", "[self-hosted, a]"), "two: {", "two: {default_labels: true, ", 1), `pools.two.jobs.labels: are those of pool one too`},
		{"a default label", signed + jobs("labels: [a, X64]"), `3:36: pools.small.jobs.labels[1]: is a default label of GitHub's runner, which jobs of anyone name; remove it, or write default_labels: true`},
		{"resource class", signed + jobs("resource_class: huge"), `3:24: pools.small.jobs.resource_class: is "huge", and not of this pool; write one of 16xlarge, 2xlarge, 4xlarge, 8xlarge, large, xlarge`},
		{"another pool's resource class", signed + "pools: {small: {resource_classes: [xlarge], jobs: {labels: [a], maximum: 1, repositories: [a/b]}}}", `pools.small.jobs.resource_class: is "large", and not of this pool; write one of xlarge`},
		{"usage class", signed + jobs("usage_class: sport"), `pools.small.jobs.usage_class: "sport" is not allowed; did you mean spot?`},
		{"another pool's usage class", signed + "pools: {small: {usage_classes: [spot], jobs: {labels: [a], maximum: 1, repositories: [a/b]}}}", `pools.small.jobs.usage_class: is on-demand, and not of this pool; write spot`},
		{"fallback from on-demand", signed + jobs("allow_on_demand_fallback: true"), `pools.small.jobs.allow_on_demand_fallback: means nothing with usage_class: on-demand`},
		{"instance type", signed + jobs("instance_types: [\"c[6]\"]"), `pools.small.jobs.instance_types[0]: is "c[6]"; write a pattern`},
		{"no instance types", signed + jobs("instance_types: []"), `pools.small.jobs.instance_types: is empty`},
		{"short for several keys", signed + "pools: {small: {job: {labels: [a]}}}", `pools.small.job: is not known; did you mean jobs?`},
		{"no maximum", signed + "pools: {small: {jobs: {labels: [a], repositories: [a/b]}}}", `pools.small.jobs.maximum: is missing; write a number from 1 to 1000`},
		{"maximum", signed + jobs("maximum: 1001"), `3:24: pools.small.jobs.maximum: is 1001; write a number from 1 to 1000`},
		{"minimum", signed + jobs("minimum: -1"), `pools.small.jobs.minimum: is -1; write a number from 0 to 1000`},
		{"minimum above maximum", signed + jobs("minimum: 10"), `3:24: pools.small.jobs.minimum: is 10, more than maximum (9)`},
		{"minimum beside warm hosts", signed + strings.Replace(jobs("minimum: 1"), "{jobs:", "{warm: {minimum_idle: 1}, jobs:", 1), `pools.small.jobs.minimum: is 1, and the pool has a warm section`},
		{"minimum above the pool's maximum", signed + strings.Replace(jobs("minimum: 3"), "{jobs:", "{maximum: 2, jobs:", 1), `pools.small.jobs.minimum: is 3, more than the pool's maximum (2)`},
		{"no repository", signed + jobs("repositories: []"), `pools.small.jobs.repositories: is empty, so no repository could use the pool`},
		{"everybody", signed + jobs("repositories: [\"*/*\"]"), `3:39: pools.small.jobs.repositories[0]: is "*/*"; write a repository as owner/name, or a pattern such as owner/*`},
		{"no repository", signed + jobs("repositories: [acme]"), `pools.small.jobs.repositories[0]: is "acme"; write a repository`},
		{"a repository twice", signed + jobs("repositories: [acme/a, acme/a]"), `pools.small.jobs.repositories[1]: is here twice`},
		{"minimum for two repositories", signed + jobs("registered_minimum: true, minimum: 1, repositories: [acme/a, acme/b]"), `pools.small.jobs.minimum: needs repositories to be one, without a *`},
		{"minimum for a pattern", signed + jobs("registered_minimum: true, minimum: 1, repositories: [\"acme/*\"]"), `pools.small.jobs.minimum: needs repositories to be one, without a *`},
		{"minimum for two owners", orgScope + signed + strings.Replace(jobs("registered_minimum: true, minimum: 1, repositories: [acme/a, other/a]"), "{jobs:", "{reuse: none, jobs:", 1), `pools.small.jobs.minimum: needs repositories to be of one owner`},
		{"reuse in an organisation", orgScope + signed + jobs("minimum: 0"), `3:9: pools.small.reuse: is same-repository, and the hosts of a job pool take jobs of any repository of the organization (github.scope); write same-owner or none`},
		{"written reuse in an organisation", orgScope + signed + strings.Replace(jobs("minimum: 0"), "{jobs:", "{reuse: same-repository, jobs:", 1), `3:17: pools.small.reuse: is same-repository`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text := token + test.text
			if strings.HasPrefix(test.text, "github: {") {
				text = test.text
			}
			_, err := config.Parse("f", []byte(text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got:\n%v\nwant:\n%s", err, test.want)
			}
			if strings.Contains(fmt.Sprint(err), "\n") {
				t.Errorf("more than one problem:\n%v", err)
			}
		})
	}
}

// A minimum that is not registered is launched ahead of need, as jobs ask for hosts.
func TestTheMinimumIsLaunchedAhead(t *testing.T) {
	c := parse(t, signed+`
pools:
  warm: {warm: {minimum_idle: 5}}
  none: {jobs: {labels: [a], maximum: 1, repositories: [acme/app]}}
  registered: {jobs: {labels: [b], minimum: 1, registered_minimum: true, maximum: 1, repositories: [acme/app]}}
  ahead:
    max_age: 5m
    jobs: {labels: [c], resource_class: xlarge, usage_class: spot, instance_types: ["c6*"], allow_on_demand_fallback: true,
           minimum: 2, maximum: 3, repositories: ["acme/*"]}
`)
	want := &config.Warm{
		ResourceClass: "xlarge", UsageClass: lifecycle.UsageSpot, InstanceTypes: []string{"c6*"}, AllowOnDemandFallback: true,
		MinimumIdle: 2, Lead: 150 * time.Second, WarmTime: lifecycle.DefaultPolicy().WarmTime,
	}
	if d := cmp.Diff(want, c.Pools["ahead"].Ahead()); d != "" {
		t.Error(d)
	}
	for _, pool := range []string{"none", "registered"} {
		if got := c.Pools[pool].Ahead(); got != nil {
			t.Errorf("%s: %+v", pool, got)
		}
	}
	if got := c.Pools["warm"].Ahead(); got.MinimumIdle != 5 {
		t.Errorf("warm: %+v", got)
	}
}

func TestWhatJobPoolsMay(t *testing.T) {
	for name, text := range map[string]string{
		"a variable":                      token + "webhooks: {secret_env: WEBHOOK_SECRET}",
		"no webhooks, no job pools":       token,
		"a minimum for one repository":    token + signed + jobs("registered_minimum: true, minimum: 9"),
		"a minimum for many":              token + signed + jobs("minimum: 9, repositories: [\"acme/*\", other/app]"),
		"registered, beside warm hosts":   token + signed + strings.Replace(jobs("registered_minimum: true, minimum: 1"), "{jobs:", "{warm: {minimum_idle: 1}, jobs:", 1),
		"no minimum, many repositories":   token + signed + jobs("repositories: [\"acme/*\", other/app, \"acme/app-*\"]"),
		"labels within another's":         token + signed + "pools: {a: {jobs: {labels: [x], maximum: 1, repositories: [a/b]}}, b: {jobs: {labels: [x, y], maximum: 1, repositories: [a/b]}}}",
		"labels of different machines":    token + signed + "pools: {a: {default_labels: true, jobs: {labels: [x, x64], maximum: 1, repositories: [a/b]}}, b: {default_labels: true, jobs: {labels: [x, arm64], maximum: 1, repositories: [a/b]}}}",
		"a minimum for an organisation":   orgScope + signed + strings.Replace(jobs("registered_minimum: true, minimum: 1, repositories: [\"acme/*\", ACME/app]"), "{jobs:", "{reuse: same-owner, jobs:", 1),
		"a fallback from spot":            token + signed + jobs("usage_class: spot, allow_on_demand_fallback: true"),
		"the organisation's other pools":  orgScope + "pools: {x: {reuse: same-repository}}",
		"a label that has a number in it": token + signed + jobs("labels: [ubuntu-24.04, 8core]"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := config.Parse("f", []byte(text)); err != nil {
				t.Error(err)
			}
		})
	}
}

// A secret in the place of its variable's name must not end up in a log.
func TestAWebhookSecretInTheWrongPlaceIsNotShown(t *testing.T) {
	_, err := config.Parse("f", []byte(token+"webhooks: {secret_env: hunter2-hunter2}"))
	if err == nil || !strings.Contains(err.Error(), "webhooks.secret_env: is not the name") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}
