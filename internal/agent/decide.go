package agent

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Facts are all that a decision rests on. Times are the store's.
type Facts struct {
	// Record is the newest record seen, nil when there never was one.
	Record *lifecycle.Record
	// MissingSince is since when a consistent read says that the record is
	// gone; zero while it is there or the store is silent.
	MissingSince time.Time
	// Scene is the host as it was just seen. Blind says that it could not be
	// looked at: then the scene is the last one known.
	Scene  Scene
	Blind  bool
	Memory Memory
	// Tried says that the record's registration was already used once.
	Tried bool
	// Confirmed says that the store was asked for a consistent read since
	// there was a reason to end the host.
	Confirmed bool
	// BootTimeout is how long the host waits for its first record.
	BootTimeout time.Duration
}

// Decision is the one effect to do now, why, and what to answer.
type Decision struct {
	Effect Effect
	// Why is a sentence for the log.
	Why    string
	Answer Answer
	// Look is when to decide again if nothing changes; zero: no such time.
	Look time.Time
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

// Decide is the agent's one decision function. It is pure and total.
func Decide(f Facts, now time.Time) Decision {
	v := view{Facts: f, now: now}
	if why := v.mustEnd(); why != "" {
		return v.end(why)
	}
	d := v.keepInStep()
	d.Look = earliest(d.Look, v.endsAt())
	return d
}

// view is the facts with the questions that the states ask of them.
type view struct {
	Facts
	now time.Time
}

func (v view) keepInStep() Decision {
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

// busy: what cannot be seen is busy.
func (v view) busy() bool { return v.Blind || v.Scene.Busy }

func do(e Effect, why string) Decision { return Decision{Effect: e, Why: why} }

func wait(why string) Decision { return Decision{Why: why} }

func (d Decision) answering(a Answer) Decision {
	d.Answer = a
	return d
}

func (d Decision) lookAt(t time.Time) Decision {
	d.Look = t
	return d
}

// usable reports whether the record brings a registration of one of the kinds
// that has not expired.
func (v view) usable(kinds ...lifecycle.RegistrationKind) bool {
	reg := v.Record.Registration
	if reg == nil || reached(reg.ExpiresAt, v.now) {
		return false
	}
	for _, k := range kinds {
		if reg.Kind == k {
			return true
		}
	}
	return false
}

// refused names the run whose job was refused on this host, or "".
func (v view) refused() string {
	if v.Scene.Refused != "" {
		return v.Scene.Refused
	}
	return v.Memory.Refused
}

// retryAt is when something that GitHub made fail is tried again.
func retryAt(p Progress) time.Time { return p.At.Add(doubled(p.Attempt, retryBase, retryCap)) }

// reached reports whether the time t has come; no time never comes.
func reached(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// earliest returns the earlier of two times, passing over a zero one.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
