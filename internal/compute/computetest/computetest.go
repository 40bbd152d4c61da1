// Package computetest is the conformance suite of the compute port: what the
// use-cases rely on, whichever cloud is behind it.
package computetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Compute is the port.
type Compute interface {
	Launch(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error)
	Launched(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error)
	Describe(ctx context.Context, instanceIDs []string) ([]lifecycle.Machine, error)
	List(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error)
	Stop(ctx context.Context, instanceID string, hibernate bool) error
	Start(ctx context.Context, instanceID string) error
	ReplaceRoot(ctx context.Context, instanceID, token string) (lifecycle.RootTask, error)
	RootTasks(ctx context.Context, instanceIDs []string) ([]lifecycle.RootTask, error)
	Terminate(ctx context.Context, instanceIDs []string) error
}

// Cloud is one cloud under test, empty at first, and what replicas see of it.
type Cloud struct {
	// First and Second are the clients of two replicas of controld.
	First, Second Compute
	// Boot does what makes a launched machine run, if it does not by itself.
	Boot func(id string)
	// Tag writes what an operator writes to keep scale-down from a machine.
	Tag func(id, value string)
}

// Capacity is what the suite asks the cloud to limit: a pattern and how many
// hosts of the matching types may live.
type Capacity = map[string]int

// Run runs the suite. open makes a new cloud whose hosts have the architecture
// of this machine, and ends it with the test.
func Run(t *testing.T, open func(t *testing.T, capacity Capacity) Cloud) {
	tests := []struct {
		name     string
		capacity Capacity
		test     func(t *testing.T, c Cloud)
	}{
		{"launch gives machines with their tags", nil, testLaunch},
		{"launched machines come to run", nil, testBoot},
		{"the same order gives the same machines", nil, testRepeat},
		{"a token stands for one order", nil, testOtherOrder},
		{"16 concurrent launches of one order make one set", nil, testConcurrent},
		{"a launch is found by its tags", nil, testLaunched},
		{"an unknown machine is gone", nil, testUnknown},
		{"list pages through what is not gone", nil, testList},
		{"an operator's tag keeps scale-down from a machine", nil, testBypass},
		{"terminate is idempotent", nil, testTerminate},
		{"a terminated machine does not come back", nil, testNoRevival},
		{"a machine is stopped and started", nil, testStop},
		{"a stopped machine ends", nil, testStoppedEnds},
		{"an unknown machine is not started", nil, testStopUnknown},
		{"a root volume is replaced", nil, testReplaceRoot},
		{"no root volume of a machine that is gone is replaced", nil, testReplaceRootRefused},
		{"the next type is taken when one is full", Capacity{types[0]: 1}, testFallThrough},
		{"a shortage gives what there is", Capacity{"*": 2}, testShortage},
		{"a shortage stays what it was", Capacity{"*": 1}, testShortageRepeat},
		{"no type fits", nil, testNothingFits},
		{"bad orders are refused", nil, testBadOrder},
		{"nothing is done for a caller who has left", nil, testCancelled},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.test(t, open(t, test.capacity)) })
	}
}

// bootTimeout is how long a machine may take to run; far more than any needs.
const bootTimeout = 2 * time.Minute

// types are two of the catalogue, for each architecture, the smaller first.
var types = localTypes()

func order(requestID string, number, count int) lifecycle.LaunchOrder {
	return lifecycle.LaunchOrder{
		Token: fmt.Sprintf("%s/%d", requestID, number), RequestID: requestID, Number: number, Count: count,
		Pool: "default", Repository: "acme/shop", RunID: "77", ResourceClass: "large", CPU: 2, MemoryMiB: 4096,
		UsageClass: lifecycle.UsageOnDemand, InstanceTypes: types, TemplateVersion: "3",
	}
}

func launch(t *testing.T, c Compute, o lifecycle.LaunchOrder) []lifecycle.Machine {
	t.Helper()
	machines, err := c.Launch(t.Context(), o)
	if err != nil {
		t.Fatalf("launch %s: %v", o.Token, err)
	}
	if len(machines) != o.Count {
		t.Fatalf("launch %s: got %d machines, want %d", o.Token, len(machines), o.Count)
	}
	return machines
}

func describe(t *testing.T, c Compute, ids ...string) []lifecycle.Machine {
	t.Helper()
	machines, err := c.Describe(t.Context(), ids)
	if err != nil {
		t.Fatalf("describe %v: %v", ids, err)
	}
	if len(machines) != len(ids) {
		t.Fatalf("describe %v: got %d machines", ids, len(machines))
	}
	return machines
}

func terminate(t *testing.T, c Compute, ids ...string) {
	t.Helper()
	if err := c.Terminate(t.Context(), ids); err != nil {
		t.Fatalf("terminate %v: %v", ids, err)
	}
}

func idsOf(machines []lifecycle.Machine) []string {
	ids := make([]string, 0, len(machines))
	for _, m := range machines {
		ids = append(ids, m.InstanceID)
	}
	return ids
}

// list collects all pages of at most limit machines.
func list(t *testing.T, c Compute, limit int) []lifecycle.Machine {
	t.Helper()
	var all []lifecycle.Machine
	for page := (lifecycle.PageOf{Limit: limit}); ; {
		got, err := c.List(t.Context(), page)
		if err != nil {
			t.Fatalf("list %+v: %v", page, err)
		}
		if len(got.Items) > page.Size() {
			t.Fatalf("list %+v: got %d machines", page, len(got.Items))
		}
		all = append(all, got.Items...)
		if got.Next == "" {
			return all
		}
		if got.Next == page.After {
			t.Fatalf("list %+v: the next page is the same one", page)
		}
		page.After = got.Next
	}
}
