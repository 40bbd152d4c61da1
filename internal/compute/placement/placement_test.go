package placement_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func order(count int, usage lifecycle.UsageClass, patterns ...string) lifecycle.LaunchOrder {
	return lifecycle.LaunchOrder{
		Token: "t", RequestID: "q", Number: 1, Count: count, Pool: "default", Repository: "acme/shop", RunID: "7",
		ResourceClass: "large", CPU: 2, MemoryMiB: 4096, UsageClass: usage, InstanceTypes: patterns,
	}
}

// ofPool is the order for a pool that allows these types.
func ofPool(o lifecycle.LaunchOrder, patterns ...string) lifecycle.LaunchOrder {
	o.PoolTypes = patterns
	return o
}

func TestPlace(t *testing.T) {
	const onDemand, spot = lifecycle.UsageOnDemand, lifecycle.UsageSpot
	live := []lifecycle.Machine{
		{Hardware: lifecycle.Hardware{InstanceType: "c6i.large", Zone: "a", UsageClass: onDemand}},
		{Hardware: lifecycle.Hardware{InstanceType: "c6i.large", Zone: "a", UsageClass: spot}},
	}
	large := order(1, onDemand)
	large.CPU = 99
	tests := map[string]struct {
		limits placement.Limits
		order  lifecycle.LaunchOrder
		want   string
		why    string
	}{
		"without limits": {placement.Limits{}, order(2, onDemand, "c6i.*"), "c6i.large@local-a c6i.large@local-a", ""},
		"zones are filled evenly": {placement.Limits{Zones: []string{"a", "b", "c"}}, order(5, onDemand, "c6i.large"),
			"c6i.large@b c6i.large@c c6i.large@b c6i.large@c c6i.large@a", ""},
		"next type when one is full": {placement.Limits{Capacity: map[string]int{"c6i.large": 3}}, order(2, onDemand, "c6i.*", "m6i.*"),
			"c6i.large@local-a m6i.large@local-a", ""},
		"short": {placement.Limits{Capacity: map[string]int{"c*": 3}}, order(3, onDemand, "c6i.*"),
			"c6i.large@local-a", "no on-demand capacity of c6i.large, c6i.xlarge in local-a"},
		"every pattern holds": {placement.Limits{Capacity: map[string]int{"*": 3, "c6i.*": 9}}, order(2, onDemand, "c6i.*"),
			"c6i.large@local-a", "no on-demand capacity of c6i.large, c6i.xlarge in local-a"},
		"spot is limited in addition": {placement.Limits{SpotCapacity: map[string]int{"c*": 2}}, order(2, spot, "c6i.large"),
			"c6i.large@local-a", "no spot capacity of c6i.large in local-a"},
		"on-demand is not limited by spot": {placement.Limits{SpotCapacity: map[string]int{"c*": 0}}, order(1, onDemand, "c6i.large"),
			"c6i.large@local-a", ""},
		"many types are counted": {placement.Limits{Capacity: map[string]int{"*": 0}, Zones: []string{"a", "b"}}, order(1, onDemand, "m*.large"),
			"", "no on-demand capacity of m5.large, m5a.large, m5n.large, m6a.large and 5 more types in a, b"},
		"nothing fits": {placement.Limits{}, order(1, onDemand, "g5.*", "c7g.*"),
			"", "no x86_64 type that matches g5.*, c7g.* has 2 vCPU and 4096 MiB"},
		"of the pool's types": {placement.Limits{}, ofPool(order(1, onDemand, "c*", "m*"), "m6i.*"), "m6i.large@local-a", ""},
		"none of the pool's": {placement.Limits{}, ofPool(order(1, onDemand, "c*"), "m6i.*", "m7i.*"),
			"", "no x86_64 type that matches c* and, for pool default, m6i.*, m7i.* has 2 vCPU and 4096 MiB"},
		"nothing is as large": {placement.Limits{}, large, "", "no x86_64 type that matches * has 99 vCPU and 4096 MiB"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.limits.Arch = catalogue.ArchX86
			plan, err := test.limits.Place(test.order, live, "salt", now)
			if err != nil {
				t.Fatalf("place: %v", err)
			}
			var got []string
			for _, m := range plan.Machines {
				got = append(got, m.InstanceType+"@"+m.Zone)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("machines (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.why, plan.Why); diff != "" {
				t.Errorf("why (-want +got):\n%s", diff)
			}
			var short *lifecycle.ShortageError
			if got := errors.As(plan.Shortage(), &short); got != (test.why != "") {
				t.Errorf("shortage: got %v", plan.Shortage())
			}
			if short != nil && (short.Ordered != test.order.Count || short.Got != len(plan.Machines)) {
				t.Errorf("shortage: got %+v", short)
			}
		})
	}
}

