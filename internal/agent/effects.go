package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// effects is what the agent remembers of the effects it tried: enough not to repeat one in a tight loop.
type effects struct {
	last      Effect
	failures  int
	err       error
	notBefore time.Time
	// token is the secret with which the last removal was tried.
	token lifecycle.Secret
}

// waiting reports whether the effect has to wait for its next attempt.
func (e effects) waiting(effect Effect) bool { return e.last == effect && !e.notBefore.IsZero() }

func (e effects) tried(r *lifecycle.Record) bool {
	return r != nil && r.Registration != nil && r.Registration.Secret == e.token
}

// act begins the decision's effect. began is false if there was nothing to do, or
// if the effect failed or is repeated and must wait.
func (a *Agent) act(ctx context.Context, now time.Time, d Decision) (began, over bool) {
	e := &a.effects
	if d.Effect != e.last {
		*e = effects{last: d.Effect, token: e.token}
	}
	if d.Effect == EffectNone || now.Before(e.notBefore) {
		return false, false
	}
	a.log.Info("effect", logkey.Effect, string(d.Effect), logkey.Reason, d.Reason)
	if err := a.perform(ctx, now, d); err != nil {
		e.failures++
		e.err = fmt.Errorf("%s: %w", d.Effect, err)
		e.notBefore = now.Add(doubled(e.failures, effectBackoff, effectBackoffCap))
		a.log.Error("effect failed", logkey.Effect, d.Effect, logkey.Error, err)
		return false, false
	}
	// The next observation shows what was begun. If it does not, the effect is not repeated in a tight loop.
	e.failures, e.err, e.notBefore = 0, nil, now.Add(effectBackoff)
	return true, d.Effect == EffectPowerOff
}

func (a *Agent) perform(ctx context.Context, now time.Time, d Decision) error {
	ctx, cancel := context.WithTimeout(ctx, EffectTimeout)
	defer cancel()
	host := a.o.Host
	switch d.Effect {
	case EffectConfirm:
		a.confirm(ctx, now)
		return nil
	case EffectPowerOff:
		return host.PowerOff(ctx, d.Reason)
	case EffectPrepare:
		return host.Prepare(ctx)
	case EffectStop:
		return host.Stop(ctx)
	case EffectEndRefused:
		return host.EndRefused(ctx)
	}
	return a.performFor(ctx, *a.poller.record, d.Effect)
}

func (a *Agent) performFor(ctx context.Context, r lifecycle.Record, e Effect) error {
	host := a.o.Host
	switch e {
	case EffectAllow:
		a.introduce(ctx, r)
		return host.Allow(ctx, allowedBy(r))
	case EffectRegister:
		return host.Register(ctx, assignmentOf(r))
	case EffectListen:
		return host.Listen(ctx, assignmentOf(r))
	case EffectDeregister:
		a.effects.token = r.Registration.Secret
		return host.Deregister(ctx, r.Assignment, *r.Registration)
	case EffectClean:
		return host.Clean(ctx, CleanUp{Assignment: r.Assignment, RunBefore: runBefore(r), KeepCaches: strings.Join(r.KeepCaches, ","), Mirror: r.Mirror, NewRoot: r.Renewed()})
	}
	return fmt.Errorf("unknown effect %q", e)
}

// runBefore is the run that had a released host last, with its repository; empty: none had, or it is not known.
func runBefore(r lifecycle.Record) string {
	repository, run := r.RunBefore()
	if run == "" {
		return ""
	}
	return lifecycle.RunKey(repository, run)
}

// introduced is what the log of each job says of the host, and the version of the record that it was made from.
type introduced struct {
	version int64
	text    string
}

// introduce has the log of each job say how its host came. No job fails for it.
func (a *Agent) introduce(ctx context.Context, r lifecycle.Record) {
	a.introduced = introduced{r.Version, introduction(r)}
	if err := a.o.Host.Introduce(ctx, a.introduced.text); err != nil {
		a.log.Warn("host not introduced to its jobs", logkey.Error, err)
	}
}

// introduceAgain does so again if the record has learned more since its jobs were allowed, such as that GitHub kept the host.
func (a *Agent) introduceAgain(ctx context.Context) {
	r := a.poller.record
	if r == nil || r.Version == a.introduced.version || a.observed.Allowed == (Allowed{}) || a.observed.Allowed != allowedBy(*r) {
		return
	}
	if introduction(*r) != a.introduced.text {
		a.introduce(ctx, *r)
	}
	a.introduced.version = r.Version
}

// stuck returns the failure to report if the host repeatedly cannot begin what the record asks for.
func (a *Agent) stuck() (Answer, bool) {
	answer := Answer{Signal: lifecycle.SignalRegFailed, Cause: lifecycle.CauseHost}
	switch a.state() {
	case lifecycle.StateIdle:
		if !standsBy(*a.poller.record) {
			answer.Signal = lifecycle.SignalRemoveRegFailed
		}
	case lifecycle.StateCreated, lifecycle.StateClaimed, lifecycle.StateRunning:
	default:
		return Answer{}, false
	}
	return answer, a.effects.failures >= stuckAfter
}
