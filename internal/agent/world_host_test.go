package agent_test

import (
	"context"
	"slices"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func (w *world) Observe(context.Context) (agent.Observed, error) {
	w.crash()
	switch {
	case w.lookErr != nil:
		return agent.Observed{}, w.lookErr
	case w.failing():
		return agent.Observed{}, errOnce
	}
	if !w.hold {
		w.finish()
	}
	return w.observed, nil
}

// finish lets come to its end what was begun.
func (w *world) finish() {
	s := &w.observed
	w.judge()
	w.end("prepare", &s.Prepared)
	if w.end("register", &s.Registered) {
		s.Registration = s.RegisteredAs != lifecycle.RegistrationJIT
	}
	if w.end("deregister", &s.Removed) {
		s.Registration = false
	}
	if w.end("clean", &s.Cleaned) {
		s.Registered, s.Removed, s.Listener, s.Jobs = agent.Progress{}, agent.Progress{}, agent.Listener{}, 0
		s.Registration = false
	}
	switch {
	case s.Listener.Phase == agent.ListenerStarting && len(w.listenCode) > 0:
		s.Listener.Phase, s.Listener.Code, s.Listener.At = agent.ListenerExited, w.listenCode[0], w.now()
		w.listenCode = w.listenCode[1:]
	case s.Listener.Phase == agent.ListenerStarting:
		s.Listener.Phase, s.Listener.At, s.Registration = agent.ListenerListening, w.now(), true
	case s.Listener.Phase == agent.ListenerStopping:
		s.Listener.Phase, s.Listener.At = agent.ListenerExited, w.now()
	}
}

// end finishes one progress and reports whether it succeeded just now.
func (w *world) end(name string, p *agent.Progress) bool {
	if p.Phase != agent.PhaseRunning {
		return false
	}
	p.At = w.now()
	if f, ok := w.fail[name]; ok {
		p.Phase, p.Cause, p.Detail = agent.PhaseFailed, f.Cause, f.Detail
		return false
	}
	p.Phase = agent.PhaseOK
	return true
}

func (w *world) begin(p *agent.Progress, assignment int64) {
	if p.Assignment != assignment {
		*p = agent.Progress{Assignment: assignment}
	}
	p.Phase, p.At, p.Attempt = agent.PhaseRunning, w.now(), p.Attempt+1
}

func (w *world) effect(name string, f func()) error {
	if err := w.do(name); err != nil {
		return err
	}
	f()
	w.crash()
	return nil
}

func (w *world) Prepare(context.Context) error {
	return w.effect("prepare", func() { w.begin(&w.observed.Prepared, 0) })
}

func (w *world) Allow(_ context.Context, a agent.Allowed) error {
	name := "allow " + a.RunID + a.JobsOf
	if a.Standby {
		name += "standby"
	}
	return w.effect(name, func() { w.observed.Allowed = a })
}

func (w *world) Introduce(_ context.Context, text string) error {
	w.introduced = append(w.introduced, text)
	return nil
}

func (w *world) Register(_ context.Context, a agent.Assignment) error {
	name := "register " + a.RunID
	if a.Label != "" {
		name = "register "
		name += "standby"
	}
	return w.effect(name, func() {
		w.registered = a
		w.begin(&w.observed.Registered, a.Number)
		w.observed.RegisteredAs = a.Registration.Kind
	})
}

func (w *world) Listen(_ context.Context, a agent.Assignment) error {
	return w.effect("listen", func() {
		w.observed.Listener = agent.Listener{Phase: agent.ListenerStarting, Assignment: a.Number, StartedAt: w.now(), At: w.now()}
	})
}

func (w *world) Stop(context.Context) error {
	return w.effect("stop", func() { w.observed.Listener.Phase, w.observed.Listener.At = agent.ListenerStopping, w.now() })
}

// EndRefused ends the refused worker and the listener with it.
func (w *world) EndRefused(context.Context) error {
	return w.effect("end refused", func() {
		w.observed.RefusedWorker, w.observed.Busy = 0, false
		w.observed.Listener.Phase, w.observed.Listener.Code, w.observed.Listener.At = agent.ListenerExited, agent.CodeUnknown, w.now()
	})
}

func (w *world) Deregister(_ context.Context, assignment int64, r lifecycle.Registration) error {
	return w.effect("deregister "+r.Secret.Reveal(), func() { w.begin(&w.observed.Removed, assignment) })
}

func (w *world) Clean(_ context.Context, c agent.CleanUp) error {
	return w.effect("clean", func() {
		w.begin(&w.observed.Cleaned, c.Assignment)
		w.observed.Cleaned.Statement = "signed: clean after " + c.RunBefore
	})
}

func (w *world) PowerOff(_ context.Context, why string) error {
	return w.effect("power off", func() { w.poweredOff = why })
}

func (w *world) did(e string) bool { return slices.Contains(w.effects, e) }
