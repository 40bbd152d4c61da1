// Package agent decides what the agent of one host does: it polls the host's record, keeps the host in step with it, and
// reports how that goes in the host's report.
//
// It is level-triggered. Each step looks at the record, at the observed state of the host and at the last report, decides
// on one effect and begins it. The next step finds whatever a step began, even after a restart of the agent. Only Run
// sleeps or reads a clock.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// Options configure an agent.
type Options struct {
	// HostKey is the key of the agent's two rows.
	HostKey string
	Store   Store
	Host    Host
	State   State
	// Version is reported as agentVersion.
	Version string
	// Intervals are DefaultIntervals if zero.
	Intervals Intervals
	// BootTimeout is DefaultBootTimeout if zero.
	BootTimeout time.Duration
	// Rand is the source of all jitter; nil for one of its own.
	Rand *rand.Rand
	// Logger may be nil: nothing is logged then.
	Logger hclog.Logger
}

// Agent keeps one host in step with its record. It is not safe for concurrent
// use: only one goroutine may call Step.
type Agent struct {
	o   Options
	log hclog.Logger

	memory   Memory
	saved    Memory
	loadErr  error // why the memory could not be loaded at the start
	saveErr  error
	observed Observed // on the store's clock
	// refusedWorker is the refused worker seen last, and refusedSince when it was first seen, on the store's clock.
	refusedWorker int
	refusedSince  time.Time
	blindErr      error
	// steppedAt is when the last step began, by the host's wall clock; zero: none did.
	steppedAt time.Time
	// steppedOffset is Memory.ClockOffset as it was then.
	steppedOffset time.Duration

	poller     recordPoller
	effects    effects
	introduced introduced
	reporter   reporter
}

// New returns an agent that continues from what it finds in the State. A state
// that cannot be used is not an error: it is rebuilt from the host and the record.
func New(o Options) (*Agent, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.setDefaults()
	a := &Agent{o: o, log: o.Logger}
	// The first read of the record must be consistent: the newest record that this
	// agent has seen may have been lost.
	a.poller.consistent = true
	a.memory, a.loadErr = o.State.Load()
	if a.loadErr != nil {
		a.memory = Memory{}
		a.log.Error("agent state unusable; rebuilding it from the host and the record", logkey.Error, a.loadErr)
	}
	a.saved = a.memory
	a.poller.record = a.memory.Record
	return a, nil
}

func (o Options) check() error {
	switch {
	case o.HostKey == "":
		return errors.New("make agent: no host key")
	case o.Store == nil, o.Host == nil, o.State == nil:
		return errors.New("make agent: store, host and state are all needed")
	}
	return nil
}

