package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// caller acts for a workflow run.
type caller struct {
	world.Run
	l       *life
	work    workload
	attempt int
	asks    int // requests made
	open    int // jobs that have not ended
	served  bool
	over    bool // its jobs are done, or it was given up
}

// runLength bounds how long a run waits for its jobs before it is cancelled.
const runLength = 25 * time.Minute

// workload is what the callers of one life ask for. A narrow one makes runs reuse the same
// hosts and compete for them.
type workload struct {
	repositories, pools, classes []string
	hosts                        int           // of a request, at most
	tries                        int           // of a request whose answer does not come
	steady                       bool          // its callers make no faults of their own
	spot                         float64       // share of the requests for spot hosts, 0 to 1
	jobLength                    time.Duration // mean
	releaseAfter                 time.Duration // mean time until a run is released while it is provisioned
}

func (l *life) drawWorkload() workload {
	t := workload{
		repositories: world.Repositories, pools: []string{"default", "default", "owner", "once"},
		classes: []string{"small", "large"}, hosts: min(4, l.Config.Hosts), tries: 5, spot: 0.3, jobLength: time.Minute, releaseAfter: 20 * time.Second,
	}
	switch l.Rand.IntN(4) {
	case 0:
		t.repositories, t.pools, t.classes, t.spot = world.Repositories[:1], []string{"default"}, []string{"small"}, 0
	case 1:
		t.repositories, t.pools, t.classes, t.spot = world.Repositories[:2], []string{"owner"}, []string{"small"}, 0
	case 2:
		t.pools, t.classes = []string{"default", "owner"}, []string{"small"}
	}
	if l.Rand.IntN(3) > 0 {
		t.jobLength, t.releaseAfter = 15*time.Second, 4*time.Second
	}
	return t
}

// beginCallers starts new runs at random times while there are storms, as long as there are fewer machines than configured.
func (l *life) beginCallers() {
	mean := 6 * time.Minute / time.Duration(l.Config.Hosts)
	if l.Hot || l.imaging() {
		mean /= 2
	}
	var again func()
	again = func() {
		if !l.Storms {
			return
		}
		if len(l.Living())-l.hotHosts()-l.stoppedHosts() < l.Config.Hosts {
			l.newRun(l.workload)
		}
		l.After(l.Exp(mean, 5*time.Minute), again)
	}
	l.After(0, again)
}

func (l *life) newRun(work workload) *caller {
	r := &caller{l: l, work: work, attempt: 1, Run: world.Run{
		Repository: work.repositories[l.Rand.IntN(len(work.repositories))], ID: fmt.Sprintf("run-%d", len(l.Runs)+1),
	}}
	for work.steady && l.imaging() && !l.Trusted(r.Run) { // such a run leaves no host that another could claim
		r.ID += "+"
	}
	l.Runs = append(l.Runs, r.Run)
	r.provision()
	r.jobAhead()
	l.After(runLength, r.finish)
	if r.chance(engine.FaultSecondRequest) {
		l.After(l.Exp(10*time.Second, time.Minute), r.provision)
	}
	if r.chance(engine.FaultReleaseInterim) {
		l.After(l.Exp(work.releaseAfter, 5*time.Minute), func() { r.release(0, false) })
	}
	if r.chance(engine.FaultEarlyRelease) {
		l.After(l.Exp(3*time.Minute, 20*time.Minute), func() { r.release(r.attempt, l.Rand.IntN(2) == 0) })
	}
	return r
}

// chance draws whether the caller makes a fault.
func (r *caller) chance(f engine.Fault) bool { return !r.work.steady && r.l.Chance(f) }

// demand draws what a request asks for.
func (r *caller) demand() fleet.Demand {
	l := r.l
	r.asks++
	pick := func(s ...string) string { return s[l.Rand.IntN(len(s))] }
	count := 1 + l.Rand.IntN(r.work.hosts)
	spec := lifecycle.Spec{
		RunAttempt: r.attempt, Count: count, MinimumCount: 1 + l.Rand.IntN(count),
		Pool: pick(r.work.pools...), ResourceClass: pick(r.work.classes...),
		Timeout: l.Between(time.Minute, 10*time.Minute), AllowOnDemand: l.Rand.IntN(2) == 0,
	}
	if l.Rand.Float64() < r.work.spot {
		spec.UsageClass = lifecycle.UsageSpot
	}
	if l.Rand.IntN(4) == 0 {
		spec.MaxRuntime = l.Between(8*time.Minute, 15*time.Minute)
	}
	return fleet.Demand{
		Repository: r.Repository, RunID: r.ID, RequestID: fmt.Sprintf("%s-ask-%d", r.ID, r.asks), Spec: spec,
	}
}

// provision asks for hosts, and retries as callers do.
func (r *caller) provision() {
	d := r.demand()
	r.ask(d, r.work.tries)
	switch l := r.l; {
	case r.chance(engine.FaultCallerRetries):
		l.After(l.Exp(10*time.Second, 5*time.Minute), func() { r.ask(d, 0) })
	case r.chance(engine.FaultCallerDiffers):
		other := d
		other.Spec.Count++
		l.After(l.Exp(10*time.Second, 5*time.Minute), func() { r.ask(other, 0) })
	}
}

