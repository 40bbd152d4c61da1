package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// Prepare begins the pre-runner script.
func (h *Host) Prepare(ctx context.Context) error {
	c := h.layout.prepareCommand()
	if c == nil {
		return nil
	}
	return h.startTask(ctx, taskPrepare, startRecord{}, *c)
}

// PrepareAhead begins the preparation before the agent has a record, where that is more
// than the operator's script. Identity and record are read at the same time. The agent
// tries again what fails here, and reports it.
func (h *Host) PrepareAhead(ctx context.Context) {
	if h.o.Systemd == nil {
		return
	}
	s, err := h.Observe(ctx)
	if err != nil || s.Prepared.Phase != agent.PhaseNone || s.Busy || s.Listener.Phase != agent.ListenerNone {
		return
	}
	if err := h.Prepare(ctx); err != nil {
		h.log.Warn("cannot prepare host ahead of its record", logkey.Error, err)
	}
}

// prepareProgress returns the progress of the preparation in this boot.
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

// progress converts the status of a task for the agent: exit code 0 is success.
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
