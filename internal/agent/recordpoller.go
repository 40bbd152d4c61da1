package agent

import (
	"context"
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// recordPoller is what the agent knows about its record, and when it reads again.
type recordPoller struct {
	// record is the newest one seen, with its registration if this agent has read it.
	record   *lifecycle.Record
	nextRead time.Time
	// consistent says that the next read must be strongly consistent.
	consistent   bool
	missingSince time.Time // on the store's clock
	confirmed    bool
	failures     int
	awaySince    time.Time // time of the first failure, on the store's clock
	jobWaits     bool      // a job waits in its hook for the claim of its run
}

func (a *Agent) readIfDue(ctx context.Context, now time.Time) {
	if !now.Before(a.poller.nextRead) {
		a.read(ctx, now)
	}
}

// confirm reads the record consistently. It counts as confirmed even if that fails.
func (a *Agent) confirm(ctx context.Context, now time.Time) {
	a.poller.consistent = true
	a.read(ctx, now)
	a.poller.confirmed = true
}

func (a *Agent) read(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	consistent := a.poller.consistent
	r, at, err := a.o.Store.Record(ctx, consistent)
	if !at.IsZero() {
		a.setClock(now, at.Sub(now))
	}
	switch {
	case err == nil:
		a.accept(r, now, consistent)
		a.readSucceeded(now)
	case errors.Is(err, lifecycle.ErrNotFound):
		a.missing(now, consistent)
		a.readSucceeded(now)
	default:
		a.readFailed(ctx, now, err)
	}
}

// setClock adopts the store's clock. Small differences are the duration of the call and the store's rounding.
func (a *Agent) setClock(now time.Time, offset time.Duration) {
	if (offset - a.memory.ClockOffset).Abs() < offsetSlack {
		return
	}
	a.log.Info("clock corrected by the store's", logkey.Offset, offset)
	moved := offset - a.memory.ClockOffset
	a.moveClock(moved)
	if moved >= asleepAfter { // the host's clock stood still with its machine
		a.resumed(a.storeTime(now))
	}
}

// moveClock moves the store's clock against the host's, and all times by it.
func (a *Agent) moveClock(by time.Duration) {
	a.observed = a.observed.shifted(by)
	a.poller.awaySince = shift(a.poller.awaySince, by)
	a.memory = a.memory.clockMoved(by)
}

// accept adopts a record that is not older than the one seen last. An older one is a late answer of the store, unless
// the read was consistent: then an older state of the table was restored. If that is still of the assignment that the
// host has, the host goes on from it. Otherwise the record knows nothing of what the host has done since, and the
// host's own counts as gone: a job that runs may end.
func (a *Agent) accept(r lifecycle.Record, now time.Time, consistent bool) {
	restored := consistent && a.memory.continues(r)
	switch {
	case !a.memory.accepts(r) && consistent && !restored:
		if a.poller.missingSince.IsZero() {
			a.log.Error("the record of this host is older than what it has done: an older state was restored", logkey.Version, r.Version, logkey.Assignment, r.Assignment)
			a.poller.missingSince = a.storeTime(now)
		}
		return
	case !a.memory.accepts(r) && !restored:
		a.poller.consistent = true
		a.log.Debug("older record ignored", logkey.Version, r.Version, logkey.Previous, a.memory.Record.Version)
		return
	}
	a.poller.missingSince, a.poller.consistent = time.Time{}, false
	if old := a.memory.Record; old == nil || old.Version != r.Version {
		a.log.Info("record changed", logkey.State, r.Condition(), logkey.Assignment, r.Assignment, logkey.Run, r.RunID, logkey.Version, r.Version)
		a.memory = a.memory.seen(r)
	}
	a.poller.record = &r
}

// missing handles an answer without a record. Before the first record that is
// normal. After it, only a consistent read proves that the record is gone.
func (a *Agent) missing(now time.Time, consistent bool) {
	switch {
	case a.poller.record == nil:
		a.poller.consistent = false
	case !consistent:
		a.poller.consistent = true
	case a.poller.missingSince.IsZero():
		a.log.Error("the record of this host is gone")
		a.poller.missingSince = a.storeTime(now)
	}
}

func (a *Agent) readSucceeded(now time.Time) {
	if a.poller.failures > 0 {
		a.log.Info("store answers again", logkey.Failures, a.poller.failures)
	}
	a.poller.failures, a.poller.awaySince = 0, time.Time{}
	a.poller.nextRead = now.Add(spread(a.readInterval(), a.o.Rand))
}

// expectRelease reads sooner once the host's job is over: a release may be coming, and
// the next run may be waiting for this host.
func (a *Agent) expectRelease(now time.Time) {
	idle := a.o.Intervals.ReadIdle
	longest := now.Add(time.Duration(float64(idle) * (1 + jitter)))
	if a.readInterval() == idle && a.poller.failures == 0 && a.poller.nextRead.After(longest) {
		a.poller.nextRead = now.Add(spread(idle, a.o.Rand))
	}
}

// expectClaim reads at once when a job has come to a host in standby: its run has claimed the host, and the job waits
// in its hook until the agent knows that. The claim is written before GitHub gets the labels that bring the job, so a
// consistent read finds it.
func (a *Agent) expectClaim(now time.Time) {
	waits := a.observed.Busy && a.observed.Allowed.Standby
	if waits && !a.poller.jobWaits {
		a.poller.nextRead, a.poller.consistent = now, true
	}
	a.poller.jobWaits = waits
}

// expectChange forgets what an idle host knew before it booted again: see forgetIdle.
func (a *Agent) expectChange(bootID string) {
	if a.memory.BootID != "" && a.memory.BootID != bootID {
		a.forgetIdle()
	}
}

// expectResume does the same in the middle of a boot, once the machine was hibernated, and reads at once. Only the wall clock shows that: timers and
// the monotonic clock stand still while a machine sleeps.
func (a *Agent) expectResume(now time.Time) {
	now = now.Round(0)
	if !a.steppedAt.IsZero() && now.Sub(a.steppedAt) >= asleepAfter {
		a.log.Info("no step for long: the machine was hibernated", logkey.Since, a.steppedAt)
		if moved := a.memory.ClockOffset - a.steppedOffset; moved >= asleepAfter {
			a.moveClock(-moved) // it slept in a call of that step: the time of the step is from before, and the store's date from after
		}
		a.resumed(a.storeTime(now))
		a.poller.nextRead = now
	}
	a.steppedAt, a.steppedOffset = now, a.memory.ClockOffset
}

// resumed has an idle host wait for its record as after a boot, from now on.
func (a *Agent) resumed(now time.Time) {
	if a.forgetIdle() {
		a.memory.StartedAt = now
	}
}

// forgetIdle forgets what an idle host knew of its record: its machine may have been stopped long after its deadline was read, and is
// started for a run. Until the host has read its record it waits as long as a new one. One that an operator holds is not stopped, and stays
// held. It reports whether the host is idle.
func (a *Agent) forgetIdle() bool {
	r := a.poller.record
	idle := r != nil && r.State == lifecycle.StateIdle && r.Hold.IsZero()
	if idle {
		a.poller.record, a.poller.consistent = nil, true
		a.reporter.nextReport = time.Time{} // there is none before the record is read
	}
	return idle
}

// readFailed backs off. The runner is not touched: an unavailable store says nothing about the run.
func (a *Agent) readFailed(ctx context.Context, now time.Time, err error) {
	if a.poller.failures == 0 {
		if !stopping(ctx) {
			a.log.Warn("cannot read the record", logkey.Error, err)
		}
		a.poller.awaySince = a.storeTime(now)
	}
	a.poller.failures++
	pause := backoff(a.poller.failures+1, a.readInterval(), storeBackoffCap, a.o.Rand)
	if a.poller.jobWaits { // its hook does so for a few seconds alone
		pause = min(pause, spread(a.readInterval(), a.o.Rand))
	}
	a.poller.nextRead = now.Add(pause)
}

func (a *Agent) readInterval() time.Duration {
	if a.state() == lifecycle.StateRunning && (decider{Facts: a.facts()}).busy() {
		return a.o.Intervals.ReadRunning
	}
	if r := a.poller.record; r != nil && (r.Hot() || r.Resting()) && !a.observed.Busy {
		return max(a.o.Intervals.ReadStandby, a.o.Intervals.ReadIdle)
	}
	return a.o.Intervals.ReadIdle
}
