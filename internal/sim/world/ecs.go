package world

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// ServiceName is what that service is called.
const ServiceName = "render"

// ECS is a service of containers. Its number of tasks follows the desired count with a
// delay.
type ECS struct {
	Desired int
	Tasks   []*Task
	started int
	// old is what Describe may still show until sureAt.
	old    model.Tasks
	sureAt time.Time
}

// Task is one container with a worker in it, once it runs.
type Task struct {
	ID      string
	running bool
	Ended   bool
}

// ECSPort is ECS as a replica reaches it.
type ECSPort struct{ w *World }

func (p ECSPort) call(what string, do func()) error {
	w := p.w
	w.Calls++
	defer w.Fall(w.Current)
	w.Interrupt(what)
	if w.Now.Before(w.CloudAwayUntil) || w.Chance(engine.FaultECSRefused) {
		return unavailable(what, "throttled")
	}
	do()
	lost := w.Chance(engine.FaultECSLost)
	w.Interrupt(what)
	if lost {
		return unavailable(what, "no answer")
	}
	return nil
}

// Describe implements services.Scaler.
func (p ECSPort) Describe(_ context.Context, services []string) map[string]model.Observation {
	looks := map[string]model.Observation{}
	for _, name := range services {
		var look model.Observation
		look.Err = p.call("describe service", func() {
			look.Tasks = p.w.ECS.look()
			p.w.Sees(SeesDesired(look.Desired))
			if p.w.Now.Before(p.w.ECS.sureAt) && p.w.Chance(engine.FaultECSLag) {
				look.Running, look.Pending = p.w.ECS.old.Running, p.w.ECS.old.Pending
			}
		})
		looks[name] = look
	}
	return looks
}

// SetDesired implements services.Scaler.
func (p ECSPort) SetDesired(_ context.Context, service string, desired int) error {
	return p.call("set desired", func() {
		p.w.Tell(p.w.Who(), "sets desired", fmt.Sprintf("%s to %d", service, desired))
		p.w.emit(Scaling{desired})
		p.w.ECS.Desired = desired
		p.w.Reconcile()
	})
}

func (e *ECS) look() model.Tasks {
	t := model.Tasks{Desired: e.Desired}
	for _, task := range e.Tasks {
		if task.running {
			t.Running++
		} else {
			t.Pending++
		}
	}
	return t
}

// changes notes the state that Describe may still show.
func (w *World) ecsChanges() { w.ECS.old, w.ECS.sureAt = w.ECS.look(), w.Now.Add(describeLag) }

// Reconcile starts and ends tasks until there are as many as are desired.
func (w *World) Reconcile() {
	w.ecsChanges()
	for len(w.ECS.Tasks) > w.ECS.Desired {
		w.EndTask(w.ECS.Tasks[w.Rand.IntN(len(w.ECS.Tasks))], "scaled in")
	}
	for len(w.ECS.Tasks) < w.ECS.Desired {
		w.ECS.started++
		t := &Task{ID: fmt.Sprintf("task-%d", w.ECS.started)}
		w.ECS.Tasks = append(w.ECS.Tasks, t)
		slow := w.Between(20*time.Second, time.Minute)
		if w.Chance(engine.FaultTaskSlow) {
			slow = w.Between(time.Minute, 5*time.Minute)
		}
		w.After(slow, func() {
			if !t.Ended {
				w.ecsChanges()
				t.running = true
				w.OnTask(t)
			}
		})
	}
}

// EndTask ends a container, whatever runs in it.
func (w *World) EndTask(t *Task, why string) {
	w.Tell(t.ID, "ends", why)
	w.ecsChanges()
	t.Ended = true
	w.ECS.Tasks = slices.DeleteFunc(w.ECS.Tasks, func(o *Task) bool { return o == t })
}
