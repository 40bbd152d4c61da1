package process

import (
	"context"
	"fmt"
	"slices"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// Launched finds the machines that a launch made, gone ones too, by id. Those whose launch was cut short
// before they were started are started: who finds them all does not make the order again.
func (c *Compute) Launched(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	ids, err := c.ids()
	if err != nil {
		return nil, unavailable("find launched machines", err)
	}
	found := slices.DeleteFunc(c.look(ctx, ids), func(m lifecycle.Machine) bool {
		return !m.From(order)
	})
	if err := c.bootAll(ctx, found); err != nil {
		return nil, unavailable("find launched machines", err)
	}
	return found, nil
}

// Describe returns each machine asked for, in that order.
func (c *Compute) Describe(ctx context.Context, instanceIDs []string) ([]lifecycle.Machine, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("describe machines: %w", err)
	}
	return c.look(ctx, instanceIDs), nil
}

// List pages through the machines that are not gone, by id.
func (c *Compute) List(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
	ids, err := c.ids()
	if err != nil {
		return lifecycle.Page[lifecycle.Machine]{}, unavailable("list machines", err)
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return id <= page.After })
	rest := slices.DeleteFunc(c.look(ctx, ids), isGone)
	if len(rest) <= page.Size() {
		return lifecycle.Page[lifecycle.Machine]{Items: rest}, nil
	}
	items := rest[:page.Size()]
	return lifecycle.Page[lifecycle.Machine]{Items: items, Next: items[len(items)-1].InstanceID}, nil
}

func isGone(m lifecycle.Machine) bool { return m.State == lifecycle.MachineGone }

// look returns each machine in its present state, after it has ended completely those that are to end or have
// powered off. A machine that could not be ended completely is ending, and the next look tries again.
func (c *Compute) look(ctx context.Context, ids []string) []lifecycle.Machine {
	var machines []lifecycle.Machine
	var ending []string
	for _, id := range ids {
		m := c.machine(c.host(id))
		if m.State == lifecycle.MachineEnding {
			ending = append(ending, id)
		}
		machines = append(machines, m)
	}
	if len(ending) == 0 || c.opts.ReadOnly {
		return machines
	}
	if err := c.end(ctx, ending); err != nil {
		c.log.Warn("hosts could not be ended", logkey.Error, err)
	}
	for i, m := range machines {
		if m.State == lifecycle.MachineEnding {
			machines[i].State = c.state(c.host(m.InstanceID))
		}
	}
	return machines
}
