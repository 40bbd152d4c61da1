package services

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/logkey"

	"golang.org/x/sync/errgroup"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

const (
	// maxNudged is how many nudged services are checked at the same time. That many services whose count hangs for
	// nudgedCountTimeout do not delay the others.
	maxNudged = 32
	// nudgeGap is the minimum time between two nudged checks of a service: a caller that nudges for each of a thousand
	// jobs causes one check a second.
	nudgeGap = time.Second
	// nudgeSettle is when a service is checked once more after a nudge that found no waiting job, or after it was scaled
	// in: counts come from indexes and replicas that may lag behind the job that caused the nudge.
	nudgeSettle = 3 * time.Second
)

// nudges are the services that are to be checked soon. Nudging a service that is already in it changes nothing, so the
// size is bounded by the number of services.
type nudges struct {
	mu sync.Mutex
	// waiting are the services to be checked, running those whose check is in progress.
	waiting map[string]nudge
	running map[string]bool
	checked map[string]time.Time
	wakeup  chan struct{}
}

// nudge is when to check a service. A late one is the second check of a nudge.
type nudge struct {
	at   time.Time
	late bool
}

func newNudges() *nudges {
	return &nudges{waiting: map[string]nudge{}, running: map[string]bool{}, checked: map[string]time.Time{}, wakeup: make(chan struct{}, 1)}
}

// at schedules a check of a service, unless an earlier one is scheduled already.
func (n *nudges) at(name string, at time.Time, late bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if free := n.checked[name].Add(nudgeGap); at.Before(free) {
		at = free
	}
	if there, ok := n.waiting[name]; ok && !at.Before(there.at) {
		return
	}
	n.waiting[name] = nudge{at, late}
	n.wake()
}

func (n *nudges) wake() {
	select {
	case n.wakeup <- struct{}{}:
	default:
	}
}

// take removes and returns the service that is due for a check. If there is none, pause is the time until the next
// one is due; 0 means that none is scheduled.
func (n *nudges) take(now time.Time) (name string, due nudge, pause time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for other, w := range n.waiting {
		if n.running[other] {
			continue
		}
		if name == "" || w.at.Before(due.at) || (w.at.Equal(due.at) && other < name) {
			name, due = other, w
		}
	}
	switch {
	case name == "":
		return "", nudge{}, 0
	case due.at.After(now):
		return "", nudge{}, due.at.Sub(now)
	}
	delete(n.waiting, name)
	n.running[name] = true
	return name, due, 0
}

// done ends a check that take began.
func (n *nudges) done(name string, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.running, name)
	n.checked[name] = now
	if w, ok := n.waiting[name]; ok && w.at.Before(now.Add(nudgeGap)) {
		n.waiting[name] = nudge{now.Add(nudgeGap), w.late}
	}
	n.wake()
}

// wait waits for the next nudge, for at most pause if that is not 0, and reports whether ctx is still alive.
func (n *nudges) wait(ctx context.Context, pause time.Duration) bool {
	var after <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-n.wakeup:
	case <-after:
	}
	return true
}

// NudgeSoon schedules a check of a service and does not wait for it. Nudges of the same service are merged. A service
// that is not scaled needs no check.
func (s *Services) NudgeSoon(name string) {
	if service, err := s.service(name); err == nil && service.Scaled() {
		s.nudges.at(name, time.Now(), false)
	}
}

// NudgeForJob nudges the service whose runners serve a queued job.
func (s *Services) NudgeForJob(j lifecycle.WorkflowJob) {
	if j.Status != lifecycle.StatusQueued {
		return
	}
	if name, ok := policy.MatchPool(s.labels, j.Labels); ok {
		s.NudgeSoon(name)
	}
}

// Serve sweeps the services while this replica holds the lease of the sweeps, and checks the services that are nudged,
// until ctx ends. It runs beside the other sweeps, so that a queue that hangs does not delay them.
func (s *Services) Serve(ctx context.Context) {
	if len(s.scaled()) == 0 {
		return
	}
	var serving errgroup.Group
	serving.Go(func() error { s.serveSweeps(ctx); return nil })
	serving.Go(func() error { s.serveNudges(ctx); return nil })
	_ = serving.Wait() // neither returns an error
}

// serveSweeps begins with a sweep as soon as this replica holds the lease.
func (s *Services) serveSweeps(ctx context.Context) {
	for ctx.Err() == nil {
		pause := s.env.Driver.Jitter(s.env.Lease / 3)
		if s.env.Sweeping() {
			began := time.Now()
			sweep := s.NewSweep()
			err := s.env.Driver.Drive(ctx, sweep, 0)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				s.env.Log.Error("services not swept; trying again", logkey.Error, err)
			}
			s.env.Swept("services", time.Since(began), errors.Join(err, sweep.Failed()))
			pause = s.env.Driver.Jitter(s.env.Interval)
		}
		if op.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// serveNudges checks services as they are nudged.
func (s *Services) serveNudges(ctx context.Context) {
	var checking errgroup.Group
	checking.SetLimit(maxNudged)
	defer func() { _ = checking.Wait() }() // no check returns an error
	for ctx.Err() == nil {
		name, due, pause := s.nudges.take(time.Now())
		if name != "" {
			checking.Go(func() error { s.checkNudged(ctx, name, due); return nil })
			continue
		}
		if !s.nudges.wait(ctx, pause) {
			return
		}
	}
}

// checkNudged checks a service, and schedules a second check a little later if no job waits.
func (s *Services) checkNudged(ctx context.Context, name string, due nudge) {
	defer func() { s.nudges.done(name, time.Now()) }()
	status, err := s.Nudge(ctx, name)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.env.Log.Warn("nudged service not checked; the next sweep does", logkey.Service, name, logkey.Error, err)
	case !due.late && isZero(status.Seen.Queued):
		s.nudges.at(name, time.Now().Add(nudgeSettle), true)
	}
}
