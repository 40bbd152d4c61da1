package world

import (
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// Machine is what the world knows of a machine beside what the cloud says.
type Machine struct {
	lifecycle.Machine // as it is now
	// before is what Describe may still say until sureAt.
	before lifecycle.MachineState
	sureAt time.Time
	GoneAt time.Time // when it ended
	// listedAt is from when every listing shows the machine.
	listedAt time.Time
	Host     *Host // once it has booted
	// RootAt is when it got the root volume that it has, and roots how many it had before.
	RootAt time.Time
	roots  int
	// Ordered is set when an operator terminated it.
	Ordered bool
	// Copied: another than the fleet launched it, and copied our tag.
	Copied bool
}

// unsure reports whether the cloud may still give old answers about the machine.
func (m *Machine) unsure(now time.Time) bool { return m != nil && now.Before(m.sureAt) }

// unlisted reports whether a listing may lack the machine, as EC2's may a new one.
func (m *Machine) unlisted(now time.Time) bool { return m != nil && now.Before(m.listedAt) }

// lagging is the machine as the cloud may still see it.
func (m *Machine) lagging(w *World, now lifecycle.Machine) lifecycle.Machine {
	if m.unsure(w.Now) && m.before != "" && w.Chance(engine.FaultDescribeLag) {
		now.State = m.before
	}
	return now
}

// setState notes a new state of the machine. For a while Describe may still show the old one.
func (w *World) setState(m *Machine, to lifecycle.MachineState) {
	if m.State == to {
		return
	}
	m.before, m.sureAt = m.State, w.Now.Add(describeLag)
	m.State = to
	w.Tell(m.InstanceID, "machine", string(to))
}

// launched takes up the machines of a launch: those that are new boot.
func (w *World) launched(order lifecycle.LaunchOrder, got []lifecycle.Machine) {
	w.emit(Launched{order, got})
	for _, m := range got {
		if w.Machines[m.InstanceID] == nil {
			w.appear(m)
		}
	}
	w.emit(LaunchBooked{})
}

// appear takes up a new machine, which boots, mostly.
func (w *World) appear(m lifecycle.Machine) {
	w.emit(Appearing{m})
	mm := &Machine{Machine: m, sureAt: w.Now.Add(describeLag), listedAt: w.Now.Add(listLag)}
	w.Machines[m.InstanceID] = mm
	w.machineIDs = append(w.machineIDs, m.InstanceID)
	if w.Chance(engine.FaultNoBoot) {
		return
	}
	boot := w.Between(20*time.Second, 40*time.Second)
	if w.Chance(engine.FaultSlowBoot) {
		boot = w.Between(time.Minute, 15*time.Minute)
	}
	w.After(boot, func() { w.boot(mm) })
}

// boot starts the machine's agent.
func (w *World) boot(m *Machine) {
	if m.State != lifecycle.MachinePending {
		return
	}
	w.Compute.Boot(m.InstanceID)
	w.setState(m, lifecycle.MachineRunning)
	switch {
	case m.Host == nil:
		w.newHost(m)
	case m.Host.asleep && !w.Chance(engine.FaultNoResume):
		m.Host.resume()
	default: // it was stopped
		m.Host.die()
		m.Host.bootAgain()
	}
}

// endMachine begins the end of a machine, as TerminateInstances does.
func (w *World) endMachine(id string) {
	m := w.Machines[id]
	if m == nil || m.State == lifecycle.MachineEnding || m.State == lifecycle.MachineGone {
		return
	}
	w.emit(Ending{m})
	engine.Must(w.Compute.Terminate(engine.Background, []string{id}))
	w.setState(m, lifecycle.MachineEnding)
	slow := w.Between(time.Second, 20*time.Second)
	if w.Chance(engine.FaultSlowEnd) {
		slow = w.Between(time.Minute, 6*time.Minute)
	}
	w.After(w.Between(0, 3*time.Second), func() { w.stopHost(m) })
	w.After(slow, func() { w.Gone(m) })
}

// stopMachine begins to stop a machine, as StopInstances does. One that is refused to be hibernated is stopped plainly, by the adapter, and so is one whose
// hibernation fails, by the cloud.
func (w *World) stopMachine(id string, hibernate bool) {
	m := w.Machines[id]
	if m == nil || m.State != lifecycle.MachineRunning && m.State != lifecycle.MachinePending {
		return
	}
	hibernate = hibernate && !w.Chance(engine.FaultNotHibernated)
	engine.Must(w.Compute.Stop(engine.Background, id, hibernate))
	w.setState(m, lifecycle.MachineStopping)
	w.After(w.Between(0, 5*time.Second), func() {
		switch {
		case m.State != lifecycle.MachineStopping:
		case hibernate && m.Host != nil && m.Host.canSleep():
			w.emit(Hibernating{m})
			m.Host.sleep()
		default:
			w.stopHost(m)
		}
	})
	w.After(w.Between(6*time.Second, 90*time.Second), func() {
		if m.State == lifecycle.MachineStopping && w.Compute.Halt(id) {
			w.setState(m, lifecycle.MachineStopped)
		}
	})
}

// startMachine begins to start a stopped machine, as StartInstances does. There may be no capacity for it.
func (w *World) startMachine(id string) error {
	m := w.Machines[id]
	if m != nil && m.State == lifecycle.MachineStopped && w.Chance(engine.FaultNoCapacity) {
		return &lifecycle.ShortageError{Ordered: 1, Reason: "InsufficientInstanceCapacity"}
	}
	if err := w.Compute.Start(engine.Background, id); err != nil || m.State != lifecycle.MachineStopped {
		return err
	}
	w.setState(m, lifecycle.MachinePending)
	w.After(w.Between(10*time.Second, 40*time.Second), func() { w.boot(m) })
	return nil
}

// Gone is the end of a machine, however it came.
func (w *World) Gone(m *Machine) {
	if m.State == lifecycle.MachineGone {
		return
	}
	w.stopHost(m)
	w.Compute.Kill(m.InstanceID)
	w.setState(m, lifecycle.MachineGone)
	m.GoneAt = w.Now
}

// stopHost ends all that runs on a machine.
func (w *World) stopHost(m *Machine) {
	if m.Host != nil {
		m.Host.die()
	}
}

// Living are the machines that are not gone, in the order of their launch. It
// forgets the others from time to time.
func (w *World) Living() []*Machine {
	live := make([]*Machine, 0, len(w.machineIDs))
	ids := w.machineIDs[:0]
	for _, id := range w.machineIDs {
		if m := w.Machines[id]; m.State != lifecycle.MachineGone {
			live = append(live, m)
			ids = append(ids, id)
		}
	}
	w.machineIDs = ids
	return live
}

// LeakedName is the prefix of the request ids of leaked machines: no such request exists.
const LeakedName = "stray-"

// Copy launches a machine that carries a copy of our tag, and is not ours.
func (w *World) Copy() {
	for _, m := range w.Leak() {
		w.Machines[m.InstanceID].Copied = true
	}
}

// Leak launches a machine that carries our tag and that no request knows.
func (w *World) Leak() []lifecycle.Machine {
	w.leaked++
	name := fmt.Sprintf("%s%d", LeakedName, w.leaked)
	got, err := w.Compute.Launch(engine.Background, lifecycle.LaunchOrder{
		Token: name, RequestID: name, Number: 1, Count: 1, Pool: "default", Repository: Repositories[0], RunID: name,
		ResourceClass: "small", CPU: 2, MemoryMiB: 4096, UsageClass: lifecycle.UsageOnDemand,
	})
	var short *lifecycle.ShortageError
	if err != nil && !errors.As(err, &short) {
		panic(err)
	}
	for _, m := range got {
		w.appear(m)
	}
	return got
}

// EndShortage ends a shortage of capacity.
func (w *World) EndShortage() { w.Compute.SetCapacity("*", 1<<20) }

// AnyHost picks a live host that matches, or returns nil.
func (w *World) AnyHost(matches func(*Host) bool) *Host {
	var hosts []*Host
	for _, m := range w.Living() {
		if m.Host != nil && m.Host.Alive && matches(m.Host) {
			hosts = append(hosts, m.Host)
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	return hosts[w.Rand.IntN(len(hosts))]
}

// EveryHost matches every host: see AnyHost.
func EveryHost(*Host) bool { return true }
