// Package placement decides which machines a launch order becomes: their ids, types and zones. It is pure,
// and shared by the adapters that stand in for EC2's own placement.
package placement

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// Plan is what an order became. The same order, made again, gets the same plan, so a plan
// is stored before any of its machines is made.
type Plan struct {
	Order    lifecycle.LaunchOrder
	Machines []lifecycle.Machine
	// Why says what capacity was missing; empty when all were placed.
	Why string
}

// Shortage is the *lifecycle.ShortageError of a plan with fewer machines than were ordered, else nil.
func (p Plan) Shortage() error {
	if p.Why == "" {
		return nil
	}
	return &lifecycle.ShortageError{Ordered: p.Order.Count, Got: len(p.Machines), Reason: p.Why}
}

// Repeats returns an error that wraps lifecycle.ErrExists unless order is the
// one that was planned: a token stands for one exact order.
func (p Plan) Repeats(order lifecycle.LaunchOrder) error {
	planned := p.Order
	types := slices.Equal(planned.InstanceTypes, order.InstanceTypes) && slices.Equal(planned.PoolTypes, order.PoolTypes)
	planned.InstanceTypes, planned.PoolTypes = order.InstanceTypes, order.PoolTypes
	if types && reflect.DeepEqual(planned, order) {
		return nil
	}
	return fmt.Errorf("launch %d of request %s: its token stands for another order: %w",
		p.Order.Number, p.Order.RequestID, lifecycle.ErrExists)
}

// Place plans an order beside the machines that are live. Types are taken from the catalogue, the smallest
// first, and the next one when a limit leaves no room for more of one; zones are filled evenly. The salt sets
// the ids of one cloud apart from those that another gives to the same token.
func (l Limits) Place(order lifecycle.LaunchOrder, live []lifecycle.Machine, salt string, now time.Time) (Plan, error) {
	plan := Plan{Order: order}
	if order.Token == "" || order.Count < 1 {
		return plan, fmt.Errorf("place order: want a token and a count of at least 1, got token %q and count %d", order.Token, order.Count)
	}
	need := catalogue.Need{CPU: order.CPU, MemoryMiB: order.MemoryMiB}
	types, err := catalogue.Select(need, order.InstanceTypes, l.arch(), order.PoolTypes)
	if err != nil {
		return plan, fmt.Errorf("place order: %w", err)
	}
	if len(types) == 0 {
		plan.Why = l.nothingFits(order)
		return plan, nil
	}
	taken := slices.Clone(live)
	for i := range order.Count {
		typ, ok := l.firstWithRoom(types, order.UsageClass, taken)
		if !ok {
			plan.Why = l.allFull(order, types)
			break
		}
		m := machine(order, typ, l.emptiestZone(taken), InstanceID(salt, order.Token, i), now)
		plan.Machines = append(plan.Machines, m)
		taken = append(taken, m)
	}
	return plan, nil
}

// machine has the tags of the order. Where there is no instance role the host
// key is the instance id (docs/design.md#what-is-stored).
func machine(o lifecycle.LaunchOrder, t catalogue.Type, zone, id string, now time.Time) lifecycle.Machine {
	return lifecycle.Machine{
		InstanceID: id, HostKey: id, State: lifecycle.MachinePending,
		Hardware: lifecycle.Hardware{
			InstanceType: t.Name, CPU: t.CPU, MemoryMiB: t.MemoryMiB, Arch: t.Arch,
			Zone: zone, UsageClass: o.UsageClass, ResourceClass: o.ResourceClass,
		},
		LaunchedAt: now.UTC().Round(0),
		Pool:       o.Pool, Repository: o.Repository, RunID: o.RunID, RequestID: o.RequestID, Launch: o.Number, TemplateVersion: o.TemplateVersion,
	}
}

// idDigits is how many hexadecimal digits follow "i-" in EC2's instance ids.
const idDigits = 17

// InstanceID is the id of machine number i of the order with the token.
func InstanceID(salt, token string, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", salt, token, i))
	return "i-" + hex.EncodeToString(sum[:])[:idDigits]
}

// DefaultZone is the zone of a cloud without configured zones.
const DefaultZone = "local-a"

