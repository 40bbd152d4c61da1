package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// beginSubmitters submits jobs at random times while the faults last.
func (l *life) beginSubmitters() {
	if !l.serving() {
		return
	}
	var again func()
	again = func() {
		if !l.Chaos {
			return
		}
		for range 1 + l.Rand.IntN(3) {
			id := fmt.Sprintf("job-%d", len(l.WorkIDs)+1)
			l.WorkIDs = append(l.WorkIDs, id)
			l.submit(id)
		}
		l.After(l.Exp(3*time.Minute, 10*time.Minute), again)
	}
	l.After(0, again)
}

func (l *life) submit(id string) {
	l.ask("submit "+id, func(r *replica, now time.Time) error {
		_, err := r.fleet.SubmitWork(engine.Background, world.ServiceName, id, []byte(id), now)
		return err
	}, func(err error) {
		if err != nil {
			l.After(l.Between(time.Second, 5*time.Second), func() { l.submit(id) })
		}
	})
}

// ask makes one call of the queue at some replica, and a second one if the caller repeats
// itself. The answer may be late. A caller whose replica died gets errConnection.
func (l *life) ask(name string, call func(*replica, time.Time) error, answer func(error)) {
	r := l.anyReplica()
	if r == nil {
		l.After(l.Between(time.Second, 5*time.Second), func() { l.ask(name, call, answer) })
		return
	}
	if l.Chance(engine.FaultWorkerTwice) {
		r.askOnce(name, call, func(error) {})
	}
	r.askOnce(name, call, func(err error) {
		late := l.Latency()
		if l.Chance(engine.FaultWorkerLate) {
			late = l.Exp(30*time.Second, 3*time.Minute)
		}
		l.After(late, func() { answer(err) })
	})
}

func (r *replica) askOnce(name string, call func(*replica, time.Time) error, answer func(error)) {
	l := r.l
	l.Spawn(&engine.Actor{Name: r.name + " " + name, Proc: r.proc, Dies: func() { answer(errConnection) }, Step: func() (time.Time, bool) {
		err := call(r, r.clock())
		if !errors.Is(err, model.ErrStaleAttempt) && !(l.losing() && errors.Is(err, lifecycle.ErrNotFound)) {
			l.rules.CheckError(name, err)
		}
		answer(err)
		return time.Time{}, true
	}})
}

// worker is what runs in a task: it claims one job after the other.
type worker struct {
	l    *life
	task *world.Task
	job  model.Job
	left time.Duration // of the job
}

// turn names a worker and the attempt of the job that it has.
func (k *worker) turn() model.JobAttempt {
	return model.JobAttempt{WorkerID: k.task.ID, Number: k.job.Attempt}
}

func (l *life) beginWorker(t *world.Task) { (&worker{l: l, task: t}).claim() }

func (k *worker) claim() {
	l := k.l
	if k.task.Ended {
		return
	}
	var got model.Job
	var found bool
	l.ask(k.task.ID+" claims", func(r *replica, now time.Time) (err error) {
		j, ok, err := r.fleet.ClaimWork(engine.Background, world.ServiceName, k.task.ID, "1", now)
		if err == nil && ok {
			l.rules.WorkGiven(k.task.ID, j)
			got, found = j, true
		}
		return err
	}, func(err error) {
		if err != nil || !found {
			l.After(l.Between(time.Second, 5*time.Second), k.claim)
			return
		}
		k.job, k.left = got, l.Exp(time.Minute, 4*time.Minute)
		l.Mark(engine.MarkWorked)
		k.work()
	})
}

// work advances the job for a while, reports activity, and ends the job when it is done.
func (k *worker) work() {
	l := k.l
	pause := min(k.left, l.Between(20*time.Second, 90*time.Second))
	if l.Chance(engine.FaultWorkerStalls) {
		pause = l.Between(model.JobSilence, 2*model.JobSilence)
	}
	l.After(pause, func() {
		if k.task.Ended {
			return
		}
		if k.left -= pause; k.left > 0 {
			k.say("says", func(r *replica, now time.Time) error {
				_, err := r.fleet.AppendWorkLog(engine.Background, world.ServiceName, k.job.ID, k.turn(), 0, "", now)
				return err
			}, k.work)
			return
		}
		k.say("finishes", func(r *replica, now time.Time) error {
			_, err := r.fleet.FinishWork(engine.Background, world.ServiceName, k.job.ID, k.turn(), true, "", now)
			return err
		}, k.claim)
	})
}

// say repeats a call until it is answered. A worker that learns that the job belongs to another worker, or is not known, drops it.
func (k *worker) say(what string, call func(*replica, time.Time) error, then func()) {
	l := k.l
	l.ask(k.task.ID+" "+what+" "+k.job.ID, call, func(err error) {
		switch {
		case k.task.Ended:
		case errors.Is(err, model.ErrStaleAttempt), errors.Is(err, lifecycle.ErrNotFound):
			l.Mark(engine.MarkWorkLost)
			k.claim()
		case err != nil:
			l.After(l.Between(time.Second, 5*time.Second), func() { k.say(what, call, then) })
		default:
			then()
		}
	})
}

// workLeft says what is left of the service at the end.
func (l *life) workLeft() []string {
	var left []string
	if !l.serving() {
		return nil
	}
	for _, id := range l.WorkIDs {
		j, err := l.Truth.Work(engine.Background, world.ServiceName, id)
		if errors.Is(err, lifecycle.ErrNotFound) && l.rules.WorkWasReplaced(id) {
			continue // who submitted it has to do so once more
		}
		if err != nil || !j.State.Ended() {
			left = append(left, fmt.Sprintf("job %s is %q: %v", id, j.State, err))
		}
	}
	if n := len(l.ECS.Tasks); l.ECS.Desired > 0 || n > 0 {
		left = append(left, fmt.Sprintf("service has %d tasks and a desired count of %d", n, l.ECS.Desired))
	}
	return left
}
