package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// app is the rule of a repository that says everything.
func app() policy.Rule {
	return policy.Rule{
		RepositoryID: 1, OwnerID: 7, Repository: "acme/app",
		Events: []string{"push", "pull_request*"}, Refs: []string{"refs/heads/**", "refs/pull/*/merge"},
		Workflows: []string{"acme/app/.github/workflows/*@**"}, Pools: []string{"default", "big"},
		ResourceClasses: []string{"large"}, UsageClasses: lifecycle.UsageClasses, MaxHosts: 5, MaxRuntime: 2 * time.Hour,
	}
}

// pushed is a run that the rule admits, and few what it may ask for.
func pushed() policy.Origin {
	return policy.Origin{
		Repository: "acme/app", RepositoryID: 1, OwnerID: 7, RunID: "42", Event: "push", Ref: "refs/heads/feature/a",
		Workflow: "acme/app/.github/workflows/ci.yml@refs/heads/feature/a",
	}
}

func few() lifecycle.Spec {
	return lifecycle.Spec{
		Count: 5, MinimumCount: 1, Pool: "default", ResourceClass: "large", UsageClass: lifecycle.UsageSpot, MaxRuntime: 2 * time.Hour,
	}
}

// plea is what Admit decides on.
type plea struct {
	rules  policy.Rules
	origin policy.Origin
	spec   lifecycle.Spec
}

