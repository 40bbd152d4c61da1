package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// hostPort is the machine as its agent reaches it.
type hostPort struct{ h *host }

func (p hostPort) effect(e agent.Effect, do func() error) error {
	w := p.h.w
	w.calls++
	w.interrupt(string(e))
	if w.chance(FaultHostRefuses) {
		return errDisk
	}
	w.tell(p.h.actor.name, string(e), "")
	w.coverage.Effects[e]++
	err := do()
	w.interrupt(string(e))
	return err
}

func (p hostPort) Observe(context.Context) (agent.Observed, error) {
	w := p.h.w
	w.calls++
	w.interrupt("look")
	if w.chance(FaultHostBlind) {
		return agent.Observed{}, errors.New("read /proc: too many open files")
	}
	observed := p.h.observed
	w.interrupt("look")
	return observed, nil
}

func (p hostPort) Prepare(context.Context) error {
	return p.effect(agent.EffectPrepare, func() error {
		w := p.h.w
		p.h.begin(&p.h.observed.Prepared, 0, w.between(time.Second, 15*time.Second), func() (agent.Phase, lifecycle.Cause) {
			if w.chance(FaultScriptFails) {
				return agent.PhaseFailed, lifecycle.CauseHost
			}
			return agent.PhaseOK, ""
		})
		return nil
	})
}

func (p hostPort) Allow(_ context.Context, a agent.Allowed) error {
	return p.effect(agent.EffectAllow, func() error {
		p.h.observed.Allowed = a
		return nil
	})
}

func (p hostPort) Register(_ context.Context, a agent.Assignment) error {
	return p.effect(agent.EffectRegister, func() error {
		h, w := p.h, p.h.w
		w.checkRegister(h, a)
		h.begin(&h.observed.Registered, a.Number, w.between(time.Second, 4*time.Second), func() (agent.Phase, lifecycle.Cause) {
			switch {
			case !w.github.up():
				return agent.PhaseFailed, lifecycle.CauseGitHub
			case a.Registration.Kind == lifecycle.RegistrationJIT:
				return h.registerJIT(a)
			case !w.github.valid(lifecycle.RegistrationToken, a.Registration.Secret, a.Repository):
				return agent.PhaseFailed, lifecycle.CauseGitHub
			case w.chance(FaultRegisterFails):
				return agent.PhaseFailed, lifecycle.CauseHost
			}
			r := w.github.register(h, a.Repository, a.RunnerName, a.Labels)
			if w.chance(FaultRegisterHalf) {
				return agent.PhaseFailed, lifecycle.CauseHost
			}
			h.runner, h.dirty, h.registered[a.Number] = r, true, true
			h.observed.Registration, h.observed.RegisteredAs = true, a.Registration.Kind
			return agent.PhaseOK, ""
		})
		return nil
	})
}

func (p hostPort) Listen(_ context.Context, a agent.Assignment) error {
	return p.effect(agent.EffectListen, func() error {
		h := p.h
		if h.runner == nil {
			return errors.New("start listener: not configured")
		}
		h.observed.Listener = agent.Listener{
			Phase: agent.ListenerStarting, Assignment: a.Number, StartedAt: h.clock(), At: h.clock(),
		}
		this := h.observed.Listener.StartedAt
		h.w.after(h.w.between(time.Second, 3*time.Second), func() { h.connect(this) })
		return nil
	})
}

// connect is the listener that was started at a time reaching GitHub.
func (h *host) connect(started time.Time) {
	l := &h.observed.Listener
	if !h.alive || l.Phase != agent.ListenerStarting || !l.StartedAt.Equal(started) {
		return
	}
	switch {
	case !h.w.github.up():
		h.w.after(5*time.Second, func() { h.connect(started) })
		return
	case h.runner == nil || h.runner.deleted:
		h.exit(agent.CodeTerminated)
		return
	case h.w.chance(FaultListenerExits):
		h.exit([]int{agent.CodeRetryable, agent.CodeUpdating, agent.CodeSessionConflict, agent.CodeUnknown}[h.w.rng.IntN(4)])
		return
	}
	l.Phase, l.At = agent.ListenerListening, h.clock()
	h.runner.Online = true
	h.w.tell(h.id, "listening", h.runner.Name)
	h.changed()
	h.w.github.assign()
}

// exit ends the listener's process. A worker lives on.
func (h *host) exit(code int) {
	l := &h.observed.Listener
	l.Phase, l.At, l.Code, l.Detail = agent.ListenerExited, h.clock(), code, "exit code "+strconv.Itoa(code)
	if h.runner != nil {
		h.runner.Online = false
	}
	h.w.tell(h.id, "listener exits", strconv.Itoa(code))
	h.changed()
}

