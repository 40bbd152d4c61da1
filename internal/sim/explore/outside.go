package explore

import (
	"context"
	"fmt"
	"slices"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// queue is the queue of idle hosts.
type queue struct{ p *ports }

func (p *ports) mail() mail {
	q, _ := in[mail](p, queueCell)
	return q.copied()
}

func (q queue) Send(_ context.Context, messages ...lifecycle.Message) error {
	_, err := ask(q.p, "send", same, func() (done, error) {
		box := q.p.mail()
		for _, m := range messages {
			box.send(m)
		}
		q.p.put(queueCell, box)
		return done{}, nil
	})
	return err
}

func (q *mail) send(m lifecycle.Message) {
	q.last++
	q.messages = append(q.messages, message{Message: m, id: q.last})
}

func (q queue) Receive(_ context.Context, _ lifecycle.QueueName, limit int) ([]lifecycle.Delivery, error) {
	return ask(q.p, "receive", slices.Clone, func() ([]lifecycle.Delivery, error) {
		box := q.p.mail()
		var got []lifecycle.Delivery
		for i := range box.messages {
			if m := &box.messages[i]; !m.hidden && len(got) < limit {
				m.hidden, m.receives = true, m.receives+1
				got = append(got, lifecycle.Delivery{Message: m.Message, Handle: m.handle()})
			}
		}
		q.p.put(queueCell, box)
		return got, nil
	})
}

func (q queue) Delete(_ context.Context, _ lifecycle.QueueName, handles ...string) error {
	_, err := ask(q.p, "delete messages", same, func() (done, error) {
		box := q.p.mail()
		box.messages = slices.DeleteFunc(box.messages, func(m message) bool { return slices.Contains(handles, m.handle()) })
		q.p.put(queueCell, box)
		return done{}, nil
	})
	return err
}

func (q queue) Return(_ context.Context, _ lifecycle.QueueName, handles ...string) error {
	_, err := ask(q.p, "return messages", same, func() (done, error) {
		box := q.p.mail()
		for i := range box.messages {
			if slices.Contains(handles, box.messages[i].handle()) {
				box.messages[i].hidden = false
			}
		}
		q.p.put(queueCell, box)
		return done{}, nil
	})
	return err
}

// compute is the cloud. A machine is gone a unit after it was terminated.
type compute struct{ p *ports }

func (p *ports) cloud() cloud {
	c, _ := in[cloud](p, cloudCell)
	return cloud{slices.Clone(c.machines)}
}

func (c compute) Launch(_ context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	return ask(c.p, "launch", slices.Clone, func() ([]lifecycle.Machine, error) {
		there := c.p.cloud()
		c.p.checkLaunch(there, order)
		got := there.ofLaunch(order)
		b := c.p.x.bounds
		for len(got) < order.Count && len(there.machines) < b.Pooled+b.Capacity {
			got = append(got, c.p.launch(&there, order))
		}
		c.p.put(cloudCell, there)
		if len(got) < order.Count {
			return got, &lifecycle.ShortageError{Ordered: order.Count, Got: len(got), Reason: "no capacity"}
		}
		return got, nil
	})
}

// launch makes one machine.
func (p *ports) launch(there *cloud, order lifecycle.LaunchOrder) lifecycle.Machine {
	host := len(there.machines)
	key := hostKey(host)
	m := lifecycle.Machine{
		InstanceID: key, HostKey: key, State: lifecycle.MachineRunning,
		Hardware: lifecycle.Hardware{
			InstanceType: "c6i.large", CPU: 2, MemoryMiB: 4096, Zone: "a",
			UsageClass: lifecycle.UsageOnDemand, ResourceClass: className,
		},
		LaunchedAt: p.now(), Pool: order.Pool, Repository: repository,
		RunID: order.RunID, RequestID: order.RequestID, Launch: order.Number,
	}
	there.machines = append(there.machines, machine{m, order.Token})
	p.put(agentCell+cell(host), agent{})
	return m
}

func (c cloud) ofLaunch(order lifecycle.LaunchOrder) []lifecycle.Machine {
	var got []lifecycle.Machine
	for _, m := range c.machines {
		if m.From(order) {
			got = append(got, m.Machine)
		}
	}
	return got
}

// of is the machine of the host.
func (c cloud) of(key string) machine {
	return c.machines[slices.IndexFunc(c.machines, func(m machine) bool { return m.HostKey == key })]
}

func (c compute) Launched(_ context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	return ask(c.p, "find launched", slices.Clone, func() ([]lifecycle.Machine, error) {
		return c.p.cloud().ofLaunch(order), nil
	})
}

func (c compute) Describe(_ context.Context, ids []string) ([]lifecycle.Machine, error) {
	return ask(c.p, "describe", slices.Clone, func() ([]lifecycle.Machine, error) {
		var got []lifecycle.Machine
		for _, m := range c.p.cloud().machines {
			if slices.Contains(ids, m.InstanceID) {
				got = append(got, m.Machine)
			}
		}
		return got, nil
	})
}

func (c compute) Terminate(_ context.Context, ids []string) error {
	_, err := ask(c.p, "terminate", same, func() (done, error) {
		there := c.p.cloud()
		for i, m := range there.machines {
			if slices.Contains(ids, m.InstanceID) && m.State == lifecycle.MachineRunning {
				c.p.checkEnd(m.HostKey)
				there.machines[i].State = lifecycle.MachineEnding
				c.p.put(agentCell+cell(i), agent{})
			}
		}
		c.p.put(cloudCell, there)
		return done{}, nil
	})
	return err
}

func (c compute) List(context.Context, lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
	panic("no due sweep lists machines")
}

// github gives tokens and has no registrations: they are the simulator's.
type github struct{}

func (github) RegistrationToken(context.Context, string) (lifecycle.Registration, error) {
	return lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: "register"}, nil
}

func (github) RemoveToken(context.Context, string) (lifecycle.Registration, error) {
	return lifecycle.Registration{Kind: lifecycle.RegistrationRemove, Secret: "remove"}, nil
}

func (github) FindRunner(_ context.Context, _, name string) (lifecycle.Runner, error) {
	return lifecycle.Runner{}, fmt.Errorf("find runner %s: %w", name, lifecycle.ErrNotFound)
}

func (github) DeleteRunner(context.Context, string, int64) error { return nil }

func (github) SetLabels(context.Context, string, int64, []string) error {
	panic("no pool of this model has hosts that listen before a claim")
}

func (github) Runners(context.Context, string, lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
	panic("no due sweep lists registrations")
}
