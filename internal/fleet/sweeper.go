package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

// sweepLease is the lease that says which replica sweeps. It only saves work:
// two replicas that sweep at once do no harm.
const sweepLease = "sweep"

// Sweeper runs the sweeps at their intervals while it holds the lease.
type Sweeper struct {
	f *Fleet

	lease   lifecycle.Lease // as last read
	seenAt  time.Time       // when its version last moved, on our own clock
	renewAt time.Time       // when to renew or read the lease again

	// The slow sweeps get a step whenever the quick ones have come to the end of
	// one: a sweep that deletes a thousand registrations, at the pace that GitHub
	// allows, does not keep hosts from being looked at, nor is it kept for ever.
	quick, slow hand
	slowsTurn   bool
}

// slowFrom is the interval from which on a sweep is a slow one: so long it may
// take without being missed.
const slowFrom = time.Minute

// hand runs its sweeps one after the other, each to its end.
type hand struct {
	sweeps []*schedule
	op     op.Op // nil: none is under way
	of     *schedule
	began  time.Time
}

// schedule is one kind of sweep and when it is next due.
type schedule struct {
	name  string
	every time.Duration
	begin func() op.Op
	due   time.Time
}

// NewSweeper returns a sweeper that does not hold the lease yet.
func (f *Fleet) NewSweeper() *Sweeper {
	sweeps := []*schedule{
		{name: "due", every: f.timing.Due, begin: func() op.Op { return f.NewDueSweep() }},
		{name: "liveness", every: f.timing.Liveness, begin: func() op.Op { return f.NewLivenessSweep() }},
		{name: "cloud", every: f.timing.Cloud, begin: func() op.Op { return f.NewCloudSweep() }},
		{name: "github", every: f.timing.Cloud, begin: func() op.Op { return f.NewGitHubSweep() }},
	}
	if f.jobs != nil && f.jobs.Parse != nil {
		sweeps = append(sweeps,
			&schedule{name: "jobs", every: f.timing.Due, begin: func() op.Op { return f.NewJobSweep() }},
			&schedule{name: "webhooks", every: f.timing.Cloud, begin: func() op.Op { return f.NewMissedSweep() }})
	}
	if f.scaleDown != nil {
		sweeps = append(sweeps, &schedule{name: "scale_down", every: f.scaleDown.every(), begin: func() op.Op { return f.NewScaleDownSweep() }})
	}
	if f.work.Store != nil {
		sweeps = append(sweeps, &schedule{name: "work", every: workqueue.SweepInterval, begin: func() op.Op { return f.NewWorkSweep() }})
	}
	if len(f.warmPools()) > 0 {
		sweeps = append(sweeps, &schedule{name: "warm", every: f.timing.Warm, begin: func() op.Op { return f.NewWarmSweep() }})
	}
	if f.releases != nil {
		sweeps = append(sweeps, &schedule{name: "runners", every: runnersEvery, begin: func() op.Op { return f.NewRunnerSweep() }})
	}
	s := &Sweeper{f: f}
	for _, c := range sweeps {
		if c.every < slowFrom {
			s.quick.sweeps = append(s.quick.sweeps, c)
		} else {
			s.slow.sweeps = append(s.slow.sweeps, c)
		}
	}
	return s
}

// Step does one step: of the lease when it is time, else of a sweep that is
// under way or due. It is never done.
func (s *Sweeper) Step(ctx context.Context, now time.Time) (op.Progress, error) {
	if !now.Before(s.renewAt) {
		return op.Again, s.keepLease(ctx, now)
	}
	if !s.holds() {
		s.quick.op, s.slow.op = nil, nil
		return op.Wait(s.renewAt.Sub(now)), nil
	}
	h := s.hand(now)
	if h == nil {
		return op.Wait(s.untilNext(now)), nil
	}
	progress, err := h.op.Step(ctx, now)
	if err != nil || progress.Done || progress.Wait > 0 {
		s.f.observer.Swept(h.of.name, now.Sub(h.began), err)
		h.op = nil
	}
	s.slowsTurn = h == &s.quick && h.op == nil
	if err != nil {
		// One that came to its end went past something that will fail again.
		if retry := now.Add(s.f.ops.Jitter(sweepAgain)); !progress.Done && retry.Before(h.of.due) {
			h.of.due = retry
		}
		return op.Again, fmt.Errorf("%s sweep: %w", h.of.name, err)
	}
	return op.Again, nil
}

