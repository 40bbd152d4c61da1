package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Prepare begins the pre-runner script. A command of it that fails makes it
// fail, also in the middle of a pipe.
func (h *Host) Prepare(context.Context) error {
	if h.o.PreRunner == "" {
		return nil
	}
	return h.begin(taskPrepare, begun{}, command{
		args: []string{"/bin/bash", "-e", "-o", "pipefail", h.o.PreRunner},
		dir:  h.path("work"), env: h.environment(), log: h.path("logs/prepare.log"),
	})
}

// prepared tells of the script in this boot.
func (h *Host) prepared() (agent.Progress, error) {
	if h.o.PreRunner == "" {
		return agent.Progress{Phase: agent.PhaseOK}, nil
	}
	t := h.task(taskPrepare)
	s, err := t.look()
	if err == nil {
		s, err = t.enforce(s, h.o.PreRunnerLimit)
	}
	if err != nil || s.begun == nil || s.begun.BootID != h.bootID {
		return agent.Progress{}, err
	}
	p := s.progress(h.o.PreRunnerLimit, h.path("logs/prepare.log"))
	if p.Phase == agent.PhaseFailed {
		p.Cause = lifecycle.CauseHost
	}
	return p, nil
}

// progress is the standing in the agent's words: exit code 0 is success.
func (s standing) progress(limit time.Duration, log string) agent.Progress {
	if s.begun == nil {
		return agent.Progress{}
	}
	p := agent.Progress{Phase: agent.PhaseRunning, Assignment: s.begun.Assignment, Attempt: s.begun.Attempt, At: s.begun.BegunAt}
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
	p.Detail = strings.TrimSuffix(how+": "+tailOf(log, s.begun.LogOffset), ": ")
	return p
}
