package fleet_test

import (
	"errors"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// The plan is what the next scale-down does, with what it would end first. It is kept for some seconds, and does nothing.
func TestThePlanOfTheNextScaleDown(t *testing.T) {
	daily, err := policy.ParsePeriod("* * * * *", "UTC", 1, policy.EvictOldest)
	if err != nil {
		t.Fatal(err)
	}
	inScaleDown(t, policy.ScaleDown{Idle: []policy.Period{daily}}, 3, func(t *testing.T, s *scaleDownScene) {
		before := s.store.Dump()
		plan, err := s.fleet.ScaleDownPlan(t.Context(), time.Time{}, time.Now())
		if err != nil || len(plan.Decisions) != 3 {
			t.Fatalf("%v: %+v", err, plan)
		}
		for i, want := range []lifecycle.Action{lifecycle.ActionTerminate, lifecycle.ActionTerminate, lifecycle.ActionKeep} {
			if d := plan.Decisions[i]; d.Action != want || d.Reason == "" || d.Code == "" || d.Sweep != "scale_down" {
				t.Errorf("place %d: %+v, want %s", i, d, want)
			}
		}
		if s.store.Dump() != before {
			t.Error("the plan wrote something")
		}
		s.sweepDown()
		time.Sleep(29 * time.Second)
		if again, err := s.fleet.ScaleDownPlan(t.Context(), time.Time{}, time.Now()); err != nil || !again.At.Equal(plan.At) {
			t.Errorf("within seconds it was planned again: %v", err)
		}
		time.Sleep(time.Second)
		again, err := s.fleet.ScaleDownPlan(t.Context(), time.Time{}, time.Now())
		if err != nil || len(again.Decisions) != 1 || again.Decisions[0].Action != lifecycle.ActionKeep {
			t.Errorf("after the sweep: %v: %+v", err, again.Decisions)
		}
		if _, err := s.newFleet("without").ScaleDownPlan(t.Context(), time.Time{}, time.Now()); !errors.Is(err, fleet.ErrNoScaleDown) {
			t.Errorf("without scale-down: %v", err)
		}
	})
}
