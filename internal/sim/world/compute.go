package world

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// ComputePort is the cloud as a replica reaches it.
type ComputePort struct{ w *World }

// AnswerLost is what a trace says of a call that had its effect and whose answer did not
// reach the caller.
const AnswerLost = "answer lost"

// describeLag is how long the cloud's answers may trail behind.
const describeLag = 15 * time.Second

// listLag is how long a listing may lack a new machine. It is shorter than the time that
// internal/fleet waits before it believes that there is none.
const listLag = 45 * time.Second

func (c ComputePort) call(what string, changes bool, do func() error) error {
	w := c.w
	w.Calls++
	w.Interrupt(what)
	switch {
	case w.Now.Before(w.CloudAwayUntil):
		return unavailable(what, "the cloud is away")
	case w.Chance(engine.FaultComputeRefused):
		return unavailable(what, "request limit exceeded")
	}
	err := do()
	lost := changes && w.Chance(engine.FaultComputeLost)
	w.Interrupt(what)
	if lost {
		w.Tell(w.Who(), what, AnswerLost)
		return unavailable(what, "no answer")
	}
	return err
}

// blind reports whether the cloud answers, and shows no machine. What a launch made is found by its token nevertheless: a cloud that does not even
// show that is left to the tests of internal/fleet.
func (c ComputePort) blind() bool { return c.w.Now.Before(c.w.CloudBlindUntil) }

func (c ComputePort) Launch(_ context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	var got []lifecycle.Machine
	err := c.call("launch", true, func() (err error) {
		got, err = c.w.Compute.Launch(engine.Background, order)
		c.w.Tell(c.w.Who(), "launch", fmt.Sprintf("request %s number %d count %d: %d machines", order.RequestID, order.Number, order.Count, len(got)))
		c.w.launched(order, got)
		return err
	})
	var short *lifecycle.ShortageError
	if err != nil && !errors.As(err, &short) {
		return nil, err
	}
	return got, err
}

func (c ComputePort) Launched(_ context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	var got []lifecycle.Machine
	err := c.call("find launched machines", false, func() error {
		all, err := c.w.Compute.Launched(engine.Background, order)
		for _, m := range all {
			if c.w.Machines[m.InstanceID].unlisted(c.w.Now) && c.w.Chance(engine.FaultTagLag) {
				continue
			}
			got = append(got, c.w.Machines[m.InstanceID].lagging(c.w, m))
		}
		return err
	})
	c.w.called("EC2: find the machines of "+order.RequestID+"'s launch: "+LaunchedIDs(got), err)
	return got, err
}

func (c ComputePort) Describe(_ context.Context, instanceIDs []string) ([]lifecycle.Machine, error) {
	var got []lifecycle.Machine
	err := c.call("describe machines", false, func() (err error) {
		got, err = c.w.Compute.Describe(engine.Background, instanceIDs)
		for i, m := range got {
			got[i] = c.w.Machines[m.InstanceID].lagging(c.w, m)
			if c.blind() {
				got[i] = lifecycle.Machine{InstanceID: m.InstanceID, State: lifecycle.MachineGone}
			}
		}
		return err
	})
	c.w.emit(Described{got, err})
	return got, err
}

func (c ComputePort) List(_ context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
	var got lifecycle.Page[lifecycle.Machine]
	err := c.call("list machines", false, func() error {
		c.w.Sees(SeesMachines)
		if c.blind() {
			return nil
		}
		all, err := c.w.Compute.List(engine.Background, page)
		got.Next = all.Next
		for _, m := range all.Items {
			if c.w.Machines[m.InstanceID].unlisted(c.w.Now) && c.w.Chance(engine.FaultTagLag) {
				continue
			}
			m.Foreign = c.w.Machines[m.InstanceID].Copied
			got.Items = append(got.Items, m)
		}
		return err
	})
	c.w.called("EC2: list machines: "+LaunchedIDs(got.Items), err)
	return got, err
}

func (c ComputePort) Stop(_ context.Context, instanceID string, hibernate bool) error {
	return c.call("stop machine", true, func() error {
		c.w.Tell(c.w.Who(), map[bool]string{false: "stop machine", true: "hibernate machine"}[hibernate], instanceID)
		c.w.emit(Stopping{instanceID, hibernate})
		c.w.stopMachine(instanceID, hibernate)
		return nil
	})
}

func (c ComputePort) Start(_ context.Context, instanceID string) error {
	var short *lifecycle.ShortageError
	err := c.call("start machine", true, func() error {
		c.w.Tell(c.w.Who(), "start machine", instanceID)
		err := c.w.startMachine(instanceID)
		errors.As(err, &short)
		return err
	})
	if short != nil && err == nil {
		return short
	}
	return err
}

func (c ComputePort) ReplaceRoot(_ context.Context, instanceID, token string) (task lifecycle.RootTask, err error) {
	var refused error
	err = c.call("replace root volume", true, func() error {
		c.w.Tell(c.w.Who(), "replace root volume", instanceID)
		c.w.emit(ReplacingRoot{instanceID})
		task, refused = c.w.replaceRoot(instanceID, token)
		return nil
	})
	if err == nil {
		err = refused
	}
	return task, err
}

func (c ComputePort) RootTasks(_ context.Context, instanceIDs []string) (tasks []lifecycle.RootTask, _ error) {
	err := c.call("list replacements", false, func() (err error) {
		tasks, err = c.w.Compute.RootTasks(engine.Background, instanceIDs)
		return err
	})
	return tasks, err
}

func (c ComputePort) Terminate(_ context.Context, instanceIDs []string) error {
	return c.call("terminate machines", true, func() error {
		for _, id := range instanceIDs {
			c.w.Tell(c.w.Who(), "terminate machine", id)
			c.w.emit(Terminating{id})
			c.w.endMachine(id)
		}
		return nil
	})
}
