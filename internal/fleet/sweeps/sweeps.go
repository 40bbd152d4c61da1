// Package sweeps holds the sweeps over hosts, machines and registrations, and the
// sweeper that runs all sweeps of a fleet while its replica holds the lease.
package sweeps

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/fleet/quota"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy/runnerage"
)

// Sweeps begins sweeps. Its exported fields are its parts: they are set before the
// first call and not changed after it. It is safe for concurrent use.
type Sweeps struct {
	Store   ports.Store
	Compute ports.Machines
	GitHub  ports.GitHub
	Hosts   *hosts.Hosts
	Quota   *quota.Ledger

	// Resumer resumes a request that stood still.
	Resumer func(lifecycle.Request) op.Op
	// LostJobs provides for jobs that lost their host; nil: there are no jobs.
	LostJobs LostHostJobs
	// Notices are what EC2 announces of machines; nil: nothing is received.
	Notices ports.Notices
	// Releases lists the releases of actions/runner; nil: the age of runners is not checked.
	Releases func(context.Context) ([]runnerage.Release, error)
	// Repositories are those that the GitHub sweep goes through.
	Repositories []string

	Pools   map[string]ports.Pool
	HostKey func(instanceID string) string
	// Replica names this process in the lease.
	Replica  string
	Timing   ports.Timing
	Log      hclog.Logger
	Observer ports.Observer
	Ops      *op.Driver

	versions runnerVersions
	// guarding has the names of the mass guards that hold, as this replica saw it last.
	guarding sync.Map
	// busySince has, by host key, when this replica first saw a job on a machine without a record.
	busySince sync.Map
	// sweeping: this replica holds the lease of the sweeps.
	sweeping atomic.Bool
}

// sweepLease is the lease that says which replica sweeps. It only saves work: two replicas that
// sweep at once do no harm.
const sweepLease = "sweep"

// Sweeper runs the sweeps at their intervals while it holds the lease.
type Sweeper struct {
	env *Sweeps

	lease      replicas.Lease // as last read
	seenAt     time.Time      // when its version last moved, on our own clock
	renewAt    time.Time      // when to renew or read the lease again
	clockWrong bool           // the clock of this machine was wrong when it was last checked

	// The slow sweeps get a step whenever the quick ones have come to the end of
	// one: a sweep that deletes a thousand registrations, at the pace that GitHub
	// allows, does not keep hosts from being looked at, nor is it kept for ever.
	quick, slow lane
	slowsTurn   bool
}

// slowFrom is the interval from which on a sweep is a slow one: so long it may take without being missed.
const slowFrom = time.Minute

// lane runs its sweeps one after the other, each to its end.
type lane struct {
	sweeps []*schedule
	op     op.Op // nil: none is under way
	of     *schedule
	began  time.Time
	// ctx is that in which its steps are followed, and end is called with its error; nil: it has taken no step.
	ctx context.Context
	end func(error)
}

// step does one step of the sweep that is under way.
func (l *lane) step(ctx context.Context, ops *op.Driver, now time.Time) (op.Progress, error) {
	if l.end == nil {
		l.ctx, l.end = ops.Begin(ctx, op.Subject{Name: "sweep " + l.of.Name})
	}
	progress, err := l.op.Step(l.ctx, now)
	if err != nil || progress.Done || progress.Wait > 0 {
		l.stop(err)
	}
	return progress, err
}

// stop ends the sweep that is under way, if there is one.
func (l *lane) stop(err error) {
	if l.end != nil {
		l.end(err)
	}
	l.op, l.ctx, l.end = nil, nil, nil
}

// Kind is a row of the table of sweeps, from which the sweeper and Refresh work.
type Kind struct {
	// Name is that of the sweep in metrics, logs and docs/architecture.md.
	Name string
	// Every is the interval at which the sweeper begins one. From slowFrom on the
	// sweep runs in the slow lane.
	Every time.Duration
	New   func() op.Op
	// Slow: it runs in the slow lane whatever its interval, since a step of it may wait for GitHub and nothing waits for it.
	Slow bool
	// Apart: the sweep runs in a loop of its own, and not in the sweeper's.
	Apart bool
	// Aside: nothing waits for what it does, so a refresh leaves it out.
	Aside bool
	// Dry: with Recorder.Dry set the sweep decides and changes nothing. Others are left out of a dry run.
	Dry bool
	// Measures: the sweep only measures, so its failure does not fail a refresh.
	Measures bool
}

// schedule is a kind of sweep and when it is next due.
type schedule struct {
	Kind
	due time.Time
}

// NewSweeper returns a sweeper of a table that does not hold the lease yet.
func (sw *Sweeps) NewSweeper(table []Kind) *Sweeper {
	s := &Sweeper{env: sw}
	for _, k := range table {
		if k.Apart {
			continue
		}
		l := &s.quick
		if k.Every >= slowFrom || k.Slow {
			l = &s.slow
		}
		l.sweeps = append(l.sweeps, &schedule{Kind: k})
	}
	return s
}

