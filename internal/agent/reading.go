package agent

import (
	"context"
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// reading is what the agent knows of its record and when it reads again.
type reading struct {
	// record is the newest one seen, with its registration if it was read by
	// this agent.
	record *lifecycle.Record
	at     time.Time
	// consistent: the next read must not be an old one.
	consistent   bool
	missingSince time.Time // on the store's clock
	confirmed    bool
	failures     int
	awaySince    time.Time // of the first of the failures, on the store's clock
}

func (a *Agent) readIfDue(ctx context.Context, now time.Time) {
	if !now.Before(a.reading.at) {
		a.read(ctx, now)
	}
}

// confirm reads the record consistently, whatever comes of it.
func (a *Agent) confirm(ctx context.Context, now time.Time) {
	a.reading.consistent = true
	a.read(ctx, now)
	a.reading.confirmed = true
}

func (a *Agent) read(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	consistent := a.reading.consistent
	r, at, err := a.o.Store.Record(ctx, consistent)
	if !at.IsZero() {
		a.setClock(at.Sub(now))
	}
	switch {
	case err == nil:
		a.accept(r)
		a.readSucceeded(now)
	case errors.Is(err, lifecycle.ErrNotFound):
		a.missing(now, consistent)
		a.readSucceeded(now)
	default:
		a.readFailed(ctx, now, err)
	}
}

// setClock takes over the store's clock. Small differences are the call's own
// time and the store's rounding.
func (a *Agent) setClock(offset time.Duration) {
	if (offset - a.memory.ClockOffset).Abs() < offsetSlack {
		return
	}
	a.log.Info("clock corrected by the store's", "offset", offset)
	moved := offset - a.memory.ClockOffset
	a.scene = a.scene.shifted(moved)
	a.reading.awaySince = shift(a.reading.awaySince, moved)
	a.memory = a.memory.clockMoved(moved)
}

func (a *Agent) accept(r lifecycle.Record) {
	a.reading.missingSince, a.reading.consistent = time.Time{}, false
	if !a.memory.accepts(r) {
		a.log.Debug("older record ignored", "version", r.Version, "seen", a.memory.Record.Version)
		return
	}
	if old := a.memory.Record; old == nil || old.Version != r.Version {
		a.log.Info("record", "state", r.Condition(), "assignment", r.Assignment, "run", r.RunID, "version", r.Version)
		a.memory = a.memory.seen(r)
	}
	a.reading.record = &r
}

// missing: before the first record that is normal. After it, only a consistent
// read tells.
func (a *Agent) missing(now time.Time, consistent bool) {
	switch {
	case a.reading.record == nil:
		a.reading.consistent = false
	case !consistent:
		a.reading.consistent = true
	case a.reading.missingSince.IsZero():
		a.log.Error("the record of this host is gone")
		a.reading.missingSince = a.storeTime(now)
	}
}

func (a *Agent) readSucceeded(now time.Time) {
	if a.reading.failures > 0 {
		a.log.Info("store answers again", "failures", a.reading.failures)
	}
	a.reading.failures, a.reading.awaySince = 0, time.Time{}
	a.reading.at = now.Add(spread(a.readInterval(), a.o.Rand))
}

// expectRelease brings the next read forward when the host's one job is over:
// a release is coming, and the next job may be waiting for this host.
func (a *Agent) expectRelease(now time.Time) {
	soon := now.Add(a.o.Intervals.ReadIdle)
	if a.jobOver() && a.reading.failures == 0 && a.reading.at.After(soon) {
		a.reading.at = soon
	}
}

func (a *Agent) jobOver() bool { return view{Facts: a.facts()}.jobOver() }

// readFailed backs off. The runner is not touched: the store being away says
// nothing about the run.
func (a *Agent) readFailed(ctx context.Context, now time.Time, err error) {
	if a.reading.failures == 0 {
		if !stopping(ctx) {
			a.log.Warn("cannot read the record", "error", err)
		}
		a.reading.awaySince = a.storeTime(now)
	}
	a.reading.failures++
	a.reading.at = now.Add(backoff(a.reading.failures+1, a.readInterval(), storeBackoffCap, a.o.Rand))
}

func (a *Agent) readInterval() time.Duration {
	if a.state() == lifecycle.StateRunning && !a.jobOver() {
		return a.o.Intervals.ReadRunning
	}
	return a.o.Intervals.ReadIdle
}