func TestAdmit(t *testing.T) {
	rule := func(change func(*policy.Rule)) func(*plea) { return func(p *plea) { change(&p.rules[0]) } }
	pullRequest := func(fork policy.Fork) func(*plea) {
		return func(p *plea) { p.origin.Event, p.origin.Ref, p.origin.Fork = "pull_request", "refs/pull/9/merge", fork }
	}
	spotOnly := rule(func(r *policy.Rule) { r.SpotForPullRequests = true })
	tests := map[string]struct {
		change []func(*plea)
		want   string // what a refusal says; empty: admitted
	}{
		"all as it should be": {},
		"no rules": {[]func(*plea){func(p *plea) { p.rules = nil }},
			"repository acme/app (repository_id 1, owner_id 7) has no rule; add one to callers.repositories"},
		"unknown repository": {[]func(*plea){func(p *plea) { p.origin.RepositoryID, p.origin.Repository = 2, "acme/other" }}, "has no rule"},
		"renamed": {[]func(*plea){func(p *plea) { p.origin.Repository = "acme/new" }},
			"repository 1 is acme/new now, and its rule says acme/app: if it was renamed, write repository: acme/new"},
		"another of that name":      {[]func(*plea){func(p *plea) { p.origin.RepositoryID = 2 }}, "has the id 2, and its rule is for 1, which had that name"},
		"name in other capitals":    {[]func(*plea){func(p *plea) { p.origin.Repository = "Acme/App" }}, ""},
		"transferred":               {[]func(*plea){func(p *plea) { p.origin.OwnerID = 8 }}, "belongs to owner 8 now, and its rule says 7: if it was transferred, write owner_id: 8"},
		"an owner that is not said": {[]func(*plea){rule(func(r *policy.Rule) { r.OwnerID = 0 }), func(p *plea) { p.origin.OwnerID = 8 }}, ""},
		"event":                     {[]func(*plea){func(p *plea) { p.origin.Event = "schedule" }}, "the event schedule is none of [push pull_request*]"},
		"no event":                  {[]func(*plea){func(p *plea) { p.origin.Event = "" }}, "the event of the run is not known"},
		"any event":                 {[]func(*plea){rule(func(r *policy.Rule) { r.Events = nil }), func(p *plea) { p.origin.Event = "schedule" }}, ""},
		"ref":                       {[]func(*plea){func(p *plea) { p.origin.Ref = "refs/tags/v1" }}, "the ref refs/tags/v1 is none of"},
		"no ref":                    {[]func(*plea){func(p *plea) { p.origin.Ref = "" }}, "the ref of the run is not known"},
		"workflow":                  {[]func(*plea){func(p *plea) { p.origin.Workflow = "evil/app/.github/workflows/ci.yml@refs/heads/main" }}, "the workflow evil/app"},
		"workflow in a directory":   {[]func(*plea){func(p *plea) { p.origin.Workflow = "acme/app/.github/workflows/x/ci.yml@main" }}, "the workflow acme/app"},
		"pool":                      {[]func(*plea){func(p *plea) { p.spec.Pool = "gpu" }}, "pool gpu is none of [default big]"},
		"another pool":              {[]func(*plea){func(p *plea) { p.spec.Pool = "big" }}, ""},
		"no pools, default":         {[]func(*plea){rule(func(r *policy.Rule) { r.Pools = nil })}, ""},
		"no pools, another":         {[]func(*plea){rule(func(r *policy.Rule) { r.Pools = nil }), func(p *plea) { p.spec.Pool = "big" }}, "pool big is none of [default]"},
		"class":                     {[]func(*plea){func(p *plea) { p.spec.ResourceClass = "huge" }}, "resource class huge is none of [large]"},
		"any class":                 {[]func(*plea){rule(func(r *policy.Rule) { r.ResourceClasses = nil }), func(p *plea) { p.spec.ResourceClass = "huge" }}, ""},
		"usage class":               {[]func(*plea){rule(func(r *policy.Rule) { r.UsageClasses = []lifecycle.UsageClass{"on-demand"} })}, "usage class spot is none of [on-demand]"},
		"fall-back":                 {[]func(*plea){rule(func(r *policy.Rule) { r.UsageClasses = []lifecycle.UsageClass{"spot"} }), func(p *plea) { p.spec.AllowOnDemand = true }}, "a fall-back to on-demand"},
		"hosts":                     {[]func(*plea){func(p *plea) { p.spec.Count = 6 }}, "6 hosts are more than the 5"},
		"no hosts":                  {[]func(*plea){func(p *plea) { p.spec.Count = 0 }}, "0 hosts"},
		"runtime":                   {[]func(*plea){func(p *plea) { p.spec.MaxRuntime += time.Second }}, "a runtime of 2h0m1s is more than the 2h0m0s"},
		"endless":                   {[]func(*plea){func(p *plea) { p.spec.MaxRuntime = 0 }}, "a runtime of 0s"},
		"runtime without a bound":   {[]func(*plea){rule(func(r *policy.Rule) { r.MaxRuntime = 0 }), func(p *plea) { p.spec.MaxRuntime = 99 * time.Hour }}, ""},
		"pull request":              {[]func(*plea){pullRequest(policy.ForkNo)}, ""},
		"fork":                      {[]func(*plea){pullRequest(policy.ForkYes)}, "the run's commit is of a fork, and the rule of repository acme/app has forks: false"},
		"perhaps a fork":            {[]func(*plea){pullRequest(policy.ForkUnknown)}, "it is not known whether the run's commit is of a fork"},
		"nonsense for a fork":       {[]func(*plea){func(p *plea) { p.origin.Fork = "maybe" }}, "it is not known"},
		"push of a fork":            {[]func(*plea){func(p *plea) { p.origin.Fork = policy.ForkYes }}, "is of a fork"},
		"forks are welcome":         {[]func(*plea){pullRequest(policy.ForkYes), rule(func(r *policy.Rule) { r.Forks = true })}, ""},
		"unknown, and are welcome":  {[]func(*plea){pullRequest(policy.ForkUnknown), rule(func(r *policy.Rule) { r.Forks = true })}, ""},
		"pull request on spot":      {[]func(*plea){pullRequest(policy.ForkNo), spotOnly}, ""},
		"pull request on demand":    {[]func(*plea){pullRequest(policy.ForkNo), spotOnly, func(p *plea) { p.spec.UsageClass = "on-demand" }}, "may have spot hosts only"},
		"pull request falls back":   {[]func(*plea){pullRequest(policy.ForkNo), spotOnly, func(p *plea) { p.spec.AllowOnDemand = true }}, "may have spot hosts only"},
		"review on demand": {[]func(*plea){spotOnly, func(p *plea) {
			p.origin.Event, p.origin.Fork, p.spec.UsageClass = "pull_request_review", policy.ForkNo, "on-demand"
		}}, "may have spot hosts only"},
		"push on demand": {[]func(*plea){spotOnly, func(p *plea) { p.spec.UsageClass = "on-demand" }}, ""},
		"unknown event on demand": {[]func(*plea){spotOnly, func(p *plea) {
			p.rules[0].Events, p.origin.Event, p.origin.Fork, p.spec.UsageClass = nil, "", policy.ForkNo, "on-demand"
		}}, "may have spot hosts only"},
		"unknown event, fork or not": {[]func(*plea){func(p *plea) { p.rules[0].Events, p.origin.Event = nil, "" }}, "it is not known whether"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := plea{policy.Rules{app()}, pushed(), few()}
			for _, change := range tt.change {
				change(&p)
			}
			_, v := p.rules.Admit(p.origin, p.spec)
			if v.Allowed != (tt.want == "") || !strings.Contains(v.Reason, tt.want) || v.Reason == "" {
				t.Errorf("got %+v, want %q", v, tt.want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	rules := policy.Rules{
		{OwnerID: 7, MaxHosts: 1}, {RepositoryID: 1, Repository: "acme/app", MaxHosts: 2}, {RepositoryID: 1, MaxHosts: 3}, {MaxHosts: 4},
	}
	tests := map[string]struct {
		repository, owner int64
		want              int // its MaxHosts; 0: none
	}{
		"its own before its owner's": {1, 7, 2},
		"its owner's":                {2, 7, 1},
		"neither":                    {2, 8, 0},
		"none":                       {0, 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if r, ok := rules.Find(tt.repository, tt.owner); r.MaxHosts != tt.want || ok != (tt.want > 0) {
				t.Errorf("got %+v, %t", r, ok)
			}
		})
	}
	// A repository that takes the name of one with a rule is not served by the owner's.
	origin := policy.Origin{Repository: "acme/app", RepositoryID: 2, OwnerID: 7, Event: "push"}
	if _, v := rules.Admit(origin, lifecycle.Spec{Count: 1, Pool: "default"}); v.Allowed {
		t.Errorf("got %+v", v)
	}
	origin.Repository = "acme/other"
	if r, v := rules.Admit(origin, lifecycle.Spec{Count: 1, Pool: "default"}); !v.Allowed || r.MaxHosts != 1 || v.Reason != "the rule of owner 7 allows it" {
		t.Errorf("got %+v %+v", r, v)
	}
}

func TestRuntime(t *testing.T) {
	for _, tt := range []struct{ rule, pool, want time.Duration }{{0, 5, 5}, {3, 5, 3}, {5, 3, 3}, {3, 0, 3}} {
		if got := (policy.Rule{MaxRuntime: tt.rule}).Runtime(tt.pool); got != tt.want {
			t.Errorf("rule %d, pool %d: got %d, want %d", tt.rule, tt.pool, got, tt.want)
		}
	}
}

func TestRoles(t *testing.T) {
	for i, r := range policy.Roles {
		for j, least := range policy.Roles {
			if got := r.Includes(least); got != (i >= j) {
				t.Errorf("%s includes %s: %t", r, least, got)
			}
		}
		if policy.Role("").Includes(r) || r.Includes("") || policy.Role("root").Includes("root") {
			t.Errorf("%s: an unknown role counts", r)
		}
	}
}
