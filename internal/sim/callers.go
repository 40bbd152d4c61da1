package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// run is a workflow run with the callers that act for it.
type run struct {
	w          *world
	repository string
	id         string
	attempt    int
	asks       int // requests made
	open       int // jobs that have not ended
	served     bool
	over       bool // its jobs are done, or it was given up
}

// runLength bounds how long a run waits for its jobs before it is cancelled.
const runLength = 25 * time.Minute

// workload is what the callers of one life ask for. A narrow one makes runs reuse the same
// hosts and compete for them.
type workload struct {
	repositories, pools, classes []string
	spot                         float64       // share of the requests for spot hosts, 0 to 1
	jobLength                    time.Duration // mean
	releaseAfter                 time.Duration // mean time until a run is released while it is provisioned
}

func (w *world) drawWorkload() workload {
	t := workload{
		repositories: repositories, pools: []string{"default", "default", "owner", "once"},
		classes: []string{"small", "large"}, spot: 0.3, jobLength: time.Minute, releaseAfter: 20 * time.Second,
	}
	switch w.rng.IntN(4) {
	case 0:
		t.repositories, t.pools, t.classes, t.spot = repositories[:1], []string{"default"}, []string{"small"}, 0
	case 1:
		t.repositories, t.pools, t.classes, t.spot = repositories[:2], []string{"owner"}, []string{"small"}, 0
	case 2:
		t.pools, t.classes = []string{"default", "owner"}, []string{"small"}
	}
	if w.rng.IntN(3) > 0 {
		t.jobLength, t.releaseAfter = 15*time.Second, 4*time.Second
	}
	return t
}

// beginCallers starts new runs at random times while the faults last, as long as there are fewer machines than configured.
func (w *world) beginCallers() {
	mean := 6 * time.Minute / time.Duration(w.cfg.Hosts)
	var again func()
	again = func() {
		if !w.chaos {
			return
		}
		if len(w.living()) < w.cfg.Hosts {
			w.newRun()
		}
		w.after(w.exp(mean, 5*time.Minute), again)
	}
	w.after(0, again)
}

func (w *world) newRun() {
	r := &run{w: w, repository: w.workload.repositories[w.rng.IntN(len(w.workload.repositories))], id: fmt.Sprintf("run-%d", len(w.runs)+1), attempt: 1}
	w.runs = append(w.runs, r)
	r.provision()
	w.after(runLength, r.finish)
	if w.chance(FaultSecondRequest) {
		w.after(w.exp(10*time.Second, time.Minute), r.provision)
	}
	if w.chance(FaultReleaseInterim) {
		w.after(w.exp(w.workload.releaseAfter, 5*time.Minute), func() { r.release(0, false) })
	}
	if w.chance(FaultEarlyRelease) {
		w.after(w.exp(3*time.Minute, 20*time.Minute), func() { r.release(r.attempt, w.rng.IntN(2) == 0) })
	}
}

// demand draws what a request asks for.
func (r *run) demand() fleet.Demand {
	w := r.w
	r.asks++
	pick := func(s ...string) string { return s[w.rng.IntN(len(s))] }
	count := 1 + w.rng.IntN(min(4, w.cfg.Hosts))
	spec := lifecycle.Spec{
		RunAttempt: r.attempt, Count: count, MinimumCount: 1 + w.rng.IntN(count),
		Pool: pick(w.workload.pools...), ResourceClass: pick(w.workload.classes...),
		Timeout: w.between(time.Minute, 10*time.Minute), AllowOnDemand: w.rng.IntN(2) == 0,
	}
	if w.rng.Float64() < w.workload.spot {
		spec.UsageClass = lifecycle.UsageSpot
	}
	if w.rng.IntN(4) == 0 {
		spec.MaxRuntime = w.between(8*time.Minute, 15*time.Minute)
	}
	return fleet.Demand{
		Repository: r.repository, RunID: r.id, RequestID: fmt.Sprintf("%s-ask-%d", r.id, r.asks), Spec: spec,
	}
}

// provision asks for hosts, and retries as callers do.
func (r *run) provision() {
	d := r.demand()
	r.ask(d, 5)
	switch w := r.w; {
	case w.chance(FaultCallerRetries):
		w.after(w.exp(10*time.Second, 5*time.Minute), func() { r.ask(d, 0) })
	case w.chance(FaultCallerDiffers):
		other := d
		other.Spec.Count++
		w.after(w.exp(10*time.Second, 5*time.Minute), func() { r.ask(other, 0) })
	}
}

