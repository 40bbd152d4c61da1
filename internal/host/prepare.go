package host

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/safefile"
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

// manifest lists the parts of the runner's listener with their versions. .NET writes it
// when the program is built, so the version is known without running it.
const manifest = "runner/bin/Runner.Listener.deps.json"

// versionFormat is that of the releases of actions/runner.
var versionFormat = regexp.MustCompile(`^\d{1,6}\.\d{1,6}\.\d{1,6}$`)

// readRunnerVersion reads the version of the runner that is in its place, at the agent's start and before
// each registration. A job can write there, so what does not look like a version is ignored.
func (h *Host) readRunnerVersion() { h.version = runnerVersion(h.path(manifest)) }

func runnerVersion(path string) string {
	var m struct {
		Libraries map[string]json.RawMessage `json:"libraries"`
	}
	if data, err := safefile.Read(path); err != nil || json.Unmarshal(data, &m) != nil {
		return ""
	}
	found := ""
	for name := range m.Libraries {
		version, ok := strings.CutPrefix(name, "Runner.Listener/")
		if !ok {
			continue
		}
		if found != "" || !versionFormat.MatchString(version) {
			return ""
		}
		found = version
	}
	return found
}

// environment is the environment of runner and pre-runner script. Nothing of the agent's
// own environment is in it except, without systemd, PATH.
func (h *Host) environment() []string {
	env := []string{
		InstanceIDVariable + "=" + h.o.InstanceID,
		"LANG=C.UTF-8",
		"ACTIONS_RUNNER_HOOK_JOB_STARTED=" + h.path(hookStarted),
		"ACTIONS_RUNNER_HOOK_JOB_COMPLETED=" + h.path(hookCompleted),
		// Without it a refused version is exit code 1, like much else (actions/runner 2.336,
		// src/Runner.Listener/Program.cs:142-170).
		"ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE=1",
	}
	env = append(env, h.layout.environment()...)
	for _, name := range slices.Sorted(maps.Keys(h.o.Env)) {
		env = append(env, name+"="+h.o.Env[name])
	}
	return env
}

// lastOfEach keeps the last value of each variable, as exec does: systemd refuses a unit
// with a variable twice.
func lastOfEach(env []string) []string {
	var kept []string
	seen := map[string]bool{}
	for _, variable := range slices.Backward(env) {
		if name, _, _ := strings.Cut(variable, "="); !seen[name] {
			seen[name] = true
			kept = append(kept, variable)
		}
	}
	slices.Reverse(kept)
	return kept
}

// usualPath is the PATH of tasks where none is given.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