// Step does one step: of the lease when it is time, else of a sweep that is
// under way or due. It is never done. While the clock is wrong it only reads the lease, which shows when the clock is right again.
func (s *Sweeper) Step(ctx context.Context, now time.Time) (op.Progress, error) {
	if !now.Before(s.renewAt) {
		return op.Again, s.keepLease(ctx, now)
	}
	if s.wrongClock() {
		return op.Wait(s.renewAt.Sub(now)), nil
	}
	if !s.holds() {
		s.quick.stop(nil)
		s.slow.stop(nil)
		return op.Wait(s.renewAt.Sub(now)), nil
	}
	h := s.lane(now)
	if h == nil {
		return op.Wait(s.untilNext(now)), nil
	}
	progress, err := h.step(ctx, s.env.Ops, now)
	if h.op == nil {
		s.env.Observer.Swept(h.of.Name, now.Sub(h.began), err)
	}
	s.slowsTurn = h == &s.quick && h.op == nil
	if err != nil {
		// One that came to its end went past something that will fail again.
		if retry := now.Add(s.env.Ops.Jitter(sweepAgain)); !progress.Done && retry.Before(h.of.due) {
			h.of.due = retry
		}
		return op.Again, fmt.Errorf("%s sweep: %w", h.of.Name, err)
	}
	return op.Again, nil
}

// lane is the one whose sweep gets the next step; nil: nothing is due.
func (s *Sweeper) lane(now time.Time) *lane {
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

func (s *Sweeper) holds() bool { return s.lease.Holder == s.env.Replica }

// A holder renews its lease three times in the time that it lasts, with jitter, and the others look as often. So one sees a renewal up to
// renewedWithin of that time late, and takes over when the version has stood still for the rest: a lease after the last renewal at the latest,
// and never from one that renews in time.
const (
	renewals      = 3
	renewedWithin = 11.0 / 30 // a third, and a tenth of it
)

// standsStill is how long the version of another's lease stands still before it is taken over.
func (s *Sweeper) standsStill() time.Duration {
	return time.Duration(float64(s.env.Timing.Lease) * (1 - renewedWithin))
}

// keepLease renews our lease, or takes over one whose version stood still for too long.
func (s *Sweeper) keepLease(ctx context.Context, now time.Time) error {
	s.renewAt = now.Add(s.env.Ops.Jitter(s.env.Timing.Lease / renewals))
	defer func() { s.env.sweeping.Store(s.holds()) }()
	stored, err := s.env.Store.Lease(ctx, sweepLease)
	if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
		s.env.Hosts.LostStore()
		return fmt.Errorf("read lease %s: %w", sweepLease, err)
	}
	s.env.Hosts.StoreAnswers(now)
	if stored.Version != s.lease.Version || stored.Holder != s.lease.Holder || s.seenAt.IsZero() {
		s.lease, s.seenAt = stored, now
	}
	if s.wrongClock() {
		return nil
	}
	ours := stored.Holder == s.env.Replica
	free := stored.Version == 0 || now.Sub(s.seenAt) >= s.standsStill()
	if !ours && !free {
		if at := s.seenAt.Add(s.standsStill()); at.Before(s.renewAt) {
			s.renewAt = at // not a look later
		}
		return nil
	}
	taken, err := s.env.Store.TakeLease(ctx, replicas.Lease{Name: sweepLease, Holder: s.env.Replica, Version: stored.Version})
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		s.lease.Holder = "" // another replica took it: read again next time
		return nil
	case err != nil:
		// Where nothing can be written, as on a full disk, no agent can report: its silence says nothing.
		s.env.Hosts.LostStore()
		return fmt.Errorf("take lease %s: %w", sweepLease, err)
	}
	if !ours {
		s.env.Log.Info("sweeping from now on", logkey.Replica, s.env.Replica, logkey.Previous, stored.Holder)
	}
	s.lease, s.seenAt = taken, now
	return nil
}

// wrongClock reports whether the clock of this machine is wrong. Then the sweeper holds the lease no more, and another replica takes it, by
// its version. What was under way is in the store.
func (s *Sweeper) wrongClock() bool {
	err := s.env.Ops.CheckClock()
	switch before := s.clockWrong; {
	case err != nil && !before:
		s.env.Log.Error("wrong clock; nothing is done until it is right", logkey.Error, err)
	case err == nil && before:
		s.env.Log.Info("clock is right again")
	}
	if s.clockWrong = err != nil; s.clockWrong {
		s.lease.Holder = ""
		s.quick.stop(err)
		s.slow.stop(err)
		s.env.sweeping.Store(false)
	}
	return s.clockWrong
}

// ready reports whether a lane has a sweep under way, or takes up the one that has been due the longest.
func (s *Sweeper) ready(h *lane, now time.Time) bool {
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
	next.due = now.Add(s.env.Ops.Jitter(next.Every))
	h.of, h.op, h.began = next, next.New(), now
	return true
}

func (s *Sweeper) untilNext(now time.Time) time.Duration {
	next := s.renewAt
	for _, h := range []lane{s.quick, s.slow} {
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

// Sweep runs a sweeper of the table until ctx ends. A sweep that fails is tried again at its next turn.
func (sw *Sweeps) Sweep(ctx context.Context, table []Kind) {
	defer sw.sweeping.Store(false)
	s := sw.NewSweeper(table)
	defer s.quick.stop(nil)
	defer s.slow.stop(nil)
	failures := 0
	var said string
	var saidAt time.Time
	for ctx.Err() == nil {
		now := time.Now()
		p, err := s.Step(ctx, now)
		pause := p.Wait
		if err != nil && ctx.Err() == nil {
			if text := err.Error(); text != said || now.Sub(saidAt) >= op.RepeatLogAfter {
				sw.Log.Error("sweep failed; trying again", logkey.Error, err)
				said, saidAt = text, now
			}
			pause = sw.Ops.Backoff(failures)
			failures++
		} else if p.Wait > 0 {
			failures = 0
		}
		if op.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// Sweeping reports whether this replica holds the lease of the sweeps.
func (sw *Sweeps) Sweeping() bool { return sw.sweeping.Load() }