func (o *Options) setDefaults() {
	o.Intervals = cmp.Or(o.Intervals, DefaultIntervals())
	if o.BootTimeout <= 0 {
		o.BootTimeout = DefaultBootTimeout
	}
	o.Rand = cmp.Or(o.Rand, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	o.Logger = cmp.Or(o.Logger, hclog.NewNullLogger())
}

// Step observes the host, reads the record if that is due, begins at most one effect, and reports if
// something changed or a heartbeat is due. It returns when to call it again at the latest; sooner is always
// fine. over is true once the host has been powered off. now is the time of the host's own clock.
func (a *Agent) Step(ctx context.Context, now time.Time) (next time.Time, over bool) {
	a.expectResume(now)
	a.observe(ctx, now)
	a.expectRelease(now)
	a.expectClaim(now)
	a.readIfDue(ctx, now)
	d := Decide(a.facts(), a.storeTime(now))
	a.remember(d)
	a.introduceAgain(ctx)
	began, over := a.act(ctx, now, d)
	if began {
		return now, over
	}
	a.reportIfDue(ctx, now, d.Answer)
	return a.next(now, d), false
}

// stopping reports whether the agent was stopped in the middle of a call: then the
// failure of the call means nothing.
func stopping(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// observe reads the state of the host. A host that cannot be observed counts as unchanged.
func (a *Agent) observe(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	observed, err := a.o.Host.Observe(ctx)
	if err != nil {
		if a.blindErr == nil && !stopping(ctx) {
			a.log.Error("cannot observe the host", logkey.Error, err)
		}
		a.blindErr = err
		a.memory = a.memory.booted(a.memory.BootID, now.Add(a.memory.ClockOffset))
		return
	}
	a.blindErr = nil
	a.expectChange(observed.BootID)
	a.observed = observed.shifted(a.memory.ClockOffset)
	a.memory = a.memory.booted(observed.BootID, now.Add(a.memory.ClockOffset))
	if observed.Refused != "" && a.memory.Refused == "" {
		a.log.Warn("job of another run refused; the host will not be used again", logkey.Run, observed.Refused)
		a.memory.Refused = observed.Refused
	}
	if observed.RefusedWorker != a.refusedWorker {
		a.refusedWorker, a.refusedSince = observed.RefusedWorker, a.storeTime(now)
	}
	a.observed.Job = a.withoutSecrets(observed.Job)
	if a.poller.record != nil { // before the first record nothing is reported
		a.memory = a.memory.prepared(a.observed.Prepared, a.storeTime(now))
	}
}

// storeTime is the host's clock corrected by the store's.
func (a *Agent) storeTime(now time.Time) time.Time { return now.Add(a.memory.ClockOffset) }

func (a *Agent) facts() Facts {
	return Facts{
		Record: a.poller.record, MissingSince: a.poller.missingSince, Observed: a.observed, Blind: a.blindErr != nil,
		Memory: a.memory, RefusedSince: a.refusedSince, Tried: a.effects.tried(a.poller.record), Confirmed: a.poller.confirmed,
		BootTimeout: a.o.BootTimeout,
	}
}

// remember saves the memory if it changed, before the effect that follows from
// it. A disk that cannot be written is reported and stops no job.
func (a *Agent) remember(d Decision) {
	if d.Effect != EffectConfirm && d.Effect != EffectPowerOff {
		a.poller.confirmed = false
	}
	if d.Effect == EffectListen && a.observed.Listener.Phase == ListenerExited && !a.effects.waiting(d.Effect) {
		a.memory = a.memory.restarted(a.observed.Listener)
	}
	if a.memory.same(a.saved) && a.saveErr == nil {
		return
	}
	err := a.o.State.Save(a.memory)
	if err != nil && a.saveErr == nil {
		a.log.Error("cannot save the agent state", logkey.Error, err)
	}
	if a.saveErr = err; err == nil {
		a.saved = a.memory
	}
}

// next returns when the agent has something to do again.
func (a *Agent) next(now time.Time, d Decision) time.Time {
	next := earliest(a.poller.nextRead, a.reporter.nextReport, a.effects.notBefore, a.statusChange(now))
	if !d.RecheckAt.IsZero() {
		next = earliest(next, d.RecheckAt.Add(-a.memory.ClockOffset))
	}
	if a.blindErr != nil || a.observed.changing() {
		next = earliest(next, now.Add(observeInterval))
	}
	return latest(next, now)
}

// faults returns what is wrong with the agent itself, for the report's detail.
func (a *Agent) faults() string {
	var blind error
	if a.blindErr != nil {
		blind = fmt.Errorf("observe host: %w", a.blindErr)
	}
	err := errors.Join(blind, a.saveErr, a.effects.err)
	if err == nil {
		err = a.loadErr
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

func (a *Agent) state() lifecycle.State {
	if a.poller.record == nil {
		return ""
	}
	return a.poller.record.State
}

// Waker tells Run when a step is worth making before it is due, and is called after every step.
type Waker struct {
	// Changed receives a value when something on the host may have changed. It may
	// be nil; then changes are noticed within a second.
	Changed <-chan struct{}
	// Stepped is called after every step, for a watchdog: it shows that the
	// agent's own loop advances. It may be nil.
	Stepped func(at time.Time)
	// Status is called with the status line (see Status) after a step that changed it. It may be nil.
	Status func(line string)
}

// Run makes steps until the host is powered off, and returns nil, or until ctx is done, and returns its
// error. The runner is left alone in either case: a restarted agent finds it again.
func (a *Agent) Run(ctx context.Context, w Waker) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		case <-w.Changed:
		}
		// Two cases may have been ready at once. Nothing is begun once ctx is done.
		if err := ctx.Err(); err != nil {
			return err
		}
		now := time.Now()
		next, over := a.Step(ctx, now)
		if w.Status != nil {
			if line := a.Status(now); line != said {
				said = line
				w.Status(line)
			}
		}
		if w.Stepped != nil {
			w.Stepped(now)
		}
		if over {
			return nil
		}
		timer.Reset(time.Until(next))
	}
}