// hand is the one whose sweep gets the next step; nil: nothing is due.
func (s *Sweeper) hand(now time.Time) *hand {
	first, second := &s.quick, &s.slow
	if s.slowsTurn {
		first, second = second, first
	}
	switch {
	case s.ready(first, now):
		return first
	case s.ready(second, now):
		return second
	}
	return nil
}

func (s *Sweeper) holds() bool { return s.lease.Holder == s.f.replica }

// keepLease renews our lease, or takes over one whose version stood still for
// as long as a lease lasts.
func (s *Sweeper) keepLease(ctx context.Context, now time.Time) error {
	s.renewAt = now.Add(s.f.ops.Jitter(s.f.timing.Lease / 3))
	defer func() { s.f.sweeping.Store(s.holds()) }()
	stored, err := s.f.store.Lease(ctx, sweepLease)
	if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
		s.f.watch.lostStore()
		return fmt.Errorf("read lease %s: %w", sweepLease, err)
	}
	if stored.Version != s.lease.Version || stored.Holder != s.lease.Holder || s.seenAt.IsZero() {
		s.lease, s.seenAt = stored, now
	}
	ours := stored.Holder == s.f.replica
	free := stored.Version == 0 || now.Sub(s.seenAt) >= s.f.timing.Lease
	if !ours && !free {
		return nil
	}
	taken, err := s.f.store.TakeLease(ctx, lifecycle.Lease{Name: sweepLease, Holder: s.f.replica, Version: stored.Version})
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		s.lease.Holder = "" // somebody else took it: read again next time
		return nil
	case err != nil:
		// Where nothing can be written, as on a full disk, no agent can report:
		// its silence says nothing.
		s.f.watch.lostStore()
		return fmt.Errorf("take lease %s: %w", sweepLease, err)
	}
	if !ours {
		s.f.log.Info("sweeping from now on", "replica", s.f.replica, "before", stored.Holder)
	}
	s.lease, s.seenAt = taken, now
	return nil
}

// ready reports whether a hand has a sweep under way, or takes up the one that
// has been due the longest.
func (s *Sweeper) ready(h *hand, now time.Time) bool {
	if h.op != nil {
		return true
	}
	var next *schedule
	for _, c := range h.sweeps {
		if !now.Before(c.due) && (next == nil || c.due.Before(next.due)) {
			next = c
		}
	}
	if next == nil {
		return false
	}
	next.due = now.Add(s.f.ops.Jitter(next.every))
	h.of, h.op, h.began = next, next.begin(), now
	return true
}

func (s *Sweeper) untilNext(now time.Time) time.Duration {
	next := s.renewAt
	for _, h := range []hand{s.quick, s.slow} {
		for _, c := range h.sweeps {
			if c.due.Before(next) {
				next = c.due
			}
		}
	}
	return max(next.Sub(now), time.Millisecond)
}

// sweepAgain is when a sweep that failed is tried again, if that is sooner than its
// next turn: what it could not see for the length of an outage is waited for.
const sweepAgain = 30 * time.Second

// sayAgain is how long the same failure of a sweep is not logged again.
const sayAgain = time.Minute

// Sweep runs the sweeper until ctx ends. A sweep that fails is tried again at
// its next turn.
func (f *Fleet) Sweep(ctx context.Context) {
	defer f.sweeping.Store(false)
	s := f.NewSweeper()
	failures := 0
	var said string
	var saidAt time.Time
	for ctx.Err() == nil {
		now := time.Now()
		p, err := s.Step(ctx, now)
		pause := p.Wait
		if err != nil && ctx.Err() == nil {
			if text := err.Error(); text != said || now.Sub(saidAt) >= sayAgain {
				f.log.Error("sweep failed; trying again", "error", err)
				said, saidAt = text, now
			}
			pause = f.ops.Backoff(failures)
			failures++
		} else if p.Wait > 0 {
			failures = 0
		}
		if op.Sleep(ctx, pause) != nil {
			return
		}
	}
}
