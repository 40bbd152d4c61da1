package replay

import (
	"errors"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// serving is a job that is played.
type serving struct {
	index int
	job   history.Job
	pool  Pool
	tries int
	over  bool
}

// requestTimeout is how long a request waits for its host, before another one is made: a job waits on.
const requestTimeout = 30 * time.Minute

// askAgain is how long after a request that came out short the next one is made. A pool that may have no host refuses at once.
const askAgain = time.Minute

// queuedAtMost is how long GitHub lets a job wait for a runner before it gives it up.
const queuedAtMost = 24 * time.Hour

func (s *serving) runID() string { return strconv.Itoa(s.index + 1) }

// begin has a job wait for its host.
func (w *world) begin(s *serving) {
	w.account.series.waiting.add(w.clock.now, 1)
	w.ask(s)
}

// ask asks for the host of a job.
func (w *world) ask(s *serving) {
	s.tries++
	spec := s.pool.Spec
	spec.Count, spec.Timeout, spec.Pool = 1, requestTimeout, s.pool.Name
	p, err := w.fleet.NewProvision(fleet.Demand{
		Repository: s.job.Repository, RunID: s.runID(), RequestID: strconv.Itoa(s.tries), Spec: spec,
	})
	if err != nil {
		w.check(err)
		return
	}
	hosts := func() []string {
		var keys []string
		for _, t := range p.Request().Taken {
			keys = append(keys, t.HostKey)
		}
		return keys
	}
	w.drive(&driven{op: p, hosts: hosts, over: func(err error) {
		var short *fleet.ShortError
		switch {
		case errors.As(err, &short) && w.clock.now.Sub(s.job.Created) < queuedAtMost:
			w.after(s.again(w.clock.now), func() { w.ask(s) })
		case errors.As(err, &short):
			w.account.series.waiting.add(w.clock.now, -1)
			w.account.gaveUp(s)
			w.end(s)
		case err != nil:
			w.check(err)
		default:
			w.work(s, p.Instances()[0])
		}
	}})
}

// again is how long a job waits before it asks once more. A pool without hosts has none all day, and a month of jobs would ask each minute.
func (s *serving) again(now time.Time) time.Duration {
	if most := s.pool.Maximum; most != nil && *most == 0 {
		return s.job.Created.Add(queuedAtMost).Sub(now)
	}
	return askAgain
}

// work has the job run on its host.
func (w *world) work(s *serving, r lifecycle.Record) {
	h := w.hosts[r.HostKey]
	came := w.came
	if h.wasStopped {
		came, h.wasStopped = CameStarted, false
	}
	w.account.series.waiting.add(w.clock.now, -1)
	w.account.served(s, came, w.clock.now)
	h.job = s
	w.setBusy(h, true)
	w.after(s.job.Took(), func() {
		if s.over {
			return // it was cut off
		}
		w.setBusy(h, false)
		h.job = nil
		w.end(s)
	})
}

// setBusy begins or ends a job: GitHub and the host's agent know at once.
func (w *world) setBusy(h *host, busy bool) {
	change := -1
	if h.busy = busy; busy {
		change = 1
		h.jobs++
	}
	w.account.series.busy.add(w.clock.now, change)
	w.hub.setBusy(h.record.RunnerName, busy)
	w.answer(h)
}

// end gives back the host of a job that is over.
func (w *world) end(s *serving) {
	s.over = true
	w.left--
	release := w.fleet.NewFollow(s.job.Repository, s.runID(), 0)
	hosts := func() []string {
		var keys []string
		for _, r := range release.Instances() {
			keys = append(keys, r.HostKey)
		}
		return keys
	}
	w.drive(&driven{op: release, hosts: hosts, over: w.check})
}

// cut is a job whose host ended under it: it ran for longer than its pool lets it.
func (w *world) cut(s *serving) {
	if s.over {
		return
	}
	w.account.series.busy.add(w.clock.now, -1)
	w.account.cut++
	w.end(s)
}
