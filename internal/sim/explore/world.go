package explore

import (
	"context"
	"fmt"
	"slices"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// send puts a message into the queue.
func (s *state) send(m lifecycle.Message) {
	s.lastID++
	s.messages = append(s.messages, message{Message: m, id: s.lastID})
}

// launch makes one machine.
func (s *state) launch(order lifecycle.LaunchOrder, as lifecycle.MachineState) lifecycle.Machine {
	key := hostKey(len(s.machines))
	m := lifecycle.Machine{
		InstanceID: key, HostKey: key, State: as, InstanceType: "c6i.large", CPU: 2, MemoryMiB: 4096, Zone: "a",
		UsageClass: lifecycle.UsageOnDemand, LaunchedAt: s.now, Pool: order.Pool, Repository: repository,
		RunID: order.RunID, RequestID: order.RequestID, Launch: order.Number, ResourceClass: className,
	}
	s.machines = append(s.machines, machine{m, order.Token})
	s.hosts = append(s.hosts, host{key: key})
	return m
}

// queue is the queue of idle hosts.
type queue struct{ p *ports }

func (q queue) Send(_ context.Context, messages ...lifecycle.Message) error {
	_, err := ask(q.p, "send", same, func(s *state) (bool, error) {
		for _, m := range messages {
			s.mutable().send(m)
		}
		return true, nil
	})
	return err
}

func (q queue) Receive(_ context.Context, _ lifecycle.QueueName, limit int) ([]lifecycle.Delivery, error) {
	return ask(q.p, "receive", slices.Clone, func(s *state) ([]lifecycle.Delivery, error) {
		s.mutable()
		var got []lifecycle.Delivery
		for i := range s.messages {
			if m := &s.messages[i]; !m.hidden && len(got) < limit {
				m.hidden, m.receives = true, m.receives+1
				got = append(got, lifecycle.Delivery{Message: m.Message, Handle: m.handle()})
			}
		}
		return got, nil
	})
}

func (q queue) Delete(_ context.Context, _ lifecycle.QueueName, handles ...string) error {
	_, err := ask(q.p, "delete messages", same, func(s *state) (bool, error) {
		s.mutable()
		s.messages = slices.DeleteFunc(s.messages, func(m message) bool { return slices.Contains(handles, m.handle()) })
		return true, nil
	})
	return err
}

func (q queue) Return(_ context.Context, _ lifecycle.QueueName, handles ...string) error {
	_, err := ask(q.p, "return messages", same, func(s *state) (bool, error) {
		s.mutable()
		for i := range s.messages {
			if slices.Contains(handles, s.messages[i].handle()) {
				s.messages[i].hidden = false
			}
		}
		return true, nil
	})
	return err
}

// compute is the cloud. A machine that is told to end has ended after a unit.
type compute struct{ p *ports }

func (c compute) Launch(_ context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	return ask(c.p, "launch", slices.Clone, func(s *state) ([]lifecycle.Machine, error) {
		s.mutable().checkLaunch(order)
		got := s.ofLaunch(order.RequestID, order.Number)
		for len(got) < order.Count && s.launched < s.x.bounds.Capacity {
			s.launched++
			got = append(got, s.launch(order, lifecycle.MachineRunning))
		}
		if len(got) < order.Count {
			return got, &lifecycle.ShortageError{Ordered: order.Count, Got: len(got), Why: "no capacity"}
		}
		return got, nil
	})
}

func (s *state) ofLaunch(requestID string, number int) []lifecycle.Machine {
	var got []lifecycle.Machine
	for _, m := range s.machines {
		if m.RequestID == requestID && m.Launch == number {
			got = append(got, m.Machine)
		}
	}
	return got
}

func (c compute) Launched(_ context.Context, requestID string, number int) ([]lifecycle.Machine, error) {
	return ask(c.p, "find launched", slices.Clone, func(s *state) ([]lifecycle.Machine, error) { return s.ofLaunch(requestID, number), nil })
}

func (c compute) Describe(_ context.Context, ids []string) ([]lifecycle.Machine, error) {
	return ask(c.p, "describe", slices.Clone, func(s *state) ([]lifecycle.Machine, error) {
		var got []lifecycle.Machine
		for _, m := range s.machines {
			if slices.Contains(ids, m.InstanceID) {
				got = append(got, m.Machine)
			}
		}
		return got, nil
	})
}

func (c compute) Terminate(_ context.Context, ids []string) error {
	_, err := ask(c.p, "terminate", same, func(s *state) (bool, error) {
		for i, m := range s.mutable().machines {
			if slices.Contains(ids, m.InstanceID) && m.State == lifecycle.MachineRunning {
				s.checkEnd(m.HostKey)
				s.machines[i].State = lifecycle.MachineEnding
				s.hosts[i] = host{key: m.HostKey}
			}
		}
		return true, nil
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

func (github) Runners(context.Context, string, lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
	panic("no due sweep lists registrations")
}
