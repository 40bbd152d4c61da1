package placement

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/lifecycle"
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