func (p hostPort) Stop(context.Context) error {
	return p.effect(agent.EffectStop, func() error {
		h, w := p.h, p.h.w
		l := &h.observed.Listener
		switch l.Phase {
		case agent.ListenerNone, agent.ListenerExited:
			return nil
		case agent.ListenerStopping:
			if h.worker == nil {
				h.exit(agent.CodeUnknown)
			}
			return nil
		}
		if h.worker != nil {
			return nil
		}
		l.Phase, l.At = agent.ListenerStopping, h.clock()
		if h.runner != nil {
			h.runner.Online = false
		}
		if w.chance(FaultStubbornStop) {
			return nil
		}
		started := l.StartedAt
		w.after(w.between(100*time.Millisecond, 3*time.Second), func() {
			if h.alive && l.Phase == agent.ListenerStopping && l.StartedAt.Equal(started) {
				h.exit(agent.CodeDone)
			}
		})
		return nil
	})
}

func (p hostPort) Deregister(_ context.Context, assignment int64, remove lifecycle.Registration) error {
	return p.effect(agent.EffectDeregister, func() error {
		h, w := p.h, p.h.w
		h.begin(&h.observed.Removed, assignment, w.between(time.Second, 3*time.Second), func() (agent.Phase, lifecycle.Cause) {
			switch {
			case !w.github.up():
				return agent.PhaseFailed, lifecycle.CauseGitHub
			case h.runner != nil && !w.github.valid(lifecycle.RegistrationRemove, remove.Secret, h.runner.repository):
				return agent.PhaseFailed, lifecycle.CauseGitHub
			case w.chance(FaultRemoveFails):
				return agent.PhaseFailed, lifecycle.CauseGitHub
			}
			if h.runner != nil {
				w.github.remove(h.runner)
			}
			if w.chance(FaultRemoveHalf) {
				return agent.PhaseFailed, lifecycle.CauseGitHub
			}
			h.runner, h.observed.Registration = nil, false
			return agent.PhaseOK, ""
		})
		return nil
	})
}

func (p hostPort) Clean(_ context.Context, assignment int64) error {
	return p.effect(agent.EffectClean, func() error {
		h, w := p.h, p.h.w
		w.checkClean(h)
		h.begin(&h.observed.Cleaned, assignment, w.between(time.Second, 5*time.Second), func() (agent.Phase, lifecycle.Cause) {
			if w.chance(FaultCleanFails) {
				return agent.PhaseFailed, lifecycle.CauseHost
			}
			s := &h.observed
			s.Registered, s.Removed, s.Listener, s.Jobs = agent.Progress{}, agent.Progress{}, agent.Listener{}, 0
			s.Registration, s.RegisteredAs = false, ""
			h.runner, h.dirty, h.lastRun, h.cleaned[assignment] = nil, false, "", true
			return agent.PhaseOK, ""
		})
		return nil
	})
}

func (p hostPort) PowerOff(_ context.Context, why string) error {
	return p.effect(agent.EffectPowerOff, func() error {
		h, w := p.h, p.h.w
		w.checkPowerOff(h, why)
		w.tell(h.actor.name, "powers off", why)
		w.mark(markSelfEnded)
		w.coverage.Effects[agent.EffectConfirm]++ // without it no host powers off
		w.after(w.between(time.Second, 5*time.Second), func() { w.gone(h.machine) })
		return nil
	})
}

// agentStore is the store as one host's agent reaches it.
type agentStore struct{ h *host }

func (s agentStore) before(call string) error {
	w := s.h.w
	w.calls++
	began := w.now
	w.interrupt(call)
	switch {
	case w.storeAway() || w.now.Before(s.h.cutOff):
		return unavailable(call, "the store is away")
	case w.now.Sub(began) > 3*time.Second: // its deadline
		return unavailable(call, "context deadline exceeded")
	case w.chance(FaultStoreRefused):
		return unavailable(call, "throttled")
	}
	return nil
}

func (s agentStore) Record(_ context.Context, consistent bool) (lifecycle.Record, time.Time, error) {
	w := s.h.w
	if err := s.before("read record"); err != nil {
		return lifecycle.Record{}, time.Time{}, err
	}
	from := w.truth
	if !consistent && w.chance(FaultStaleRecord) {
		from = w.lag.old
	}
	r, err := from.Instance(background, s.h.id)
	date := w.now.Truncate(time.Second) // an HTTP date has whole seconds
	w.interrupt("read record")
	return r, date, err
}

func (s agentStore) PutReport(_ context.Context, p lifecycle.Report) error {
	w := s.h.w
	if err := s.before("write report"); err != nil {
		return err
	}
	w.checkReport(s.h, p)
	w.putReport(p)
	w.tell(s.h.actor.name, "reports", reportLine(p))
	w.script.report(s.h.actor.name, p)
	lost := w.chance(FaultStoreLost)
	w.interrupt("write report")
	if lost {
		return fmt.Errorf("write report: %w", lifecycle.ErrUnavailable)
	}
	return nil
}

func reportLine(p lifecycle.Report) string {
	return fmt.Sprintf("%d %q busy %t cause %q jobs %d %q", p.Assignment, p.Signal, p.Busy, p.Cause, p.Jobs, p.Detail)
}