func (r *run) ask(d fleet.Demand, tries int) {
	w := r.w
	again := func() {
		if tries > 0 && !r.over {
			w.after(w.between(time.Second, 20*time.Second), func() { r.ask(d, tries-1) })
		}
	}
	replica := w.anyReplica()
	if replica == nil {
		again()
		return
	}
	op := must1(replica.fleet.NewProvision(d))
	w.tell(replica.name, "provision", fmt.Sprintf("%s %s of %s: %d, at least %d", d.RequestID, d.Spec.Pool, d.Repository, d.Spec.Count, d.Spec.MinimumCount))
	c := replica.drive("provision "+d.RequestID, op, func(err error) {
		w.tell(replica.name, "provision over", fmt.Sprintf("%s: %v", d.RequestID, err))
		var short *fleet.ShortError
		var released *fleet.ReleasedError
		switch {
		case err == nil:
			w.provisioned(op.Request(), op.Instances())
			r.serve(len(op.Instances()))
		case errors.As(err, &short), errors.As(err, &released), errors.Is(err, fleet.ErrSpecDiffers):
			r.finish()
		case errors.Is(err, errLeft):
		default:
			again()
		}
	})
	if w.chance(FaultCallerLeaves) {
		w.after(w.exp(20*time.Second, 10*time.Minute), func() { c.left = true })
	}
}

// serve queues the jobs of the run, once.
func (r *run) serve(hosts int) {
	w := r.w
	if r.served || r.over {
		return
	}
	r.served = true
	if w.chance(FaultNoJobs) {
		w.after(w.between(time.Minute, 10*time.Minute), r.finish)
		return
	}
	jobs := hosts + w.rng.IntN(2*hosts+1)
	for i := range jobs {
		r.job(fmt.Sprintf("%s.%d job %d", r.id, r.attempt, i), r.id)
	}
	if w.chance(FaultForeignJob) {
		r.job("foreign job at "+r.id, "stranger-"+r.id)
	}
}

func (r *run) job(name, runID string) {
	w := r.w
	r.open++
	j := &job{name: name, repository: r.repository, runID: runID, label: r.id, length: w.exp(w.workload.jobLength, 12*time.Minute)}
	j.done = func() {
		if r.open--; r.open == 0 {
			r.finish()
		}
	}
	w.after(w.exp(5*time.Second, time.Minute), func() {
		if !r.over {
			w.github.enqueue(j)
		}
	})
}

// finish ends the run: its hosts are given back, in one way or another, or it
// runs once more.
func (r *run) finish() {
	w := r.w
	if r.over {
		return
	}
	r.over = true
	w.github.drop(func(j *job) bool { return j.label != r.id })
	attempt := r.attempt
	if w.chance(FaultNeverReleased) {
		return
	}
	webhook := w.rng.IntN(3) > 0
	if webhook {
		r.webhook(attempt)
	}
	if !webhook || w.rng.IntN(3) > 0 {
		w.after(w.exp(2*time.Second, 20*time.Second), func() { r.release(attempt, w.rng.IntN(2) == 0) })
	}
	if w.chance(FaultRerun) {
		w.after(w.exp(30*time.Second, 5*time.Minute), r.rerun)
	}
}

// rerun is a later attempt of the run, with a request of its own.
func (r *run) rerun() {
	if !r.w.chaos {
		return
	}
	r.attempt++
	r.over, r.served, r.open = false, false, 0
	r.provision()
	r.w.after(runLength, r.finish)
}

// webhook releases the run as GitHub's delivery does: late, and repeatedly.
func (r *run) webhook(attempt int) {
	w := r.w
	late := w.exp(2*time.Second, 10*time.Second)
	if w.chance(FaultWebhookLate) {
		late = w.between(time.Minute, 15*time.Minute)
	}
	w.after(late, func() { r.release(attempt, false) })
	if w.chance(FaultWebhookTwice) {
		w.after(late+w.exp(time.Minute, 10*time.Minute), func() { r.release(attempt, false) })
	}
}

// release gives the run's hosts back, and tries again when it could not.
func (r *run) release(attempt int, wait bool) {
	w := r.w
	again := func() { w.after(w.between(time.Second, 20*time.Second), func() { r.release(attempt, wait) }) }
	replica := w.anyReplica()
	if replica == nil {
		again()
		return
	}
	op := replica.fleet.NewRelease(r.repository, r.id, attempt, wait)
	w.tell(replica.name, "release", fmt.Sprintf("%s attempt %d wait %t", r.id, attempt, wait))
	began := w.now
	replica.drive("release "+r.id, op, func(err error) {
		w.tell(replica.name, "release over", fmt.Sprintf("%s: %v", r.id, err))
		if err != nil && !errors.Is(err, errLeft) {
			again()
			return
		}
		if err == nil {
			w.released(r.repository, r.id, attempt, began)
		}
	})
}
