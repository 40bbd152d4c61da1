package agent

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Facts are the complete input of a decision. Times are on the store's clock.
type Facts struct {
	// Record is the newest record seen, nil when there never was one.
	Record *lifecycle.Record
	// MissingSince is when a consistent read first found the record gone; zero
	// while it exists or the store does not answer.
	MissingSince time.Time
	// Observed is the state of the host. Blind says that it could not be observed:
	// then Observed is the last known state.
	Observed Observed
	Blind    bool
	Memory   Memory
	// Tried says that a removal was already tried with the record's registration.
	Tried bool
	// Confirmed says that a consistent read was made since there was a reason to end the host.
	Confirmed bool
	// BootTimeout is how long the host waits for its first record.
	BootTimeout time.Duration
}

// Decision is the one effect to begin now, its reason, and what to report.
type Decision struct {
	Effect Effect
	// Reason is a sentence for the log and the status line.
	Reason string
	Answer Answer
	// RecheckAt is when to decide again if nothing changes; zero for never.
	RecheckAt time.Time
}

// Effect is something that the agent does to its host.
type Effect string

// The effects.
const (
	EffectNone       Effect = ""
	EffectPrepare    Effect = "prepare"
	EffectAllow      Effect = "allow"
	EffectRegister   Effect = "register"
	EffectListen     Effect = "listen"
	EffectStop       Effect = "stop"
	EffectDeregister Effect = "deregister"
	EffectClean      Effect = "clean"
	EffectConfirm    Effect = "confirm" // read the record consistently
	EffectPowerOff   Effect = "power_off"
)

// Answer is what the report says about the record's assignment.
type Answer struct {
	Signal lifecycle.Signal
	Cause  lifecycle.Cause
	Detail string
}

// Decide is the agent's only decision function. It is pure and total.
func Decide(f Facts, now time.Time) Decision {
	v := decider{Facts: f, now: now}
	if reason := v.mustEnd(); reason != "" {
		return v.end(reason)
	}
	d := v.keepInStep()
	d.RecheckAt = earliest(d.RecheckAt, v.endsAt())
	return d
}

// decider is the facts and the time, with the predicates that decisions use.
type decider struct {
	Facts
	now time.Time
}

func (v decider) keepInStep() Decision {
	switch {
	case v.Record == nil:
		return wait("there is no record of this host yet")
	case v.Blind:
		return wait("the host cannot be looked at; whatever runs is left alone")
	}
	switch v.Record.State {
	case lifecycle.StateCreated, lifecycle.StateClaimed, lifecycle.StateRunning:
		return v.serve()
	case lifecycle.StateIdle:
		return v.release()
	}
	return wait(fmt.Sprintf("state %q is not one of ours", v.Record.State))
}

// busy reports whether a job may be running. A host that cannot be observed is busy.
func (v decider) busy() bool { return v.Blind || v.Observed.Busy }

func do(e Effect, reason string) Decision { return Decision{Effect: e, Reason: reason} }

func wait(reason string) Decision { return Decision{Reason: reason} }

func (d Decision) answering(a Answer) Decision {
	d.Answer = a
	return d
}

func (d Decision) recheckAt(t time.Time) Decision {
	d.RecheckAt = t
	return d
}

// usable reports whether the record has an unexpired registration of this kind.
func (v decider) usable(kind lifecycle.RegistrationKind) bool {
	reg := v.Record.Registration
	return reg != nil && reg.Kind == kind && !reached(reg.ExpiresAt, v.now)
}

// refused returns the run whose job was refused on this host, or "".
func (v decider) refused() string {
	if v.Observed.Refused != "" {
		return v.Observed.Refused
	}
	return v.Memory.Refused
}

// retryAt returns when a task that failed because of GitHub is tried again.
func retryAt(p Progress) time.Time { return p.At.Add(doubled(p.Attempt, retryBase, retryCap)) }

// reached reports whether the time t has come. The zero time never comes.
func reached(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// earliest returns the earliest of some times, ignoring zero ones.
func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if first.IsZero() || (!t.IsZero() && t.Before(first)) {
			first = t
		}
	}
	return first
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
