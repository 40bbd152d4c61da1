package sim

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// replica is one controld. After a crash another process takes its place, with
// nothing in memory.
type replica struct {
	w     *world
	name  string
	proc  *process
	fleet *fleet.Fleet
	skew  time.Duration
}

// patience is how long an operation retries an unavailable dependency before its caller gets
// the error.
const patience = 10 * time.Second

func (w *world) newReplica(i int) *replica {
	r := &replica{w: w, name: fmt.Sprintf("controld-%d", i), skew: w.between(-time.Second, time.Second)}
	r.start()
	return r
}

func (r *replica) clock() time.Time { return r.w.now.Add(r.skew) }

func (r *replica) start() {
	w := r.w
	r.proc = &process{
		name: r.name, alive: true, crash: FaultReplicaCrash, preempt: FaultReplicaPreempt, pause: FaultReplicaPause,
		onCrash: func() { w.after(w.between(time.Second, time.Minute), r.start) },
	}
	w.starts++
	r.fleet = must1(fleet.New(fleet.Options{
		Store: w.store(), Queue: queuePort{w}, Compute: computePort{w}, GitHub: githubPort{w}, Notices: noticePort{w},
		Pools: w.pools, Classes: classes, Repositories: repositories, ScaleDown: w.scaleDown(), Guards: w.guards(), Limits: w.limits,
		Services: w.serviceOptions(), Workers: w.workerOptions(r), Jobs: w.jobOptions(),
		Replica: fmt.Sprintf("%s.%d", r.name, w.starts), Rand: w.random(2),
		Log: w.logger(r.name),
	}))
	w.tell(r.name, "starts", "")
	r.serveJobs()
	r.handleNotices()
	r.sweepServices()
	sweeper := r.fleet.NewSweeper()
	failures := 0
	w.spawn(&actor{name: r.name + " sweep", proc: r.proc, step: func() (time.Time, bool) {
		p, err := sweeper.Step(background, r.clock())
		w.checkError("sweep", err)
		if err != nil {
			failures++
			return w.now.Add(w.backoff(failures)), false
		}
		failures = 0
		return w.now.Add(p.Wait + w.latency()), false
	}})
}

// spread is a wait as fleet.Drive makes it: a tenth shorter or longer.
func (w *world) spread(d time.Duration) time.Duration {
	if w.script != nil {
		return d
	}
	return time.Duration(float64(d) * (0.9 + 0.2*w.rng.Float64()))
}

// latency is what a step costs at least.
func (w *world) latency() time.Duration { return w.between(time.Millisecond, 10*time.Millisecond) }

// noteSweep marks that a replica sweeps without holding the lease. That must do no harm, so
// it must happen in some life.
func (w *world) noteSweep() {
	l, err := w.truth.Lease(background, "sweep")
	if err == nil && strings.HasSuffix(w.current.name, " sweep") && !strings.HasPrefix(l.Holder, w.current.proc.name+".") {
		w.mark(markOverlap)
	}
}

// backoff is how long the daemon waits after so many failures.
func (w *world) backoff(failures int) time.Duration {
	return w.between(time.Millisecond, min(50*time.Millisecond<<min(failures, 6), 2*time.Second))
}

// call is one RPC: an operation that a replica drives for a caller.
type call struct {
	*actor
	// left is set when the caller has disconnected.
	left bool
}

// restlessSteps is more steps than any operation has reason to make without a
// pause: a request for a few hosts takes a few dozen.
const restlessSteps = 300

// drive steps an operation as fleet.Drive does, and calls over with its result. A caller
// whose replica crashed gets errConnection.
func (r *replica) drive(name string, op fleet.Op, over func(error)) *call {
	w := r.w
	failures, steps, lastGood := 0, 0, w.now
	c := &call{}
	c.actor = &actor{name: r.name + " " + name, proc: r.proc, dies: func() { over(errConnection) }}
	_, c.beside = op.(*fleet.Refresh) // it looks at services
	c.step = func() (time.Time, bool) {
		if c.left {
			over(errLeft)
			return time.Time{}, true
		}
		began := w.now
		p, err := w.makeStep(c.actor, op, r.clock())
		w.checkError(name, err)
		switch {
		case errors.Is(err, lifecycle.ErrUnavailable) && began.Sub(lastGood) < patience:
			failures++
			return w.now.Add(w.backoff(failures)), false
		case err != nil:
			over(err)
			return time.Time{}, true
		case p.Done:
			over(nil)
			return time.Time{}, true
		}
		failures, lastGood = 0, w.now
		if steps++; p.Wait > 0 {
			steps = 0
		}
		if steps > restlessSteps {
			w.broken(RuleRestless, "%s made %d steps without a pause", name, steps)
		}
		return w.now.Add(w.spread(p.Wait) + w.latency()), false
	}
	w.spawn(c.actor)
	return c
}

// order makes a short call that is no operation, such as Terminate.
func (r *replica) order(name string, do func(now time.Time) error) {
	w := r.w
	w.spawn(&actor{name: r.name + " " + name, proc: r.proc, step: func() (time.Time, bool) {
		w.checkError(name, do(r.clock()))
		return time.Time{}, true
	}})
}

var (
	errConnection = errors.New("connection lost")
	errLeft       = errors.New("the caller went away")
)

// anyReplica is a live replica, or nil.
func (w *world) anyReplica() *replica {
	first := w.rng.IntN(len(w.replicas))
	for i := range w.replicas {
		if r := w.replicas[(first+i)%len(w.replicas)]; r.proc.alive {
			return r
		}
	}
	return nil
}
