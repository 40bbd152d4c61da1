package world

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// hostPort is the machine as its agent reaches it.
type hostPort struct{ h *Host }

func (p hostPort) effect(e agent.Effect, do func() error) error {
	w := p.h.World
	w.Calls++
	w.Interrupt(string(e))
	if w.Chance(engine.FaultHostRefuses) {
		return errDisk
	}
	w.Tell(p.h.Actor.Name, string(e), "")
	w.Coverage.Effects[e]++
	err := do()
	w.Interrupt(string(e))
	return err
}

func (p hostPort) Observe(context.Context) (agent.Observed, error) {
	w := p.h.World
	w.Calls++
	w.Interrupt("look")
	if w.Chance(engine.FaultHostBlind) {
		return agent.Observed{}, errors.New("read /proc: too many open files")
	}
	observed := p.h.Observed
	w.Interrupt("look")
	return observed, nil
}

func (p hostPort) Prepare(context.Context) error {
	return p.effect(agent.EffectPrepare, func() error {
		w := p.h.World
		p.h.begin(&p.h.Observed.Prepared, 0, w.Between(time.Second, 15*time.Second), func() (agent.Phase, lifecycle.Cause) {
			if w.Chance(engine.FaultScriptFails) {
				return agent.PhaseFailed, lifecycle.CauseHost
			}
			return agent.PhaseOK, ""
		})
		return nil
	})
}

func (p hostPort) Allow(_ context.Context, a agent.Allowed) error {
	return p.effect(agent.EffectAllow, func() error {
		p.h.Observed.Allowed = a
		p.h.hookSees()
		return nil
	})
}

func (p hostPort) Introduce(context.Context, string) error { return nil }

func (p hostPort) Register(_ context.Context, a agent.Assignment) error {
	return p.effect(agent.EffectRegister, func() error {
		h, w := p.h, p.h.World
		w.emit(Registering{h, a})
		h.begin(&h.Observed.Registered, a.Number, w.Between(time.Second, 4*time.Second), func() (agent.Phase, lifecycle.Cause) {
			switch {
			case !w.GitHub.up():
				return agent.PhaseFailed, lifecycle.CauseGitHub
			case a.Registration.Kind == lifecycle.RegistrationJIT:
				return h.registerJIT(a)
			case !w.GitHub.valid(lifecycle.RegistrationToken, a.Registration.Secret, a.Repository):
				return agent.PhaseFailed, lifecycle.CauseGitHub
			case a.Label != "" && w.GitHub.taken(a.Repository, a.RunnerName):
				return agent.PhaseFailed, lifecycle.CauseGitHub
			case w.Chance(engine.FaultRegisterFails):
				return agent.PhaseFailed, lifecycle.CauseHost
			}
			r := w.GitHub.register(h, a.Repository, a.RunnerName, labelsOf(a))
			if w.Chance(engine.FaultRegisterHalf) {
				return agent.PhaseFailed, lifecycle.CauseHost
			}
			h.Runner, h.Dirty, h.Registered[a.Number] = r, true, true
			h.Observed.Registration, h.Observed.RegisteredAs = true, a.Registration.Kind
			return agent.PhaseOK, ""
		})
		return nil
	})
}

func (p hostPort) Listen(_ context.Context, a agent.Assignment) error {
	return p.effect(agent.EffectListen, func() error {
		h := p.h
		if h.Runner == nil {
			return errors.New("start listener: not configured")
		}
		h.attach(a)
		h.Observed.Listener = agent.Listener{
			Phase: agent.ListenerStarting, Assignment: a.Number, StartedAt: h.Clock(), At: h.Clock(),
		}
		this := h.Observed.Listener.StartedAt
		h.World.After(h.World.Between(time.Second, 3*time.Second), func() { h.connect(this) })
		return nil
	})
}

// connect is the listener that was started at a time reaching GitHub.
func (h *Host) connect(started time.Time) {
	l := &h.Observed.Listener
	if !h.Alive || l.Phase != agent.ListenerStarting || !l.StartedAt.Equal(started) {
		return
	}
	switch {
	case !h.World.GitHub.up():
		h.World.After(5*time.Second, func() { h.connect(started) })
		return
	case h.Runner == nil || h.Runner.Deleted:
		h.Exit(agent.CodeTerminated)
		return
	case h.World.Chance(engine.FaultListenerExits):
		h.Exit([]int{agent.CodeRetryable, agent.CodeUpdating, agent.CodeSessionConflict, agent.CodeUnknown}[h.World.Rand.IntN(4)])
		return
	}
	l.Phase, l.At = agent.ListenerListening, h.Clock()
	h.Runner.Online = true
	h.World.emit(Listening{h.Runner})
	h.World.Tell(h.ID, "listening", h.Runner.Name)
	h.Changed()
	h.World.GitHub.Assign()
}