// Limits are what the stand-in for a cloud has to give.
type Limits struct {
	// Zones to spread hosts over; none: DefaultZone.
	Zones []string
	// Arch of all hosts; empty: this machine's own.
	Arch string
	// Capacity is how many hosts may live at once whose type matches the pattern. Every pattern that matches
	// a type holds for it; a type that none matches is without limit.
	Capacity map[string]int
	// SpotCapacity limits spot hosts in the same way, in addition.
	SpotCapacity map[string]int
}

// Check says what is wrong with the limits.
func (l Limits) Check() error {
	if slices.Contains(l.Zones, "") {
		return fmt.Errorf("zones: a zone has no name")
	}
	for name, capacity := range map[string]map[string]int{"capacity": l.Capacity, "spot capacity": l.SpotCapacity} {
		for _, pattern := range slices.Sorted(maps.Keys(capacity)) {
			if err := catalogue.CheckPattern(pattern); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if n := capacity[pattern]; n < 0 {
				return fmt.Errorf("%s of %s: must be at least 0, is %d", name, pattern, n)
			}
		}
	}
	return nil
}

func (l Limits) arch() string { return cmp.Or(l.Arch, catalogue.LocalArch()) }

func (l Limits) zones() []string {
	if len(l.Zones) == 0 {
		return []string{DefaultZone}
	}
	return l.Zones
}

// firstWithRoom returns the first type with capacity for one more host.
func (l Limits) firstWithRoom(types []catalogue.Type, usage lifecycle.UsageClass, live []lifecycle.Machine) (catalogue.Type, bool) {
	for _, t := range types {
		spot := usage != lifecycle.UsageSpot || room(l.SpotCapacity, t.Name, live, isSpot)
		if spot && room(l.Capacity, t.Name, live, isAny) {
			return t, true
		}
	}
	return catalogue.Type{}, false
}

func isAny(lifecycle.Machine) bool    { return true }
func isSpot(m lifecycle.Machine) bool { return m.UsageClass == lifecycle.UsageSpot }

// room reports whether every limit that holds for the type leaves room for one
// more beside the live machines that count.
func room(capacity map[string]int, name string, live []lifecycle.Machine, counts func(lifecycle.Machine) bool) bool {
	for pattern, limit := range capacity {
		if !catalogue.Match(pattern, name) {
			continue
		}
		used := 0
		for _, m := range live {
			if counts(m) && catalogue.Match(pattern, m.InstanceType) {
				used++
			}
		}
		if used >= limit {
			return false
		}
	}
	return true
}

// emptiestZone is the zone with the fewest live machines, the first of equals.
func (l Limits) emptiestZone(live []lifecycle.Machine) string {
	used := map[string]int{}
	for _, m := range live {
		used[m.Zone]++
	}
	return slices.MinFunc(l.zones(), func(a, b string) int { return used[a] - used[b] })
}

// Sells reports whether there is a type, with or without free capacity, that has at least
// the vCPU and the memory and matches each of the lists of patterns. If there is none,
// there is no point in waiting for capacity.
func (l Limits) Sells(cpu, memoryMiB int, patterns ...[]string) bool {
	types, err := catalogue.Select(catalogue.Need{CPU: cpu, MemoryMiB: memoryMiB}, nil, l.arch(), patterns...)
	return err == nil && len(types) > 0
}

func (l Limits) nothingFits(o lifecycle.LaunchOrder) string {
	patterns := "*"
	if len(o.InstanceTypes) > 0 {
		patterns = strings.Join(o.InstanceTypes, ", ")
	}
	if len(o.PoolTypes) > 0 {
		patterns += fmt.Sprintf(" and, for pool %s, %s", o.Pool, strings.Join(o.PoolTypes, ", "))
	}
	return fmt.Sprintf("no %s type that matches %s has %d vCPU and %d MiB", l.arch(), patterns, o.CPU, o.MemoryMiB)
}

// namedTypes is how many types a sentence names before it only counts them.
const namedTypes = 4

func (l Limits) allFull(o lifecycle.LaunchOrder, types []catalogue.Type) string {
	var names []string
	for _, t := range types[:min(namedTypes, len(types))] {
		names = append(names, t.Name)
	}
	sentence := fmt.Sprintf("no %s capacity of %s", o.UsageClass, strings.Join(names, ", "))
	if more := len(types) - len(names); more > 0 {
		sentence += " and " + plural.Of(more, "more type", "more types")
	}
	return sentence + " in " + strings.Join(l.zones(), ", ")
}
