package ec2_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestRehearse: EC2 is asked about each call that launches and ends hosts, and nothing is launched or ended by it.
func TestRehearse(t *testing.T) {
	w := newWorld(t)
	c := w.open(t, w.options())
	o := lifecycle.LaunchOrder{
		Token: "q/1", RequestID: "q", Number: 1, Count: 1, Pool: "default", Repository: "acme/shop", RunID: "77", ResourceClass: "large", CPU: 2, MemoryMiB: 4096,
		UsageClass: lifecycle.UsageSpot, InstanceTypes: []string{"c*", "m*", "r*"},
	}
	say := func() []string {
		var all []string
		for _, r := range c.Rehearse(t.Context(), []lifecycle.LaunchOrder{o}) {
			all = append(all, fmt.Sprint(r.Action, ": allowed ", r.Err == nil && r.NotTried == "", ", denied ", r.Denied(), ", tried ", r.NotTried == ""))
		}
		return all
	}
	want := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, say()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	const allowed, denied, notTried = ": allowed true, denied false, tried true", ": allowed false, denied true, tried true", ": allowed false, denied false, tried false"
	want("without a template", "ec2:CreateFleet"+notTried, "ec2:RunInstances"+notTried, "ec2:TerminateInstances"+notTried)
	ensure(t, c)
	c = w.open(t, w.options()) // which knows no template
	want("without a machine", "ec2:CreateFleet"+allowed, "ec2:RunInstances"+allowed, "ec2:TerminateInstances"+notTried)
	if left := w.living(t); len(left) > 0 {
		t.Fatalf("%d machines were launched", len(left))
	}
	if _, err := c.Launch(t.Context(), order(t, c, 1, 1)); err != nil {
		t.Fatalf("the token is used up: %v", err)
	}
	want("with all permissions", "ec2:CreateFleet"+allowed, "ec2:RunInstances"+allowed, "ec2:TerminateInstances"+allowed)
	for _, operation := range []string{"CreateFleet", "RunInstances", "TerminateInstances"} {
		w.Deny(operation)
	}
	want("with none", "ec2:CreateFleet"+denied, "ec2:RunInstances"+denied, "ec2:TerminateInstances"+denied)
	if left := w.living(t); len(left) != 1 {
		t.Errorf("%d machines live, want the one that was launched", len(left))
	}
}
