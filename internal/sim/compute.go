package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// computePort is the cloud as a replica reaches it.
type computePort struct{ w *world }

// machine is what the world knows of a machine beside what the cloud says.
type machine struct {
	lifecycle.Machine // as it is now
	// before is what Describe may still say until sureAt.
	before lifecycle.MachineState
	sureAt time.Time
	// listedAt is from when every listing shows the machine.
	listedAt time.Time
	host     *host // once it has booted
	// ordered is set when an operator terminated it.
	ordered bool
	// late is set when its request was long over when it was launched.
	late bool
}

// answerLost is what a trace says of a call that had its effect and whose answer did not
// reach the caller.
const answerLost = "answer lost"

// describeLag is how long the cloud's answers may trail behind.
const describeLag = 15 * time.Second

// listLag is how long a listing may lack a new machine. It is shorter than the time that
// internal/fleet waits before it believes that there is none.
const listLag = 45 * time.Second

func (c computePort) call(what string, changes bool, do func() error) error {
	w := c.w
	w.calls++
	w.interrupt(what)
	switch {
	case w.now.Before(w.cloudAwayUntil):
		return unavailable(what, "the cloud is away")
	case w.chance(FaultComputeRefused):
		return unavailable(what, "request limit exceeded")
	}
	err := do()
	lost := changes && w.chance(FaultComputeLost)
	w.interrupt(what)
	if lost {
		w.tell(w.who(), what, answerLost)
		return unavailable(what, "no answer")
	}
	return err
}

func (c computePort) Launch(_ context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	var got []lifecycle.Machine
	err := c.call("launch", true, func() (err error) {
		got, err = c.w.compute.Launch(background, order)
		c.w.script.launched(order, got)
		c.w.tell(c.w.who(), "launch", fmt.Sprintf("request %s number %d count %d: %d machines", order.RequestID, order.Number, order.Count, len(got)))
		c.w.launched(order, got)
		return err
	})
	var short *lifecycle.ShortageError
	if err != nil && !errors.As(err, &short) {
		return nil, err
	}
	return got, err
}

func (c computePort) Launched(_ context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	var got []lifecycle.Machine
	err := c.call("find launched machines", false, func() error {
		all, err := c.w.compute.Launched(background, order)
		for _, m := range all {
			if c.w.machines[m.InstanceID].unlisted(c.w.now) && c.w.chance(FaultTagLag) {
				continue
			}
			got = append(got, c.w.machines[m.InstanceID].lagging(c.w, m))
		}
		return err
	})
	c.w.script.called("EC2: find the machines of "+order.RequestID+"'s launch: "+launchedIDs(got), err)
	return got, err
}

func (c computePort) Describe(_ context.Context, instanceIDs []string) ([]lifecycle.Machine, error) {
	var got []lifecycle.Machine
	err := c.call("describe machines", false, func() (err error) {
		got, err = c.w.compute.Describe(background, instanceIDs)
		for i, m := range got {
			got[i] = c.w.machines[m.InstanceID].lagging(c.w, m)
		}
		return err
	})
	c.w.script.described(got, err)
	return got, err
}

func (c computePort) List(_ context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
	var got lifecycle.Page[lifecycle.Machine]
	err := c.call("list machines", false, func() error {
		all, err := c.w.compute.List(background, page)
		got.Next = all.Next
		for _, m := range all.Items {
			if c.w.machines[m.InstanceID].unlisted(c.w.now) && c.w.chance(FaultTagLag) {
				continue
			}
			got.Items = append(got.Items, m)
		}
		return err
	})
	c.w.script.called("EC2: list machines: "+launchedIDs(got.Items), err)
	return got, err
}

func (c computePort) Terminate(_ context.Context, instanceIDs []string) error {
	return c.call("terminate machines", true, func() error {
		for _, id := range instanceIDs {
			c.w.tell(c.w.who(), "terminate machine", id)
			c.w.script.called("EC2: terminate "+id, nil)
			c.w.checkFleetHeld(id)
			c.w.endMachine(id)
		}
		return nil
	})
}

