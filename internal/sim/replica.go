package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/rules"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// replica is one controld. After a crash another process takes its place, with
// nothing in memory.
type replica struct {
	l     *life
	name  string
	proc  *engine.Process
	fleet *fleet.Fleet
	skew  time.Duration
	off   time.Duration // while its clock is wrong, beside skew
}

// patience is how long an operation retries an unavailable dependency before its caller gets
// the error.
const patience = 10 * time.Second

func (l *life) newReplica(i int) *replica {
	r := &replica{l: l, name: fmt.Sprintf("controld-%d", i), skew: l.Between(-time.Second, time.Second)}
	r.start()
	return r
}

func (r *replica) clock() time.Time { return r.l.Now.Add(r.skew + r.off) }

func (r *replica) start() {
	l := r.l
	r.proc = &engine.Process{
		Name: r.name, Alive: true, Crash: engine.FaultReplicaCrash, Preempt: engine.FaultReplicaPreempt, Pause: engine.FaultReplicaPause,
		OnCrash: func() { l.After(l.Between(time.Second, time.Minute), r.start) },
	}
	l.starts++
	r.fleet = engine.Must1(fleet.New(fleet.Options{
		Store: l.Store(), Queue: l.QueuePort(), Compute: l.ComputePort(), GitHub: l.GitHubPort(), Notices: l.NoticePort(), Sources: l.sources(),
		Pools: l.Pools, Classes: classes, Repositories: world.Repositories, ScaleDown: l.scaleDown(), Guards: l.guards(), Limits: l.Limits,
		Services: l.serviceOptions(), Workers: l.workerOptions(r), Jobs: l.jobOptions(),
		Replica: fmt.Sprintf("%s.%d", r.name, l.starts), Rand: l.Random(2), RandomText: l.standbyLabel, AtOnce: 1,
		ClockOffset: func() time.Duration { return -r.skew - r.off }, LaunchRate: l.launchRate(), Timing: fleet.Timing{PauseLag: 1}, Log: l.Logger(r.name),
	}))
	l.Tell(r.name, "starts", "")
	r.serveJobs()
	r.handleNotices()
	r.sweepServices()
	sweeper := r.fleet.NewSweeper()
	failures := 0
	l.Spawn(&engine.Actor{Name: r.name + " sweep", Proc: r.proc, Step: func() (time.Time, bool) {
		p, err := sweeper.Step(engine.Background, r.clock())
		l.rules.CheckError("sweep", err)
		if err != nil {
			failures++
			return l.Now.Add(l.Backoff(failures)), false
		}
		failures = 0
		return l.Now.Add(p.Wait + l.Latency()), false
	}})
}

// call is one RPC: an operation that a replica drives for a caller.
type call struct {
	*engine.Actor
	// left is set when the caller has disconnected.
	left bool
}

// restlessSteps is more steps than any operation has reason to make without a
// pause: a request for a few hosts takes a few dozen.
const restlessSteps = 300

// drive steps an operation as fleet.Drive does, and calls over with its result. A caller
// whose replica crashed gets errConnection.
func (r *replica) drive(name string, op fleet.Op, over func(error)) *call {
	l := r.l
	failures, steps, lastGood := 0, 0, l.Now
	c := &call{}
	c.Actor = &engine.Actor{Name: r.name + " " + name, Proc: r.proc, Dies: func() { over(errConnection) }}
	_, c.Beside = op.(*fleet.Refresh) // it looks at services
	c.Step = func() (time.Time, bool) {
		if c.left {
			over(errLeft)
			return time.Time{}, true
		}
		began := l.Now
		p, err := r.step(c.Actor, op)
		l.rules.CheckError(name, err)
		switch {
		case errors.Is(err, lifecycle.ErrUnavailable) && began.Sub(lastGood) < patience:
			failures++
			return l.Now.Add(l.Backoff(failures)), false
		case err != nil:
			over(err)
			return time.Time{}, true
		case p.Done:
			over(nil)
			return time.Time{}, true
		}
		failures, lastGood = 0, l.Now
		if steps++; p.Wait > 0 {
			steps = 0
		}
		if steps > restlessSteps {
			l.Broken(rules.RuleRestless, "%s made %d steps without a pause", name, steps)
		}
		return l.Now.Add(l.Spread(p.Wait) + l.Latency()), false
	}
	l.Spawn(c.Actor)
	return c
}

// step takes a step of an operation, as fleet.Drive does.
func (r *replica) step(a *engine.Actor, op fleet.Op) (fleet.Progress, error) {
	if err := r.fleet.CheckClock(); err != nil {
		return fleet.Progress{}, err
	}
	return r.l.MakeStep(a, op, r.clock())
}

// order makes a short call that is no operation, such as Terminate.
func (r *replica) order(name string, do func(now time.Time) error) {
	l := r.l
	l.Spawn(&engine.Actor{Name: r.name + " " + name, Proc: r.proc, Step: func() (time.Time, bool) {
		l.rules.CheckError(name, do(r.clock()))
		return time.Time{}, true
	}})
}

var (
	errConnection = errors.New("connection lost")
	errLeft       = errors.New("the caller went away")
)

// anyReplica is a live replica, or nil.
func (l *life) anyReplica() *replica {
	first := l.Rand.IntN(len(l.replicas))
	for i := range l.replicas {
		if r := l.replicas[(first+i)%len(l.replicas)]; r.proc.Alive {
			return r
		}
	}
	return nil
}
