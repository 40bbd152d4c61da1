// Package memory is a cloud that exists only in memory, for tests and for the simulator. It is deterministic:
// nothing happens in it unless the caller makes it happen.
package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Options of a cloud in memory.
type Options struct {
	placement.Limits
	// Now is the cloud's clock; nil: time.Now.
	Now func() time.Time
	// SlowEnd leaves a terminated machine ending until Kill, as EC2 does for
	// some minutes. Otherwise it is gone at once.
	SlowEnd bool
}

// Compute is the cloud. It is safe for concurrent use.
type Compute struct {
	mu       sync.Mutex
	opts     Options
	plans    map[string]placement.Plan    // by token
	machines map[string]lifecycle.Machine // by id; ended ones stay, gone
	// startShort: no stopped machine can be started.
	startShort bool
	// hibernates: machines are launched so that they can be hibernated, and asleep are those that are.
	hibernates bool
	asleep     map[string]bool
	// roots are the replacements of root volumes, in their order, and rootRefused is why none begins; empty: one does.
	roots       []lifecycle.RootTask
	rootRefused string
}

// New returns an empty cloud.
func New(o Options) (*Compute, error) {
	if err := o.Check(); err != nil {
		return nil, fmt.Errorf("open compute: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Compute{opts: o, plans: map[string]placement.Plan{}, machines: map[string]lifecycle.Machine{}, asleep: map[string]bool{}}, nil
}

// Clone returns a copy of the cloud as it is now, which shares only the clock.
func (c *Compute) Clone() *Compute {
	c.mu.Lock()
	defer c.mu.Unlock()
	opts := c.opts
	opts.Capacity, opts.SpotCapacity = maps.Clone(opts.Capacity), maps.Clone(opts.SpotCapacity)
	return &Compute{
		opts: opts, plans: maps.Clone(c.plans), machines: maps.Clone(c.machines), startShort: c.startShort, hibernates: c.hibernates, asleep: maps.Clone(c.asleep),
		roots: slices.Clone(c.roots), rootRefused: c.rootRefused,
	}
}

// SetCapacity changes what the cloud has to give from now on.
func (c *Compute) SetCapacity(pattern string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	capacity := map[string]int{pattern: n}
	for p, limit := range c.opts.Capacity {
		if p != pattern {
			capacity[p] = limit
		}
	}
	c.opts.Capacity = capacity
}

// Boot makes a pending machine run. It reports whether there was one.
func (c *Compute) Boot(id string) bool {
	return c.change(id, func(m *lifecycle.Machine) bool {
		pending := m.State == lifecycle.MachinePending
		if pending {
			m.State = lifecycle.MachineRunning
		}
		return pending
	})
}

// Kill makes a machine gone, as when it powers off, is taken back or has ended.
// It reports whether there was one.
func (c *Compute) Kill(id string) bool {
	return c.change(id, func(m *lifecycle.Machine) bool {
		lived := m.State != lifecycle.MachineGone
		if m.State = lifecycle.MachineGone; m.EndedAt.IsZero() {
			m.EndedAt = c.opts.Now()
		}
		return lived
	})
}

// Impair sets whether the cloud's own health checks fail for a machine. It reports whether there is one.
func (c *Compute) Impair(id string, impaired bool) bool {
	return c.change(id, func(m *lifecycle.Machine) bool {
		m.Impaired = impaired
		return m.State != lifecycle.MachineGone
	})
}

// SetBypass sets whether the machine has the tag with which an operator keeps
// scale-down from it. It reports whether there is one.
func (c *Compute) SetBypass(id string, bypass bool) bool {
	return c.change(id, func(m *lifecycle.Machine) bool {
		m.Bypass = bypass
		return m.State != lifecycle.MachineGone
	})
}

func (c *Compute) change(id string, f func(*lifecycle.Machine) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.machines[id]
	if !ok {
		return false
	}
	done := f(&m)
	c.machines[id] = m
	return done
}

// Launch starts the machines of an order; they are pending until Boot.
func (c *Compute) Launch(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("launch order: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	plan, planned := c.plans[order.Token]
	if !planned {
		var err error
		if plan, err = c.opts.Place(order, c.live(), "", c.opts.Now()); err != nil {
			return nil, err
		}
		plan.Order.InstanceTypes = slices.Clone(order.InstanceTypes)
		c.plans[order.Token] = plan
		for _, m := range plan.Machines {
			m.Hibernates = c.hibernates
			c.machines[m.InstanceID] = m
		}
	}
	if err := plan.Repeats(order); err != nil {
		return nil, err
	}
	var launched []lifecycle.Machine
	for _, m := range plan.Machines {
		launched = append(launched, c.machines[m.InstanceID])
	}
	return launched, plan.Shortage()
}

// Launched finds the machines that a launch made, gone ones too, by id.
func (c *Compute) Launched(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("find launched machines: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.where(func(m lifecycle.Machine) bool { return m.From(order) }), nil
}

// Describe returns each machine asked for, in that order.
func (c *Compute) Describe(ctx context.Context, instanceIDs []string) ([]lifecycle.Machine, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("describe machines: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var described []lifecycle.Machine
	for _, id := range instanceIDs {
		m, known := c.machines[id]
		if !known {
			m = lifecycle.Machine{InstanceID: id, State: lifecycle.MachineGone}
		}
		described = append(described, m)
	}
	return described, nil
}

// List pages through the machines that are not gone, by id.
func (c *Compute) List(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
	if err := ctx.Err(); err != nil {
		return lifecycle.Page[lifecycle.Machine]{}, fmt.Errorf("list machines: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := c.where(func(m lifecycle.Machine) bool { return m.State != lifecycle.MachineGone && m.InstanceID > page.After })
	if len(rest) <= page.Size() {
		return lifecycle.Page[lifecycle.Machine]{Items: rest}, nil
	}
	items := rest[:page.Size()]
	return lifecycle.Page[lifecycle.Machine]{Items: items, Next: items[len(items)-1].InstanceID}, nil
}

// SetStartShort sets whether there is no capacity to start a stopped machine.
func (c *Compute) SetStartShort(short bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.startShort = short
}

// SetHibernates sets whether machines that are launched from now on can be hibernated.
func (c *Compute) SetHibernates(hibernates bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hibernates = hibernates
}

// Hibernated reports whether a machine was hibernated and not started since.
func (c *Compute) Hibernated(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asleep[id]
}

// Halt makes a stopping machine stopped. It reports whether there was one.
func (c *Compute) Halt(id string) bool {
	return c.change(id, func(m *lifecycle.Machine) bool {
		stopping := m.State == lifecycle.MachineStopping
		if stopping {
			m.State = lifecycle.MachineStopped
		}
		return stopping
	})
}

// Stop begins to stop a machine. With SlowEnd it is stopping until Halt.
func (c *Compute) Stop(ctx context.Context, instanceID string, hibernate bool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stop machine %s: %w", instanceID, err)
	}
	c.change(instanceID, func(m *lifecycle.Machine) bool {
		if m.State != lifecycle.MachineRunning && m.State != lifecycle.MachinePending {
			return false
		}
		m.State = lifecycle.MachineStopped
		c.asleep[instanceID] = hibernate && m.Hibernates
		if c.opts.SlowEnd {
			m.State = lifecycle.MachineStopping
		}
		return true
	})
	return nil
}

// Start begins to start a stopped machine, which is pending until Boot.
func (c *Compute) Start(ctx context.Context, instanceID string) (err error) {
	what := "start machine " + instanceID
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	known := c.change(instanceID, func(m *lifecycle.Machine) bool {
		switch m.State {
		case lifecycle.MachineStopped:
			if c.startShort {
				err = &lifecycle.ShortageError{Ordered: 1, Reason: "no capacity to start " + instanceID}
				return true
			}
			m.State = lifecycle.MachinePending
			delete(c.asleep, instanceID)
		case lifecycle.MachineStopping:
			err = &lifecycle.UnavailableError{What: what, Err: errors.New("it is still stopping")}
		case lifecycle.MachineEnding, lifecycle.MachineGone:
			return false
		}
		return true
	})
	if !known {
		return fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound)
	}
	return err
}

// Terminate ends machines; unknown and gone ones are no error.
func (c *Compute) Terminate(ctx context.Context, instanceIDs []string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("terminate machines: %w", err)
	}
	for _, id := range instanceIDs {
		c.change(id, func(m *lifecycle.Machine) bool {
			if m.EndedAt.IsZero() {
				m.EndedAt = c.opts.Now()
			}
			if c.opts.SlowEnd && m.State != lifecycle.MachineGone {
				m.State = lifecycle.MachineEnding
			} else {
				m.State = lifecycle.MachineGone
			}
			return true
		})
	}
	return nil
}

func (c *Compute) live() []lifecycle.Machine {
	return c.where(func(m lifecycle.Machine) bool { return m.State != lifecycle.MachineGone })
}

// where returns the machines that pass, by id.
func (c *Compute) where(passes func(lifecycle.Machine) bool) []lifecycle.Machine {
	var found []lifecycle.Machine
	for _, m := range c.machines {
		if passes(m) {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b lifecycle.Machine) int { return cmp.Compare(a.InstanceID, b.InstanceID) })
	return found
}
