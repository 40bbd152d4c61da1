package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
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
