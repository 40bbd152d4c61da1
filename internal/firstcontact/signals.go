package firstcontact

import (
	"context"
	"slices"
	"syscall"

	"github.com/remuda-ci/remuda/internal/findings"
)

var signalsCheck = check{
	name: "signals",
	does: "ends idle listeners by SIGINT and SIGTERM",
	assumptions: []findings.Assumption{
		{
			Name:     "sigint",
			Text:     "An idle listener ends on SIGINT with exit code 0, within 30 s.",
			ReliedOn: "internal/host/listener.go: how the agent stops a listener; internal/host/units/manager.go: how its unit does",
		},
		{
			Name:     "sigint-closes-session",
			Text:     "After SIGINT the session is closed: the next listener meets none.",
			ReliedOn: "internal/agent/intervals.go: conflictWait is for listeners that were killed",
		},
		{
			Name:     "sigterm",
			Text:     "An idle listener ends on SIGTERM within 30 s, with exit code 0 or 143.",
			ReliedOn: "systemd: a shutdown of the machine sends it",
		},
	},
	run: checkSignals,
}

func checkSignals(ctx context.Context, s *session) error {
	r, err := s.newRunner(s.Runner)
	if err != nil {
		return err
	}
	if err := r.register(ctx, s.name("label")); err != nil {
		return err
	}
	l, err := r.listen(ctx)
	if err != nil {
		return err
	}
	if ended, err := endBy(ctx, l, "sigint", syscall.SIGINT, 0); err != nil || !ended {
		return err
	}
	if l, err = r.listen(ctx); err != nil {
		return err
	}
	s.Decide("sigint-closes-session", !l.metSession(), "the next listener listened after %s", findings.Seconds(s.listened[len(s.listened)-1]))
	_, err = endBy(ctx, l, "sigterm", syscall.SIGTERM, 0, 128+int(syscall.SIGTERM))
	return err
}

// endBy sends a signal to a listener, and decides by its exit code.
func endBy(ctx context.Context, l *listener, name string, sig syscall.Signal, codes ...int) (ended bool, err error) {
	l.r.s.Say("sending %s", sig)
	l.signal(sig)
	took, ended, err := l.awaitEnd(ctx, l.r.s.Times.Stop)
	switch {
	case err != nil:
	case !ended:
		l.r.s.Decide(name, false, "it runs still, %s later", findings.Seconds(took))
	default:
		l.r.s.Decide(name, slices.Contains(codes, l.code()), "it ended %s later with exit code %d", findings.Seconds(took), l.code())
	}
	return ended, err
}
