package sim

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

// serviceLives: every third life has a service of runners in containers, with a
// queue of its own.
const serviceLives = 3

// serviceName is what that service is called.
const serviceName = "render"

func (w *world) serving() bool { return w.cfg.Seed%serviceLives == 1 }

// servicePolicy goes to zero sooner than a real one would, so that lives see it.
var servicePolicy = policy.ServicePolicy{Maximum: 3, BacklogPerRunner: 2, IdleChecks: 2}

// serviceOptions are those of this life's service; nil: it has none.
func (w *world) serviceOptions() *services.Options {
	if !w.serving() {
		return nil
	}
	return &services.Options{Store: w.store(), Scaler: ecsPort{w}, Services: map[string]services.Service{serviceName: {
		Name: serviceName, Region: "here", Cluster: "containers", ECSService: serviceName, Policy: servicePolicy,
		Backlog: workqueue.Backlog{Store: w.store(), AtMost: 100},
	}}}
}

// workerOptions are those of the service's queue.
func (w *world) workerOptions(r *replica) *workqueue.Options {
	if !w.serving() {
		return nil
	}
	return &workqueue.Options{
		Store: w.store(), Services: map[string]model.JobPolicy{serviceName: {QueueTime: 24 * time.Hour, Requeue: w.cfg.Seed%2 == 0}},
		Queued: func(string) {
			proc := r.proc
			w.after(w.between(time.Millisecond, time.Second), func() {
				if proc.alive {
					r.lookAtServices("nudge", func() time.Time { return time.Time{} })
				}
			})
		},
	}
}

// sweepServices makes a replica check the service from time to time, as the replica with the
// lease of the sweeps does. Several at once must do no harm.
func (r *replica) sweepServices() {
	if r.w.serving() {
		r.lookAtServices("services", func() time.Time { return r.w.now.Add(r.w.between(50*time.Second, 70*time.Second)) })
	}
}

// lookAtServices drives checks of the service, each to its end. again says when the next one
// begins; the zero time ends the series.
func (r *replica) lookAtServices(name string, again func() time.Time) {
	w := r.w
	var op *services.Sweep
	a := &actor{name: r.name + " " + name, proc: r.proc, beside: true}
	a.step = func() (time.Time, bool) {
		if op == nil {
			op = r.fleet.NewServiceSweep()
		}
		p, err := w.makeStep(a, op, r.clock())
		w.checkError(name, err)
		switch {
		case err != nil:
			return w.now.Add(w.between(time.Second, 5*time.Second)), false
		case !p.Done:
			return w.now.Add(w.latency()), false
		}
		op = nil
		next := again()
		return next, next.IsZero()
	}
	w.spawn(a)
}

// makeStep makes a step of an operation. One that is beside asks some of its
// questions on goroutines of its own, and waits for each of them, so that still only
// one runs at a time; but a panic there, by which a crash or a broken rule ends a
// step, must come out here.
func (w *world) makeStep(a *actor, op fleet.Op, now time.Time) (p fleet.Progress, err error) {
	if !a.beside {
		return op.Step(background, now)
	}
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	a.cancel, a.fell = cancel, nil
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer w.fall(a)
		p, err = op.Step(ctx, now)
	}()
	<-over
	if a.fell != nil {
		panic(a.fell)
	}
	return p, err
}

// fall is deferred where an actor with goroutines of its own may panic: it ends
// the goroutine and has the step end.
func (w *world) fall(a *actor) {
	if a == nil || !a.beside {
		return
	}
	if r := recover(); r != nil {
		a.fell = r
		a.cancel()
		runtime.Goexit()
	}
}

// ecs is a service of containers. Its number of tasks follows the desired count with a
// delay.
type ecs struct {
	desired int
	tasks   []*task
	started int
	// old is what Describe may still show until sureAt.
	old    model.Tasks
	sureAt time.Time
}

// task is one container with a worker in it, once it runs.
type task struct {
	id      string
	running bool
	ended   bool
}

// ecsPort is ECS as a replica reaches it.
type ecsPort struct{ w *world }

