package policy_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

func someOf[T any](t *rapid.T, name string, of []T) []T {
	return rapid.SampledFrom([][]T{nil, of, of, of[:1], of[1:]}).Draw(t, name)
}

func drawRule(t *rapid.T) policy.Rule {
	return policy.Rule{
		RepositoryID: rapid.Int64Range(0, 1).Draw(t, "repository"), OwnerID: rapid.SampledFrom([]int64{0, 1, 1}).Draw(t, "owner"), Repository: "acme/app",
		Events: someOf(t, "events", []string{"push", "pull_request"}), Refs: someOf(t, "refs", []string{"refs/heads/*", "**"}),
		Workflows: someOf(t, "workflows", []string{"a/**", "b/**"}), Pools: someOf(t, "pools", []string{"default", "big"}),
		ResourceClasses: someOf(t, "classes", []string{"large", "xlarge"}), UsageClasses: someOf(t, "usage", lifecycle.UsageClasses),
		MaxHosts:   rapid.IntRange(2, 4).Draw(t, "hosts"),
		MaxRuntime: time.Duration(rapid.IntRange(0, 3).Draw(t, "runtime")) * time.Hour,
		Forks:      rapid.Bool().Draw(t, "forks"), SpotForPullRequests: rapid.Bool().Draw(t, "spot"),
	}
}

func drawPlea(t *rapid.T) (policy.Origin, lifecycle.Spec) {
	return policy.Origin{
			Repository: rapid.SampledFrom([]string{"acme/app", "acme/app", "acme/app", "acme/new"}).Draw(t, "name"), RepositoryID: 1, OwnerID: 1,
			Event:    rapid.SampledFrom([]string{"push", "push", "pull_request", "pull_request_target", ""}).Draw(t, "event"),
			Ref:      rapid.SampledFrom([]string{"refs/heads/a", "refs/heads/a", "refs/heads/a/b", ""}).Draw(t, "ref"),
			Workflow: rapid.SampledFrom([]string{"a/x", "a/x", "b/x", ""}).Draw(t, "workflow"),
			Fork:     rapid.SampledFrom([]policy.Fork{policy.ForkNo, policy.ForkNo, policy.ForkYes, policy.ForkUnknown}).Draw(t, "fork"),
		}, lifecycle.Spec{
			Count: rapid.IntRange(1, 4).Draw(t, "count"), Pool: rapid.SampledFrom([]string{"default", "big"}).Draw(t, "pool"),
			ResourceClass: rapid.SampledFrom([]string{"large", "xlarge"}).Draw(t, "class"),
			UsageClass:    rapid.SampledFrom(lifecycle.UsageClasses).Draw(t, "usageClass"), AllowOnDemand: rapid.Bool().Draw(t, "fallBack"),
			MaxRuntime: time.Duration(rapid.IntRange(1, 3).Draw(t, "maxRuntime")) * time.Hour,
		}
}

// without takes one word away, or, where none means any, says one.
func without[T comparable](list []T, one T) []T {
	if len(list) == 0 {
		return []T{one}
	}
	less := slices.DeleteFunc(slices.Clone(list), func(v T) bool { return v == one })
	if len(less) == 0 {
		return list
	}
	return less
}

// narrow are the ways to take a permission away.
var narrow = map[string]func(*policy.Rule){
	"event":      func(r *policy.Rule) { r.Events = without(r.Events, "push") },
	"ref":        func(r *policy.Rule) { r.Refs = without(r.Refs, "**") },
	"workflow":   func(r *policy.Rule) { r.Workflows = without(r.Workflows, "a/**") },
	"pool":       func(r *policy.Rule) { r.Pools = without(r.Pools, "default") },
	"class":      func(r *policy.Rule) { r.ResourceClasses = without(r.ResourceClasses, "large") },
	"on-demand":  func(r *policy.Rule) { r.UsageClasses = without(r.UsageClasses, lifecycle.UsageOnDemand) },
	"spot":       func(r *policy.Rule) { r.UsageClasses = without(r.UsageClasses, lifecycle.UsageSpot) },
	"a host":     func(r *policy.Rule) { r.MaxHosts-- },
	"an hour":    func(r *policy.Rule) { r.MaxRuntime = max(r.MaxRuntime-time.Hour, time.Hour) },
	"forks":      func(r *policy.Rule) { r.Forks = false },
	"on-demand2": func(r *policy.Rule) { r.SpotForPullRequests = true },
	"any owner":  func(r *policy.Rule) { r.OwnerID = 2 },
}

// Taking a permission away never admits what was refused before.
func TestAdmitIsMonotone(t *testing.T) {
	admitted := 0
	for name, less := range narrow {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				rule := drawRule(t)
				origin, spec := drawPlea(t)
				_, before := policy.Rules{rule}.Admit(origin, spec)
				less(&rule)
				_, after := policy.Rules{rule}.Admit(origin, spec)
				if after.Allowed && !before.Allowed {
					t.Fatalf("%s was taken away, and now it is admitted; before: %s", name, before.Reason)
				}
				if before.Allowed {
					admitted++
				}
			})
		})
	}
	if admitted < 10 {
		t.Errorf("only %d were ever admitted: the property says nothing", admitted)
	}
}

// To know less of a run, or worse, never admits it; nor does asking for more.
func TestAdmitFailsClosed(t *testing.T) {
	worse := []func(*policy.Origin, *lifecycle.Spec){
		func(o *policy.Origin, _ *lifecycle.Spec) { o.Event = "" },
		func(o *policy.Origin, _ *lifecycle.Spec) { o.Ref = "" },
		func(o *policy.Origin, _ *lifecycle.Spec) { o.Workflow = "" },
		func(o *policy.Origin, _ *lifecycle.Spec) { o.Repository = "acme/new" },
		func(o *policy.Origin, _ *lifecycle.Spec) { o.RepositoryID, o.OwnerID = 0, 0 },
		func(o *policy.Origin, _ *lifecycle.Spec) {
			if o.Fork == policy.ForkNo {
				o.Fork = policy.ForkUnknown
			}
		},
		func(o *policy.Origin, _ *lifecycle.Spec) { o.Fork = policy.ForkYes },
		func(_ *policy.Origin, s *lifecycle.Spec) { s.Count++ },
		func(_ *policy.Origin, s *lifecycle.Spec) { s.MaxRuntime += time.Hour },
		func(_ *policy.Origin, s *lifecycle.Spec) { s.AllowOnDemand = true },
	}
	rapid.Check(t, func(t *rapid.T) {
		rule := drawRule(t)
		if rule.RepositoryID == 0 {
			rule.OwnerID = 1
		}
		origin, spec := drawPlea(t)
		_, before := policy.Rules{rule}.Admit(origin, spec)
		if rule.RepositoryID == 0 {
			origin.Repository = "acme/new" // an owner's rule asks no name
		}
		i := rapid.IntRange(0, len(worse)-1).Draw(t, "worse")
		worse[i](&origin, &spec)
		if _, after := (policy.Rules{rule}).Admit(origin, spec); after.Allowed && !before.Allowed {
			t.Fatalf("change %d admits; before: %s", i, before.Reason)
		}
	})
}
