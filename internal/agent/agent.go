package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Options are what an agent is made of.
type Options struct {
	// HostKey is the key of the agent's two rows.
	HostKey string
	Store   Store
	Host    Host
	State   State
	// Version is reported as agentVersion.
	Version string
	// Intervals: DefaultIntervals when zero.
	Intervals Intervals
	// BootTimeout: DefaultBootTimeout when zero.
	BootTimeout time.Duration
	// Rand is the source of all jitter; nil means one of its own.
	Rand *rand.Rand
	// Logger: nil logs nothing.
	Logger hclog.Logger
}

// Agent keeps one host in step with its record. It is not safe for concurrent
// use: whoever calls Step is its only goroutine.
type Agent struct {
	o   Options
	log hclog.Logger

	memory   Memory
	saved    Memory
	loadErr  error // what was wrong with the memory at the start
	saveErr  error
	scene    Scene // on the store's clock
	blindErr error

	reading reading
	effects effects
	telling telling
}

// New returns an agent that goes on from what it finds in the State. A state
// that cannot be used is no error: it is rebuilt from the host and the record.
func New(o Options) (*Agent, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.setDefaults()
	a := &Agent{o: o, log: o.Logger}
	// The first read of the record must not be an old one: what this agent
	// saw last may be lost.
	a.reading.consistent = true
	a.memory, a.loadErr = o.State.Load()
	if a.loadErr != nil {
		a.memory = Memory{}
		a.log.Error("agent state unusable, rebuilding it from the host and the record", "error", a.loadErr)
	}
	a.saved = a.memory
	a.reading.record = a.memory.Record
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
	if o.Intervals == (Intervals{}) {
		o.Intervals = DefaultIntervals()
	}
	if o.BootTimeout <= 0 {
		o.BootTimeout = DefaultBootTimeout
	}
	if o.Rand == nil {
		o.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
}

// Step reads the record when that is due, looks at the host, does at most one
// effect, and reports when something changed or a heartbeat is due. It returns
// when to call it again, at the latest; sooner is always fine. over is true
// once the host has been powered off. now is the host's own clock.
func (a *Agent) Step(ctx context.Context, now time.Time) (next time.Time, over bool) {
	a.look(ctx, now)
	a.expectRelease(now)
	a.readIfDue(ctx, now)
	d := Decide(a.facts(), a.storeTime(now))
	a.remember(d)
	began, over := a.act(ctx, now, d)
	if began {
		return now, over
	}
	a.tell(ctx, now, d.Answer)
	return a.next(now, d), false
}

// stopping: the agent was told to end in the middle of a call, and that the call
// failed means nothing.
func stopping(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// look takes in the scene. A host that cannot be seen is what it last was.
func (a *Agent) look(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	scene, err := a.o.Host.Look(ctx)
	if err != nil {
		if a.blindErr == nil && !stopping(ctx) {
			a.log.Error("cannot look at the host", "error", err)
		}
		a.blindErr = err
		a.memory = a.memory.booted(a.memory.BootID, now.Add(a.memory.ClockOffset))
		return
	}
	a.blindErr = nil
	a.scene = scene.shifted(a.memory.ClockOffset)
	a.memory = a.memory.booted(scene.BootID, now.Add(a.memory.ClockOffset))
	if scene.Refused != "" && a.memory.Refused == "" {
		a.log.Warn("a job of another run was refused, the host will not be used again", "run", scene.Refused)
		a.memory.Refused = scene.Refused
	}
	a.scene.Job = a.withoutSecrets(scene.Job)
	if a.reading.record != nil { // before the first record nothing is told
		a.memory = a.memory.prepared(a.scene.Prepared, a.storeTime(now))
	}
}

// storeTime is the host's clock corrected by the store's.
func (a *Agent) storeTime(now time.Time) time.Time { return now.Add(a.memory.ClockOffset) }

func (a *Agent) facts() Facts {
	return Facts{
		Record: a.reading.record, MissingSince: a.reading.missingSince, Scene: a.scene, Blind: a.blindErr != nil,
		Memory: a.memory, Tried: a.effects.tried(a.reading.record), Confirmed: a.reading.confirmed,
		BootTimeout: a.o.BootTimeout,
	}
}

// remember saves the memory when it changed, before the effect that follows
// from it. A disk that takes nothing is reported and stops no job.
func (a *Agent) remember(d Decision) {
	if d.Effect != EffectConfirm && d.Effect != EffectPowerOff {
		a.reading.confirmed = false
	}
	if d.Effect == EffectListen && a.scene.Listener.Phase == ListenerExited && !a.effects.waiting(d.Effect) {
		a.memory = a.memory.restarted(a.scene.Listener)
	}
	if a.memory.same(a.saved) && a.saveErr == nil {
		return
	}
	err := a.o.State.Save(a.memory)
	if err != nil && a.saveErr == nil {
		a.log.Error("cannot save the agent state", "error", err)
	}
	if a.saveErr = err; err == nil {
		a.saved = a.memory
	}
}

// next is when the agent has something to do again.
func (a *Agent) next(now time.Time, d Decision) time.Time {
	next := earliest(a.reading.at, a.telling.at)
	next = earliest(next, a.effects.notBefore)
	if !d.Look.IsZero() {
		next = earliest(next, d.Look.Add(-a.memory.ClockOffset))
	}
	if a.blindErr != nil || a.scene.moving() {
		next = earliest(next, now.Add(lookInterval))
	}
	next = earliest(next, a.statusChange(now))
	return latest(next, now)
}

// faults says what is wrong with the agent itself, for the report's detail.
func (a *Agent) faults() string {
	var all []error
	if a.blindErr != nil {
		all = append(all, fmt.Errorf("look at host: %w", a.blindErr))
	}
	if a.saveErr != nil {
		all = append(all, a.saveErr)
	}
	if a.effects.err != nil {
		all = append(all, a.effects.err)
	}
	if len(all) == 0 && a.loadErr != nil {
		all = append(all, a.loadErr)
	}
	if len(all) == 0 {
		return ""
	}
	return errors.Join(all...).Error()
}

func (a *Agent) state() lifecycle.State {
	if a.reading.record == nil {
		return ""
	}
	return a.reading.record.State
}