func (p ecsPort) call(what string, do func()) error {
	w := p.w
	w.calls++
	defer w.fall(w.current)
	w.interrupt(what)
	if w.now.Before(w.cloudAwayUntil) || w.chance(FaultECSRefused) {
		return unavailable(what, "throttled")
	}
	do()
	lost := w.chance(FaultECSLost)
	w.interrupt(what)
	if lost {
		return unavailable(what, "no answer")
	}
	return nil
}

// Describe implements services.Scaler.
func (p ecsPort) Describe(_ context.Context, services []string) map[string]model.Observation {
	looks := map[string]model.Observation{}
	for _, name := range services {
		var look model.Observation
		look.Err = p.call("describe service", func() {
			look.Tasks = p.w.ecs.look()
			if p.w.now.Before(p.w.ecs.sureAt) && p.w.chance(FaultECSLag) {
				look.Running, look.Pending = p.w.ecs.old.Running, p.w.ecs.old.Pending
			}
		})
		looks[name] = look
	}
	return looks
}

// SetDesired implements services.Scaler.
func (p ecsPort) SetDesired(_ context.Context, service string, desired int) error {
	return p.call("set desired", func() {
		p.w.tell(p.w.who(), "sets desired", fmt.Sprintf("%s to %d", service, desired))
		p.w.checkScaled(desired)
		p.w.ecs.desired = desired
		p.w.reconcile()
	})
}

func (e *ecs) look() model.Tasks {
	t := model.Tasks{Desired: e.desired}
	for _, task := range e.tasks {
		if task.running {
			t.Running++
		} else {
			t.Pending++
		}
	}
	return t
}

// changes notes the state that Describe may still show.
func (w *world) ecsChanges() { w.ecs.old, w.ecs.sureAt = w.ecs.look(), w.now.Add(describeLag) }

// reconcile starts and ends tasks until there are as many as are desired.
func (w *world) reconcile() {
	w.ecsChanges()
	for len(w.ecs.tasks) > w.ecs.desired {
		w.endTask(w.ecs.tasks[w.rng.IntN(len(w.ecs.tasks))], "scaled in")
	}
	for len(w.ecs.tasks) < w.ecs.desired {
		w.ecs.started++
		t := &task{id: fmt.Sprintf("task-%d", w.ecs.started)}
		w.ecs.tasks = append(w.ecs.tasks, t)
		slow := w.between(20*time.Second, time.Minute)
		if w.chance(FaultTaskSlow) {
			slow = w.between(time.Minute, 5*time.Minute)
		}
		w.after(slow, func() {
			if !t.ended {
				w.ecsChanges()
				t.running = true
				w.beginWorker(t)
			}
		})
	}
}

// endTask ends a container, whatever runs in it.
func (w *world) endTask(t *task, why string) {
	w.tell(t.id, "ends", why)
	w.ecsChanges()
	t.ended = true
	w.ecs.tasks = slices.DeleteFunc(w.ecs.tasks, func(o *task) bool { return o == t })
}

// scheduleServiceFaults has containers end at random times; ECS starts others in their place.
func (w *world) scheduleServiceFaults() {
	if !w.serving() {
		return
	}
	w.recur(FaultTaskDies, func() bool {
		if len(w.ecs.tasks) == 0 {
			return false
		}
		w.endTask(w.ecs.tasks[w.rng.IntN(len(w.ecs.tasks))], "killed")
		w.after(w.between(time.Second, 20*time.Second), w.reconcile)
		return true
	})
}

// checkScaled checks that a service is not scaled in while a runner is busy, as far as the
// replica that does it could see when it counted last.
func (w *world) checkScaled(desired int) {
	if desired >= w.ecs.desired {
		return
	}
	for _, id := range w.work.ids {
		j, err := w.truth.Work(background, serviceName, id)
		if err == nil && j.State == model.JobRunning && w.work.claimedAt[id].Before(w.current.counted) {
			w.broken(RuleBusyScaledIn, "the service goes from %d to %d while %s has %s since %s; it was counted at %s",
				w.ecs.desired, desired, j.WorkerID, id, sinceEpoch(w.work.claimedAt[id]), sinceEpoch(w.current.counted))
		}
	}
	w.mark(markScaledIn)
}
