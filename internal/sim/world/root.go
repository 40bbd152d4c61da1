package world

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// replaceRoot begins to replace the root volume of a machine, as CreateReplaceRootVolumeTask does. In the end the machine has the new volume and boots with it,
// or has the old one and boots with that, or has none.
func (w *World) replaceRoot(id, token string) (lifecycle.RootTask, error) {
	m := w.Machines[id]
	if m != nil && w.Chance(engine.FaultRootRefused) {
		w.Compute.RefuseRoot("UnsupportedOperation")
		defer w.Compute.RefuseRoot("")
	}
	before := engine.Must1(w.Compute.RootTasks(engine.Background, []string{id}))
	task, err := w.Compute.ReplaceRoot(engine.Background, id, token)
	if err != nil || len(engine.Must1(w.Compute.RootTasks(engine.Background, []string{id}))) == len(before) {
		return task, err
	}
	takes := w.Between(5*time.Second, 2*time.Minute)
	if w.Chance(engine.FaultRootSlow) {
		takes = w.Between(2*time.Minute, 20*time.Minute)
	}
	fails := w.Chance(engine.FaultRootFails)
	w.After(takes, func() { w.endRoot(m, task.ID, fails) })
	return task, nil
}

// endRoot ends a replacement. The machine goes down for it, and is not seen to do so by what the cloud says of its state.
func (w *World) endRoot(m *Machine, task string, fails bool) {
	if m.State != lifecycle.MachineRunning {
		w.Compute.EndRoot(task, lifecycle.RootFailed)
		return
	}
	w.stopHost(m)
	w.Tell(m.InstanceID, "root volume", map[bool]string{true: "is not replaced", false: "is replaced"}[fails])
	if !fails {
		m.roots++
		m.RootAt = w.Now
		w.emit(StateLost{HostKey: m.HostKey})
	}
	w.After(w.Between(0, 20*time.Second), func() {
		to := lifecycle.RootReplaced
		if fails {
			to = lifecycle.RootFailed
		}
		w.Compute.EndRoot(task, to)
	})
	boots := !fails || w.Rand.IntN(2) == 0
	w.After(w.Between(5*time.Second, 30*time.Second), func() {
		switch {
		case !boots || m.State != lifecycle.MachineRunning:
		case fails:
			m.Host.bootAgain()
		default:
			w.newHost(m)
		}
	})
}