// Exit ends the listener's process. A worker lives on.
func (h *Host) Exit(code int) {
	l := &h.Observed.Listener
	l.Phase, l.At, l.Code, l.Detail = agent.ListenerExited, h.Clock(), code, "exit code "+strconv.Itoa(code)
	if h.Runner != nil {
		h.Runner.Online = false
	}
	h.World.Tell(h.ID, "listener exits", strconv.Itoa(code))
	h.Changed()
}

func (p hostPort) Stop(context.Context) error {
	return p.effect(agent.EffectStop, func() error {
		h, w := p.h, p.h.World
		l := &h.Observed.Listener
		switch l.Phase {
		case agent.ListenerNone, agent.ListenerExited:
			return nil
		case agent.ListenerStopping:
			if h.Worker == nil {
				h.Exit(agent.CodeUnknown)
			}
			return nil
		}
		if h.Worker != nil {
			return nil
		}
		l.Phase, l.At = agent.ListenerStopping, h.Clock()
		if h.Runner != nil {
			h.Runner.Online = false
		}
		if w.Chance(engine.FaultStubbornStop) {
			return nil
		}
		started := l.StartedAt
		w.After(w.Between(100*time.Millisecond, 3*time.Second), func() {
			if h.Alive && l.Phase == agent.ListenerStopping && l.StartedAt.Equal(started) {
				h.Exit(agent.CodeDone)
			}
		})
		return nil
	})
}

// EndRefused has nothing to end: in this world the hook itself ends every worker whose job it refuses.
func (p hostPort) EndRefused(context.Context) error { return nil }

func (p hostPort) Deregister(_ context.Context, assignment int64, remove lifecycle.Registration) error {
	return p.effect(agent.EffectDeregister, func() error {
		h, w := p.h, p.h.World
		h.begin(&h.Observed.Removed, assignment, w.Between(time.Second, 3*time.Second), func() (agent.Phase, lifecycle.Cause) {
			switch {
			case !w.GitHub.up():
				return agent.PhaseFailed, lifecycle.CauseGitHub
			case h.Runner != nil && !w.GitHub.valid(lifecycle.RegistrationRemove, remove.Secret, h.Runner.Repository):
				return agent.PhaseFailed, lifecycle.CauseGitHub
			case h.Runner != nil && h.Runner.Job != nil:
				w.Mark(engine.MarkAssigned)
				h.Observed.Removed.Assigned = true
				return agent.PhaseFailed, lifecycle.CauseGitHub
			case w.Chance(engine.FaultRemoveFails):
				return agent.PhaseFailed, lifecycle.CauseGitHub
			}
			if h.Runner != nil {
				w.GitHub.Remove(h.Runner)
			}
			if w.Chance(engine.FaultRemoveHalf) {
				return agent.PhaseFailed, lifecycle.CauseGitHub
			}
			h.Runner, h.Observed.Registration = nil, false
			return agent.PhaseOK, ""
		})
		return nil
	})
}

func (p hostPort) Clean(_ context.Context, c agent.CleanUp) error {
	return p.effect(agent.EffectClean, func() error {
		h, w := p.h, p.h.World
		w.emit(Cleaning{h})
		h.begin(&h.Observed.Cleaned, c.Assignment, w.Between(time.Second, 5*time.Second), func() (agent.Phase, lifecycle.Cause) {
			if w.Chance(engine.FaultCleanFails) {
				return agent.PhaseFailed, lifecycle.CauseHost
			}
			h.commit(c)
			s := &h.Observed
			s.Registered, s.Removed, s.Listener, s.Jobs = agent.Progress{}, agent.Progress{}, agent.Listener{}, 0
			s.Registration, s.RegisteredAs = false, ""
			h.Runner, h.Dirty, h.LastRun, h.Cleaned[c.Assignment] = nil, false, "", true
			return agent.PhaseOK, ""
		})
		return nil
	})
}

func (p hostPort) PowerOff(_ context.Context, why string) error {
	return p.effect(agent.EffectPowerOff, func() error {
		h, w := p.h, p.h.World
		w.emit(PoweringOff{h, why})
		w.Tell(h.Actor.Name, "powers off", why)
		w.Mark(engine.MarkSelfEnded)
		w.Coverage.Effects[agent.EffectConfirm]++ // without it no host powers off
		w.After(w.Between(time.Second, 5*time.Second), func() { w.Gone(h.Machine) })
		return nil
	})
}
