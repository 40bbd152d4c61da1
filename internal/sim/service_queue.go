package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/services/model"
)

// workWorld is the queue of the service as its callers and workers see it.
type workWorld struct {
	ids []string
	// claimedAt is when a job began to run, by its id. had is the worker that has an attempt.
	claimedAt map[string]time.Time
	had       map[string]string
	// waitsSince is when a job began to wait.
	waitsSince map[string]time.Time
}

// beginSubmitters submits jobs at random times while the faults last.
func (w *world) beginSubmitters() {
	if !w.serving() {
		return
	}
	var again func()
	again = func() {
		if !w.chaos {
			return
		}
		for range 1 + w.rng.IntN(3) {
			id := fmt.Sprintf("job-%d", len(w.work.ids)+1)
			w.work.ids = append(w.work.ids, id)
			w.submit(id)
		}
		w.after(w.exp(3*time.Minute, 10*time.Minute), again)
	}
	w.after(0, again)
}

func (w *world) submit(id string) {
	w.ask("submit "+id, func(r *replica, now time.Time) error {
		_, err := r.fleet.SubmitWork(background, serviceName, id, []byte(id), now)
		return err
	}, func(err error) {
		if err != nil {
			w.after(w.between(time.Second, 5*time.Second), func() { w.submit(id) })
		}
	})
}

// ask makes one call of the queue at some replica, and a second one if the caller repeats
// itself. The answer may be late. A caller whose replica died gets errConnection.
func (w *world) ask(name string, call func(*replica, time.Time) error, answer func(error)) {
	r := w.anyReplica()
	if r == nil {
		w.after(w.between(time.Second, 5*time.Second), func() { w.ask(name, call, answer) })
		return
	}
	if w.chance(FaultWorkerTwice) {
		r.askOnce(name, call, func(error) {})
	}
	r.askOnce(name, call, func(err error) {
		late := w.latency()
		if w.chance(FaultWorkerLate) {
			late = w.exp(30*time.Second, 3*time.Minute)
		}
		w.after(late, func() { answer(err) })
	})
}

func (r *replica) askOnce(name string, call func(*replica, time.Time) error, answer func(error)) {
	w := r.w
	w.spawn(&actor{name: r.name + " " + name, proc: r.proc, dies: func() { answer(errConnection) }, step: func() (time.Time, bool) {
		err := call(r, r.clock())
		if !errors.Is(err, model.ErrStaleAttempt) {
			w.checkError(name, err)
		}
		answer(err)
		return time.Time{}, true
	}})
}

// worker is what runs in a task: it claims one job after the other.
type worker struct {
	w    *world
	task *task
	job  model.Job
	left time.Duration // of the job
}

// turn names a worker and the attempt of the job that it has.
func (k *worker) turn() model.JobAttempt {
	return model.JobAttempt{WorkerID: k.task.id, Number: k.job.Attempt}
}

func (w *world) beginWorker(t *task) { (&worker{w: w, task: t}).claim() }

func (k *worker) claim() {
	w := k.w
	if k.task.ended {
		return
	}
	var got model.Job
	var found bool
	w.ask(k.task.id+" claims", func(r *replica, now time.Time) (err error) {
		j, ok, err := r.fleet.ClaimWork(background, serviceName, k.task.id, "1", now)
		if err == nil && ok {
			w.checkHad(k, j)
			got, found = j, true
		}
		return err
	}, func(err error) {
		if err != nil || !found {
			w.after(w.between(time.Second, 5*time.Second), k.claim)
			return
		}
		k.job, k.left = got, w.exp(time.Minute, 4*time.Minute)
		w.mark(markWorked)
		k.work()
	})
}

// checkHad checks that one attempt of a job belongs to one worker.
func (w *world) checkHad(k *worker, j model.Job) {
	attempt := fmt.Sprintf("%s attempt %d", j.ID, j.Attempt)
	if other := w.work.had[attempt]; other != "" && other != k.task.id {
		w.broken(RuleWorkTwice, "%s is given to %s, and %s has it", attempt, k.task.id, other)
	}
	w.work.had[attempt] = k.task.id
}

