package fleet_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/budget"
)

// TestPlanOnly: a plan can be asked for, of a snapshot too, and a sweep looks at nothing.
func TestPlanOnly(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	taken := policy.Snapshot{Now: at, Instances: []policy.SnapshotInstance{{State: "running", Candidate: policy.Candidate{InstanceID: "i-1", Orphan: true}}}}
	f, err := fleet.New(fleet.Options{
		// Any call panics.
		Store: struct{ fleet.Store }{}, Queue: struct{ fleet.Queue }{}, Compute: struct{ fleet.Compute }{}, GitHub: struct{ fleet.GitHub }{}, Replica: "test",
		Pools: map[string]fleet.Pool{"default": {Name: "default"}},
		ScaleDown: &fleet.ScaleDown{
			GitHub: struct{ fleet.Registrations }{}, PlanOnly: true,
			Taken: func() (policy.Snapshot, []fleet.Decided) {
				return taken, []fleet.Decided{{InstanceID: "i-0", Action: lifecycle.ActionKeep}}
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := f.NewScaleDownSweep().Step(context.Background(), at); err != nil || !done.Done {
		t.Errorf("the sweep: %+v, %v", done, err)
	}
	plan, err := f.ScaleDownPlan(context.Background(), time.Time{}, at)
	if err != nil || len(plan.Decisions) != 2 || plan.Decisions[0].InstanceID != "i-1" || plan.Decisions[0].Action != lifecycle.ActionTerminate {
		t.Errorf("plan: %+v, %v", plan, err)
	}
}

// TestWhatAFleetNeeds: what is not there is named at the start, and not when it is first used.
func TestWhatAFleetNeeds(t *testing.T) {
	t.Parallel()
	const parts = "store, queue, compute and github are required"
	tests := map[string]struct {
		change func(*fleet.Options)
		want   string
	}{
		"all":                          {func(*fleet.Options) {}, ""},
		"no store":                     {func(o *fleet.Options) { o.Store = nil }, parts},
		"no queue":                     {func(o *fleet.Options) { o.Queue = nil }, parts},
		"no compute":                   {func(o *fleet.Options) { o.Compute = nil }, parts},
		"no GitHub":                    {func(o *fleet.Options) { o.GitHub = nil }, parts},
		"scale-down without GitHub":    {func(o *fleet.Options) { o.ScaleDown = &fleet.ScaleDown{} }, "scale-down needs to ask GitHub"},
		"limits without guards":        {func(o *fleet.Options) { o.Limits.HostsPerRepository = 1 }, "limits on hosts need a store of guards"},
		"budgets":                      {func(o *fleet.Options) { priced(o); o.Budgets, o.Guards = aBudget, struct{ fleet.GuardStore }{} }, ""},
		"budgets without prices":       {func(o *fleet.Options) { o.Budgets, o.Guards = aBudget, struct{ fleet.GuardStore }{} }, "budgets need prices"},
		"budgets without guards":       {func(o *fleet.Options) { priced(o); o.Budgets = aBudget }, "budgets need prices, and a store of guards"},
		"no pool":                      {func(o *fleet.Options) { o.Pools = nil }, "at least one pool is required"},
		"no replica":                   {func(o *fleet.Options) { o.Replica = "" }, "the replica needs a name"},
		"a class that is not there":    {func(o *fleet.Options) { o.Classes = nil }, "pool default: resource class large is not defined"},
		"one of two that is not there": {func(o *fleet.Options) { delete(o.Classes, "xlarge") }, "pool default: resource class xlarge is not defined"},
	}
	for name, tt := range tests {
		o := fleet.Options{
			Store: struct{ fleet.Store }{}, Queue: struct{ fleet.Queue }{}, Compute: struct{ fleet.Compute }{}, GitHub: struct{ fleet.GitHub }{}, Replica: "test",
			Pools:   map[string]fleet.Pool{"default": {Name: "default", ResourceClasses: []string{"large", "xlarge"}}},
			Classes: map[string]fleet.Class{"large": {}, "xlarge": {}},
		}
		tt.change(&o)
		if _, err := fleet.New(o); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

var aBudget = budget.List{{Owner: "acme", Dollars: 1}}