func TestSells(t *testing.T) {
	tests := map[string]struct {
		cpu, memory int
		patterns    [][]string
		want        bool
	}{
		"anything":                     {2, 4096, nil, true},
		"a pattern that matches":       {2, 4096, [][]string{{"z9.*", "c6i.*"}}, true},
		"one that nothing matches":     {2, 4096, [][]string{{"z9.*"}}, false},
		"two that something matches":   {2, 4096, [][]string{{"c*", "m*"}, {"m6i.*"}}, true},
		"two that nothing matches":     {2, 4096, [][]string{{"c*"}, {"m6i.*"}}, false},
		"of another architecture":      {2, 4096, [][]string{{"c7g.*"}}, false},
		"nothing so large":             {99, 4096, nil, false},
		"nothing so large that is one": {32, 65536, [][]string{{"c5.*"}}, false},
	}
	for name, tt := range tests {
		full := placement.Limits{Arch: catalogue.ArchX86, Capacity: map[string]int{"*": 0}}
		if got := full.Sells(tt.cpu, tt.memory, tt.patterns...); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

func TestPlacedMachine(t *testing.T) {
	o := order(1, lifecycle.UsageSpot, "c6i.large")
	o.TemplateVersion = "3"
	plan, err := placement.Limits{Arch: catalogue.ArchX86}.Place(o, nil, "salt", now)
	if err != nil {
		t.Fatalf("place: %v", err)
	}
	id := placement.InstanceID("salt", "t", 0)
	want := []lifecycle.Machine{{
		InstanceID: id, HostKey: id, State: lifecycle.MachinePending,
		Hardware: lifecycle.Hardware{
			InstanceType: "c6i.large", CPU: 2, MemoryMiB: 4096, Arch: "x86_64",
			Zone: placement.DefaultZone, UsageClass: lifecycle.UsageSpot, ResourceClass: "large",
		},
		LaunchedAt: now, Pool: "default",
		Repository: "acme/shop", RunID: "7", RequestID: "q", Launch: 1, TemplateVersion: "3",
	}}
	if diff := cmp.Diff(want, plan.Machines); diff != "" {
		t.Errorf("machines (-want +got):\n%s", diff)
	}
}

func TestInstanceID(t *testing.T) {
	seen := map[string]string{}
	for _, salt := range []string{"", "s"} {
		for _, token := range []string{"t", "t1"} {
			for i := range 20 {
				id, from := placement.InstanceID(salt, token, i), fmt.Sprintf("%q %q %d", salt, token, i)
				if other, taken := seen[id]; taken {
					t.Errorf("%s and %s both have the id %s", other, from, id)
				}
				if len(id) != len("i-0123456789abcdef0") {
					t.Errorf("id %q is not of EC2's form", id)
				}
				seen[id] = from
			}
		}
	}
}

func TestBadOrder(t *testing.T) {
	tests := map[string]func(*lifecycle.LaunchOrder){
		"no token":    func(o *lifecycle.LaunchOrder) { o.Token = "" },
		"no count":    func(o *lifecycle.LaunchOrder) { o.Count = 0 },
		"bad pattern": func(o *lifecycle.LaunchOrder) { o.InstanceTypes = []string{"c[6"} },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			o := order(1, lifecycle.UsageOnDemand, "c*")
			spoil(&o)
			if plan, err := (placement.Limits{}).Place(o, nil, "", now); err == nil {
				t.Errorf("place: got %+v and no error", plan)
			}
		})
	}
}

func TestRepeats(t *testing.T) {
	plan := placement.Plan{Order: order(2, lifecycle.UsageOnDemand)}
	same := order(2, lifecycle.UsageOnDemand)
	same.InstanceTypes = []string{} // as another encoding of none
	if err := plan.Repeats(same); err != nil {
		t.Errorf("the same order: %v", err)
	}
	for _, other := range []lifecycle.LaunchOrder{order(3, lifecycle.UsageOnDemand), order(2, lifecycle.UsageOnDemand, "c*")} {
		if err := plan.Repeats(other); !errors.Is(err, lifecycle.ErrExists) {
			t.Errorf("another order: got %v, want ErrExists", err)
		}
	}
}

func TestCheckLimits(t *testing.T) {
	if err := (placement.Limits{Zones: []string{"a"}, Capacity: map[string]int{"c*": 0}}).Check(); err != nil {
		t.Errorf("good limits: %v", err)
	}
	tests := map[string]struct {
		limits placement.Limits
		says   string
	}{
		"zone":     {placement.Limits{Zones: []string{"a", ""}}, "zone"},
		"pattern":  {placement.Limits{Capacity: map[string]int{"C*": 1}}, `capacity: instance type pattern "C*"`},
		"negative": {placement.Limits{SpotCapacity: map[string]int{"c*": -1}}, "spot capacity of c*: must be at least 0, is -1"},
	}
	for name, test := range tests {
		if err := test.limits.Check(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got error %v, want one that says %q", name, err, test.says)
		}
	}
}
