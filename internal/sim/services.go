package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// serviceLives: every third life has a service of runners in containers, with a
// queue of its own.
const serviceLives = 3

func (l *life) serving() bool { return l.Config.Seed%serviceLives == 1 }

// servicePolicy goes to zero sooner than a real one would, so that lives see it.
var servicePolicy = policy.ServicePolicy{Maximum: 3, BacklogPerRunner: 2, IdleChecks: 2}

// serviceOptions are those of this life's service; nil: it has none.
func (l *life) serviceOptions() *services.Options {
	if !l.serving() {
		return nil
	}
	return &services.Options{Store: l.Store(), Scaler: l.ECSPort(), Services: map[string]services.Service{world.ServiceName: {
		Name: world.ServiceName, Region: "here", Cluster: "containers", ECSService: world.ServiceName, Policy: servicePolicy,
		Backlog: workqueue.Backlog{Store: l.Store(), AtMost: 100},
	}}}
}

// workerOptions are those of the service's queue.
func (l *life) workerOptions(r *replica) *workqueue.Options {
	if !l.serving() {
		return nil
	}
	return &workqueue.Options{
		Store: l.Store(), Services: map[string]model.JobPolicy{world.ServiceName: {QueueTime: 24 * time.Hour, Requeue: l.Config.Seed%2 == 0}},
		Queued: func(string) {
			proc := r.proc
			l.After(l.Between(time.Millisecond, time.Second), func() {
				if proc.Alive {
					r.lookAtServices("nudge", func() time.Time { return time.Time{} })
				}
			})
		},
	}
}

// sweepServices makes a replica check the service from time to time, as the replica with the
// lease of the sweeps does. Several at once must do no harm.
func (r *replica) sweepServices() {
	if r.l.serving() {
		r.lookAtServices("services", func() time.Time { return r.l.Now.Add(r.l.Between(50*time.Second, 70*time.Second)) })
	}
}

// lookAtServices drives checks of the service, each to its end. again says when the next one
// begins; the zero time ends the series.
func (r *replica) lookAtServices(name string, again func() time.Time) {
	l := r.l
	var op *services.Sweep
	a := &engine.Actor{Name: r.name + " " + name, Proc: r.proc, Beside: true}
	a.Step = func() (time.Time, bool) {
		if op == nil {
			op = r.fleet.NewServiceSweep()
		}
		p, err := r.step(a, op)
		l.rules.CheckError(name, err)
		switch {
		case err != nil:
			return l.Now.Add(l.Between(time.Second, 5*time.Second)), false
		case !p.Done:
			return l.Now.Add(l.Latency()), false
		}
		op = nil
		next := again()
		return next, next.IsZero()
	}
	l.Spawn(a)
}

// scheduleServiceFaults has containers end at random times; ECS starts others in their place.
func (l *life) scheduleServiceFaults() {
	if !l.serving() {
		return
	}
	l.Recur(engine.FaultTaskDies, func() bool {
		if len(l.ECS.Tasks) == 0 {
			return false
		}
		l.EndTask(l.ECS.Tasks[l.Rand.IntN(len(l.ECS.Tasks))], "killed")
		l.After(l.Between(time.Second, 20*time.Second), l.Reconcile)
		return true
	})
}