func (r *caller) ask(d fleet.Demand, tries int) {
	l := r.l
	again := func() {
		if tries > 0 && !r.over {
			l.After(l.Between(time.Second, 20*time.Second), func() { r.ask(d, tries-1) })
		}
	}
	replica := l.anyReplica()
	if replica == nil {
		again()
		return
	}
	op := engine.Must1(replica.fleet.NewProvision(d))
	l.Tell(replica.name, "provision", fmt.Sprintf("%s %s of %s: %d, at least %d", d.RequestID, d.Spec.Pool, d.Repository, d.Spec.Count, d.Spec.MinimumCount))
	c := replica.drive("provision "+d.RequestID, op, func(err error) {
		l.Tell(replica.name, "provision over", fmt.Sprintf("%s: %v", d.RequestID, err))
		var short *fleet.ShortError
		var released *fleet.ReleasedError
		switch {
		case err == nil:
			l.rules.Provisioned(op.Request(), op.Instances())
			r.serve(len(op.Instances()))
		case errors.As(err, &short), errors.As(err, &released), errors.Is(err, fleet.ErrSpecDiffers):
			r.finish()
		case errors.Is(err, errLeft):
		default:
			again()
		}
	})
	if r.chance(engine.FaultCallerLeaves) {
		l.After(l.Exp(20*time.Second, 10*time.Minute), func() { c.left = true })
	}
}

// serve queues the jobs of the run, once.
func (r *caller) serve(hosts int) {
	l := r.l
	if r.served || r.over {
		return
	}
	r.served = true
	if r.chance(engine.FaultNoJobs) {
		l.After(l.Between(time.Minute, 10*time.Minute), r.finish)
		return
	}
	jobs := hosts + l.Rand.IntN(2*hosts+1)
	for i := range jobs {
		r.job(fmt.Sprintf("%s.%d job %d", r.ID, r.attempt, i), r.ID)
	}
	if r.chance(engine.FaultForeignJob) {
		r.job("foreign job at "+r.ID, "stranger-"+r.ID)
	}
}

func (r *caller) job(name, runID string) {
	l := r.l
	r.open++
	j := &world.Job{Name: name, Repository: r.Repository, RunID: runID, Label: r.ID, Length: l.Exp(r.work.jobLength, 12*time.Minute)}
	j.Done = func() {
		if r.open--; r.open == 0 {
			r.finish()
		}
	}
	wait := l.Exp(5*time.Second, time.Minute)
	if l.Hot && l.Rand.IntN(4) > 0 {
		wait = 0 // so that it may come before the agent has read the claim
	}
	l.After(wait, func() {
		if !r.over {
			l.GitHub.Enqueue(j)
		}
	})
}

// jobAtRelease queues a job of the run at about the time at which the agents of its hosts see its release.
func (r *caller) jobAtRelease(attempt int) {
	l := r.l
	j := &world.Job{
		Name: fmt.Sprintf("%s.%d job at its release", r.ID, attempt), Repository: r.Repository, RunID: r.ID, Label: r.ID,
		Length: l.Exp(30*time.Second, time.Minute),
	}
	l.After(l.Between(0, 10*time.Second), func() { l.GitHub.Enqueue(j) })
}

// finish ends the run: its hosts are given back, in one way or another, or it
// runs once more.
func (r *caller) finish() {
	l := r.l
	if r.over {
		return
	}
	r.over = true
	l.GitHub.Drop(func(j *world.Job) bool { return j.Label != r.ID })
	attempt := r.attempt
	if r.chance(engine.FaultNeverReleased) {
		return
	}
	webhook := l.Rand.IntN(3) > 0
	if webhook {
		r.webhook(attempt)
	}
	if !webhook || l.Rand.IntN(3) > 0 {
		l.After(l.Exp(2*time.Second, 20*time.Second), func() { r.release(attempt, l.Rand.IntN(2) == 0) })
	}
	if r.chance(engine.FaultRerun) {
		l.After(l.Exp(30*time.Second, 5*time.Minute), r.rerun)
	}
}

// rerun is a later attempt of the run, with a request of its own.
func (r *caller) rerun() {
	if !r.l.Chaos {
		return
	}
	r.attempt++
	r.over, r.served, r.open = false, false, 0
	r.provision()
	r.l.After(runLength, r.finish)
}

// webhook releases the run as GitHub's delivery does: late, and repeatedly.
func (r *caller) webhook(attempt int) {
	l := r.l
	late := l.Exp(2*time.Second, 10*time.Second)
	if r.chance(engine.FaultWebhookLate) {
		late = l.Between(time.Minute, 15*time.Minute)
	}
	l.After(late, func() { r.release(attempt, false) })
	if r.chance(engine.FaultWebhookTwice) {
		l.After(late+l.Exp(time.Minute, 10*time.Minute), func() { r.release(attempt, false) })
	}
}

// release gives the run's hosts back, and tries again when it could not.
func (r *caller) release(attempt int, wait bool) {
	l := r.l
	again := func() { l.After(l.Between(time.Second, 20*time.Second), func() { r.release(attempt, wait) }) }
	replica := l.anyReplica()
	if replica == nil {
		again()
		return
	}
	op := replica.fleet.NewRelease(r.Repository, r.ID, attempt, wait)
	if r.chance(engine.FaultJobAtRelease) {
		r.jobAtRelease(attempt)
	}
	l.Tell(replica.name, "release", fmt.Sprintf("%s attempt %d wait %t", r.ID, attempt, wait))
	began := l.Now
	replica.drive("release "+r.ID, op, func(err error) {
		l.Tell(replica.name, "release over", fmt.Sprintf("%s: %v", r.ID, err))
		if err != nil && !errors.Is(err, errLeft) {
			again()
			return
		}
		if err == nil {
			l.rules.Released(r.Repository, r.ID, attempt, began)
		}
	})
}
