package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Prepare begins the pre-runner script.
func (h *Host) Prepare(ctx context.Context) error {
	c := h.layout.prepareCommand()
	if c == nil {
		return nil
	}
	return h.startTask(ctx, taskPrepare, startRecord{}, *c)
}

// PrepareAhead begins what needs no record, where that is not the operator's
// script alone: a host learns who it is and reads its record meanwhile. What fails
// here is tried again, and said, by the agent.
func (h *Host) PrepareAhead(ctx context.Context) {
	if h.o.Systemd == nil {
		return
	}
	s, err := h.Observe(ctx)
	if err != nil || s.Prepared.Phase != agent.PhaseNone || s.Busy || s.Listener.Phase != agent.ListenerNone {
		return
	}
	if err := h.Prepare(ctx); err != nil {
		h.log.Warn("cannot prepare this host ahead", "error", err)
	}
}

// prepared tells of the script in this boot.
func (h *Host) prepareProgress(ctx context.Context) (agent.Progress, error) {
	c := h.layout.prepareCommand()
	if c == nil {
		return agent.Progress{Phase: agent.PhaseOK}, nil
	}
	t := h.task(taskPrepare)
	s, err := h.taskStatus(ctx, t)
	if err == nil {
		s, err = h.enforceLimit(ctx, t, s, c.limit)
	}
	if err != nil || s.start == nil || s.start.BootID != h.bootID {
		return agent.Progress{}, err
	}
	p := h.progress(ctx, t, s, c.limit)
	if p.Phase == agent.PhaseFailed {
		p.Cause = lifecycle.CauseHost
	}
	return p, nil
}

// progress is the standing in the agent's words: exit code 0 is success.
func (h *Host) progress(ctx context.Context, t task, s taskStatus, limit time.Duration) agent.Progress {
	if s.start == nil {
		return agent.Progress{}
	}
	p := agent.Progress{Phase: agent.PhaseRunning, Assignment: s.start.Assignment, Attempt: s.start.Attempt, At: s.start.BegunAt}
	if s.running {
		return p
	}
	p.At = s.endedAt
	var how string
	switch s.code {
	case 0:
		p.Phase = agent.PhaseOK
		return p
	case codeOverdue:
		how = fmt.Sprintf("did not end within %s", limit)
	case codeUnknown:
		how = "was killed"
	default:
		how = fmt.Sprintf("exit code %d", s.code)
	}
	p.Phase = agent.PhaseFailed
	p.Detail = strings.TrimSuffix(how+": "+h.processes.tail(ctx, t, *s.start), ": ")
	return p
}
