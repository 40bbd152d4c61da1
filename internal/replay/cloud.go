package replay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

// zone is where all machines are.
const zone = "a"

// cloud has machines of every type without limit. It gives the cheapest type that fits.
type cloud struct {
	now    func() time.Time
	prices price.List
	archs  []string
	// machines are those that live, and that ended a short while ago.
	machines map[string]lifecycle.Machine
	// cheapest are the types that orders of a kind get.
	cheapest map[string]catalogue.Type
	// ran is called when a machine begins to run or ends, with the change of how many do; started with one that was stopped.
	ran     func(change int)
	started func(id string)
	stopped func(id string)

	launched int
	// unpriced are the types that were launched and have no price.
	unpriced map[string]bool
	prunedAt time.Time
}

func newCloud(p Policy, now func() time.Time) *cloud {
	return &cloud{
		now: now, prices: p.Prices, archs: p.Archs, machines: map[string]lifecycle.Machine{}, cheapest: map[string]catalogue.Type{}, unpriced: map[string]bool{},
	}
}

// Launch starts machines.
func (c *cloud) Launch(ctx context.Context, o lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	c.prune()
	if made, _ := c.Launched(ctx, o); len(made) > 0 {
		return made, nil
	}
	t, err := c.typeFor(o)
	if err != nil {
		return nil, err
	}
	made := make([]lifecycle.Machine, 0, o.Count)
	for i := range o.Count {
		id := placement.InstanceID("replay", o.Token, i)
		m := lifecycle.Machine{
			InstanceID: id, HostKey: id, State: lifecycle.MachinePending,
			Hardware: lifecycle.Hardware{
				InstanceType: t.Name, CPU: t.CPU, MemoryMiB: t.MemoryMiB, Arch: t.Arch, Zone: zone, UsageClass: o.UsageClass, ResourceClass: o.ResourceClass,
			},
			LaunchedAt: c.now(), Pool: o.Pool, Repository: o.Repository, RunID: o.RunID, RequestID: o.RequestID, Launch: o.Number, TemplateVersion: o.TemplateVersion,
		}
		c.machines[id], made = m, append(made, m)
	}
	c.launched += o.Count
	c.ran(o.Count)
	return made, nil
}

// typeFor is the cheapest type that an order allows. Types without a price come last.
func (c *cloud) typeFor(o lifecycle.LaunchOrder) (catalogue.Type, error) {
	key := fmt.Sprint(o.CPU, o.MemoryMiB, o.UsageClass, o.InstanceTypes, o.PoolTypes)
	if t, ok := c.cheapest[key]; ok {
		return t, nil
	}
	types, err := catalogue.Select(catalogue.Need{CPU: o.CPU, MemoryMiB: o.MemoryMiB}, o.InstanceTypes, "", o.PoolTypes)
	if err != nil {
		return catalogue.Type{}, fmt.Errorf("launch: %w", err)
	}
	if len(c.archs) > 0 {
		types = slices.DeleteFunc(types, func(t catalogue.Type) bool { return !slices.Contains(c.archs, t.Arch) })
	}
	if len(types) == 0 {
		return catalogue.Type{}, &lifecycle.ShortageError{Ordered: o.Count, Reason: "no instance type fits"}
	}
	of := func(t catalogue.Type) float64 {
		if dollars, _, ok := c.prices.Of(t.Name, string(o.UsageClass)); ok {
			return dollars
		}
		return math.Inf(1)
	}
	t := slices.MinFunc(types, func(a, b catalogue.Type) int { return cmp.Compare(of(a), of(b)) })
	if math.IsInf(of(t), 1) {
		c.unpriced[t.Name] = true
	}
	c.cheapest[key] = t
	return t, nil
}

// keepEnded is how long an ended machine can be described.
const keepEnded = time.Hour

// prune forgets machines that ended long ago, now and then.
func (c *cloud) prune() {
	now := c.now()
	if now.Sub(c.prunedAt) < keepEnded {
		return
	}
	c.prunedAt = now
	maps.DeleteFunc(c.machines, func(_ string, m lifecycle.Machine) bool {
		return !m.EndedAt.IsZero() && now.Sub(m.EndedAt) >= keepEnded
	})
}

// Launched finds the machines of a launch.
func (c *cloud) Launched(_ context.Context, o lifecycle.LaunchOrder) (made []lifecycle.Machine, _ error) {
	for i := range o.Count {
		if m, ok := c.machines[placement.InstanceID("replay", o.Token, i)]; ok {
			made = append(made, m)
		}
	}
	return made, nil
}

// Describe reads machines.
func (c *cloud) Describe(_ context.Context, ids []string) ([]lifecycle.Machine, error) {
	all := make([]lifecycle.Machine, 0, len(ids))
	for _, id := range ids {
		m, ok := c.machines[id]
		if !ok {
			m = lifecycle.Machine{InstanceID: id, State: lifecycle.MachineGone}
		}
		all = append(all, m)
	}
	return all, nil
}

// List lists the machines that live, by id, on one page.
func (c *cloud) List(context.Context, lifecycle.PageOf) (page lifecycle.Page[lifecycle.Machine], _ error) {
	for _, id := range slices.Sorted(maps.Keys(c.machines)) {
		if m := c.machines[id]; m.State != lifecycle.MachineGone {
			page.Items = append(page.Items, m)
		}
	}
	return page, nil
}

// RootTasks lists none: no root volume is replaced here.
func (c *cloud) RootTasks(context.Context, []string) ([]lifecycle.RootTask, error) { return nil, nil }

// ReplaceRoot is never asked for here.
func (c *cloud) ReplaceRoot(context.Context, string, string) (lifecycle.RootTask, error) {
	return lifecycle.RootTask{}, lifecycle.ErrRefused
}

// Stop stops a machine, at once. It hibernates none: that is a start of the same length here.
func (c *cloud) Stop(_ context.Context, id string, _ bool) error {
	if m := c.machines[id]; m.State == lifecycle.MachinePending || m.State == lifecycle.MachineRunning {
		m.State = lifecycle.MachineStopped
		c.machines[id] = m
		c.ran(-1)
		c.stopped(id)
	}
	return nil
}

// Start starts a stopped machine.
func (c *cloud) Start(_ context.Context, id string) error {
	if m := c.machines[id]; m.State == lifecycle.MachineStopped {
		m.State = lifecycle.MachinePending
		c.machines[id] = m
		c.ran(1)
		c.started(id)
	}
	return nil
}

// Terminate ends machines, at once.
func (c *cloud) Terminate(_ context.Context, ids []string) error {
	for _, id := range ids {
		m, ok := c.machines[id]
		if !ok || m.State == lifecycle.MachineGone {
			continue
		}
		if m.State != lifecycle.MachineStopped {
			c.ran(-1)
		}
		m.State, m.EndedAt = lifecycle.MachineGone, c.now()
		c.machines[id] = m
	}
	return nil
}

// boot has a machine run.
func (c *cloud) boot(id string) {
	if m := c.machines[id]; m.State == lifecycle.MachinePending {
		m.State = lifecycle.MachineRunning
		c.machines[id] = m
	}
}