// unsure reports whether the cloud may still give old answers about the machine.
func (m *machine) unsure(now time.Time) bool { return m != nil && now.Before(m.sureAt) }

// unlisted reports whether a listing may lack the machine, as EC2's may a new one.
func (m *machine) unlisted(now time.Time) bool { return m != nil && now.Before(m.listedAt) }

// lagging is the machine as the cloud may still see it.
func (m *machine) lagging(w *world, now lifecycle.Machine) lifecycle.Machine {
	if m.unsure(w.now) && m.before != "" && w.chance(FaultDescribeLag) {
		now.State = m.before
	}
	return now
}

// setState notes a new state of the machine. For a while Describe may still show the old one.
func (w *world) setState(m *machine, to lifecycle.MachineState) {
	if m.State == to {
		return
	}
	m.before, m.sureAt = m.State, w.now.Add(describeLag)
	m.State = to
	w.tell(m.InstanceID, "machine", string(to))
}

// launched takes up the machines of a launch: those that are new boot.
func (w *world) launched(order lifecycle.LaunchOrder, got []lifecycle.Machine) {
	w.checkLaunch(order, got)
	for _, m := range got {
		if w.machines[m.InstanceID] == nil {
			w.appear(m)
		}
	}
	w.checkLimits()
}

// appear takes up a new machine, which boots, mostly.
func (w *world) appear(m lifecycle.Machine) {
	mm := &machine{Machine: m, sureAt: w.now.Add(describeLag), listedAt: w.now.Add(listLag), late: w.lateLaunch(m)}
	w.machines[m.InstanceID] = mm
	w.machineIDs = append(w.machineIDs, m.InstanceID)
	if w.chance(FaultNoBoot) {
		return
	}
	boot := w.between(20*time.Second, 40*time.Second)
	if w.chance(FaultSlowBoot) {
		boot = w.between(time.Minute, 15*time.Minute)
	}
	w.after(boot, func() { w.boot(mm) })
}

// boot starts the machine's agent.
func (w *world) boot(m *machine) {
	if m.State != lifecycle.MachinePending {
		return
	}
	w.compute.Boot(m.InstanceID)
	w.setState(m, lifecycle.MachineRunning)
	w.newHost(m)
}

// endMachine begins the end of a machine, as TerminateInstances does.
func (w *world) endMachine(id string) {
	m := w.machines[id]
	if m == nil || m.State == lifecycle.MachineEnding || m.State == lifecycle.MachineGone {
		return
	}
	w.checkEnd(m)
	must(w.compute.Terminate(background, []string{id}))
	w.setState(m, lifecycle.MachineEnding)
	slow := w.between(time.Second, 20*time.Second)
	if w.chance(FaultSlowEnd) {
		slow = w.between(time.Minute, 6*time.Minute)
	}
	w.after(w.between(0, 3*time.Second), func() { w.stopHost(m) })
	w.after(slow, func() { w.gone(m) })
}

// gone is the end of a machine, however it came.
func (w *world) gone(m *machine) {
	if m.State == lifecycle.MachineGone {
		return
	}
	w.stopHost(m)
	w.compute.Kill(m.InstanceID)
	w.setState(m, lifecycle.MachineGone)
}

// stopHost ends all that runs on a machine.
func (w *world) stopHost(m *machine) {
	if m.host != nil {
		m.host.die()
	}
}

// living are the machines that are not gone, in the order of their launch. It
// forgets the others from time to time.
func (w *world) living() []*machine {
	live := make([]*machine, 0, len(w.machineIDs))
	ids := w.machineIDs[:0]
	for _, id := range w.machineIDs {
		if m := w.machines[id]; m.State != lifecycle.MachineGone {
			live = append(live, m)
			ids = append(ids, id)
		}
	}
	w.machineIDs = ids
	return live
}