// work advances the job for a while, reports activity, and ends the job when it is done.
func (k *worker) work() {
	w := k.w
	pause := min(k.left, w.between(20*time.Second, 90*time.Second))
	if w.chance(FaultWorkerStalls) {
		pause = w.between(model.JobSilence, 2*model.JobSilence)
	}
	w.after(pause, func() {
		if k.task.ended {
			return
		}
		if k.left -= pause; k.left > 0 {
			k.say("says", func(r *replica, now time.Time) error {
				_, err := r.fleet.AppendWorkLog(background, serviceName, k.job.ID, k.turn(), 0, "", now)
				return err
			}, k.work)
			return
		}
		k.say("finishes", func(r *replica, now time.Time) error {
			_, err := r.fleet.FinishWork(background, serviceName, k.job.ID, k.turn(), true, "", now)
			return err
		}, k.claim)
	})
}

// say repeats a call until it is answered. A worker that learns that the job belongs to another worker drops it.
func (k *worker) say(what string, call func(*replica, time.Time) error, then func()) {
	w := k.w
	w.ask(k.task.id+" "+what+" "+k.job.ID, call, func(err error) {
		switch {
		case k.task.ended:
		case errors.Is(err, model.ErrStaleAttempt):
			w.mark(markWorkLost)
			k.claim()
		case err != nil:
			w.after(w.between(time.Second, 5*time.Second), func() { k.say(what, call, then) })
		default:
			then()
		}
	})
}

// workWritten follows a job.
func (w *world) workWritten(before, after model.Job) {
	w.tell(w.who(), "writes", fmt.Sprintf("job %s v%d %s of %q attempt %d", after.ID, after.Version, after.State, after.WorkerID, after.Attempt))
	if before.State == model.JobRunning && after.State == model.JobRunning && before.WorkerID != after.WorkerID || after.Version != before.Version+1 {
		w.broken(RuleWorkTwice, "%s goes from %q to %q, version %d to %d", after.ID, before.WorkerID, after.WorkerID, before.Version, after.Version)
	}
	if after.State == model.JobRunning && before.State != model.JobRunning {
		w.work.claimedAt[after.ID] = w.now
	}
	if after.State == model.JobWaiting {
		w.work.waitsSince[after.ID] = w.now
	}
}

// workBound is how long a job may wait once the faults are over: until the next check of the
// service, the start of a container, and the jobs before it. Each of those takes at most
// 4 minutes, or fails after a silence and is started once more.
const workBound = 45 * time.Minute

// runnerBound is how long a service may have no runner while a job waits.
const runnerBound = 5 * time.Minute

// checkWork checks that a waiting job gets a runner within bounded time.
func (w *world) checkWork() {
	if !w.serving() || w.rules.chaosEndedAt.IsZero() {
		return
	}
	for _, id := range w.work.ids {
		j, err := w.truth.Work(background, serviceName, id)
		if err != nil || j.State != model.JobWaiting {
			continue
		}
		waits := min(w.now.Sub(w.work.waitsSince[id]), w.now.Sub(w.rules.chaosEndedAt)-settleAfter)
		if waits > workBound || waits > runnerBound && w.ecs.desired == 0 {
			w.broken(RuleUnserved, "job %s waits since %s, and the service has a desired count of %d", id, sinceEpoch(w.work.waitsSince[id]), w.ecs.desired)
		}
	}
}

// workLeft says what is left of the service at the end.
func (w *world) workLeft() []string {
	var left []string
	if !w.serving() {
		return nil
	}
	for _, id := range w.work.ids {
		if j, err := w.truth.Work(background, serviceName, id); err != nil || !j.State.Ended() {
			left = append(left, fmt.Sprintf("job %s is %q: %v", id, j.State, err))
		}
	}
	if n := len(w.ecs.tasks); w.ecs.desired > 0 || n > 0 {
		left = append(left, fmt.Sprintf("service has %d tasks and a desired count of %d", n, w.ecs.desired))
	}
	return left
}
