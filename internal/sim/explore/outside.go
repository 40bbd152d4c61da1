package explore

import (
	"context"
	"fmt"
	"slices"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/runnername"
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
	there.machines = append(there.machines, machine{Machine: m, token: order.Token})
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
			if slices.Contains(ids, m.InstanceID) && (m.State == lifecycle.MachineRunning || m.State == lifecycle.MachineStopped) {
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

func (c compute) ReplaceRoot(_ context.Context, id, token string) (lifecycle.RootTask, error) {
	return ask(c.p, "replace root volume", same, func() (lifecycle.RootTask, error) {
		there := c.p.cloud()
		i := hostOf(id)
		m := &there.machines[i]
		if m.root == token {
			return m.rootTask(), nil
		}
		if m.State != lifecycle.MachineRunning {
			return lifecycle.RootTask{}, fmt.Errorf("replace root volume of %s: %w: it does not run", id, lifecycle.ErrRefused)
		}
		c.p.checkReplacing(id)
		m.root = token
		c.p.put(agentCell+cell(i), agent{})
		c.p.put(cloudCell, there)
		return m.rootTask(), nil
	})
}

func (c compute) RootTasks(_ context.Context, ids []string) ([]lifecycle.RootTask, error) {
	return ask(c.p, "list replacements", slices.Clone, func() ([]lifecycle.RootTask, error) {
		var tasks []lifecycle.RootTask
		for _, m := range c.p.cloud().machines {
			if slices.Contains(ids, m.InstanceID) && m.root != "" {
				tasks = append(tasks, m.rootTask())
			}
		}
		return tasks, nil
	})
}

func (m machine) rootTask() lifecycle.RootTask {
	return lifecycle.RootTask{ID: m.root, InstanceID: m.InstanceID, State: lifecycle.RootReplaced}
}

func (c compute) Stop(_ context.Context, id string, _ bool) error {
	return c.power("stop", id, lifecycle.MachineRunning, lifecycle.MachineStopped)
}

func (c compute) Start(_ context.Context, id string) error {
	return c.power("start", id, lifecycle.MachineStopped, lifecycle.MachineRunning)
}

// power brings a machine from a state to another one.
func (c compute) power(what, id string, from, to lifecycle.MachineState) error {
	_, err := ask(c.p, what, same, func() (done, error) {
		there := c.p.cloud()
		m := &there.machines[hostOf(id)]
		if m.State == from {
			c.p.checkPower(id, to)
			m.State = to
			c.p.put(cloudCell, there)
		}
		return done{}, nil
	})
	return err
}

func (c compute) List(context.Context, lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
	panic("no due sweep lists machines")
}

// github gives tokens. It has registrations only where hosts register ahead of need: others are the simulator's. A
// runner that is registered can be found at once.
type github struct{ p *ports }

func (github) RegistrationToken(context.Context, string) (lifecycle.Registration, error) {
	return lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: "register"}, nil
}

func (github) RemoveToken(context.Context, string) (lifecycle.Registration, error) {
	return lifecycle.Registration{Kind: lifecycle.RegistrationRemove, Secret: "remove"}, nil
}

func (g github) FindRunner(_ context.Context, _, name string) (lifecycle.Runner, error) {
	notFound := fmt.Errorf("find runner %s: %w", name, lifecycle.ErrNotFound)
	if !g.p.x.bounds.Hot {
		return lifecycle.Runner{}, notFound
	}
	return ask(g.p, "find runner", same, func() (lifecycle.Runner, error) {
		host := hostOf(runnername.InstanceOf(name))
		of, _ := runnername.AssignmentOf(name)
		if _, ok := g.p.runner(host, of); !ok {
			return lifecycle.Runner{}, notFound
		}
		return lifecycle.Runner{ID: runnerID(host, of), Name: name, Online: true}, nil
	})
}

// runnerID is the id of the runner that a host has registered in an assignment, and registeredBy the other way around.
func runnerID(host int, assignment int64) int64 { return int64(host+1)*1000 + assignment }

func registeredBy(id int64) (host int, assignment int64) { return int(id/1000) - 1, id % 1000 }

// runner is the registration of a host's assignment; false: GitHub does not have it.
func (p *ports) runner(host int, assignment int64) (runner, bool) {
	h, _ := in[agent](p, agentCell+cell(host))
	known, _ := in[runner](p, runnerCell+cell(host))
	if known.of != assignment {
		known = runner{of: assignment}
	}
	return known, h.hasRegistered(assignment) && !known.gone
}

func (g github) DeleteRunner(_ context.Context, _ string, id int64) error {
	if !g.p.x.bounds.Hot {
		return nil
	}
	_, err := write(g.p, "delete runner", func() (done, error) {
		host, of := registeredBy(id)
		known, ok := g.p.runner(host, of)
		switch {
		case ok && g.p.agent(hostKey(host)).busy:
			return done{}, fmt.Errorf("delete runner %d: %w", id, lifecycle.ErrBusy)
		case ok:
			known.gone = true
			g.p.put(runnerCell+cell(host), known)
		}
		return done{}, nil
	})
	return err
}

func (g github) SetLabels(_ context.Context, _ string, id int64, labels []string) error {
	_, err := write(g.p, "set labels", func() (done, error) {
		host, of := registeredBy(id)
		known, ok := g.p.runner(host, of)
		if !ok {
			return done{}, fmt.Errorf("set the labels of runner %d: %w", id, lifecycle.ErrNotFound)
		}
		g.p.checkLabels(hostKey(host), of, labels[0])
		known.run = labels[0]
		g.p.put(runnerCell+cell(host), known)
		return done{}, nil
	})
	return err
}

func (github) Runners(context.Context, string, lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
	panic("no due sweep lists registrations")
}
