package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// configureLimit is how long config.sh may take. It takes seconds unless GitHub does not
// answer. A release must not wait for it beyond its 120 s.
const configureLimit = 60 * time.Second

// inputPrefix is the prefix of the variables from which the runner reads its options, so
// that no secret is in an argument list.
const inputPrefix = "ACTIONS_RUNNER_INPUT_"

// Register begins config.sh. A JIT configuration needs none: the listener reads it.
func (h *Host) Register(ctx context.Context, a agent.Assignment) error {
	if err := h.layout.setUp(); err != nil {
		return fmt.Errorf("register runner: %w", err)
	}
	h.readRunnerVersion()
	if err := h.newLog(ctx); err != nil {
		return fmt.Errorf("register runner: %w", err)
	}
	b := startRecord{Assignment: a.Number, Kind: a.Registration.Kind}
	c := command{
		args: []string{"/bin/true"}, dir: h.path("runner"), env: h.environment(), log: h.runnerLog(), limit: configureLimit,
	}
	if a.Registration.Kind != lifecycle.RegistrationJIT {
		c.args, c.secrets = h.configure(a)
	}
	if err := h.startTask(ctx, taskRegister, b, c); err != nil {
		return fmt.Errorf("register runner: %w", err)
	}
	return nil
}

// configure returns the arguments of config.sh, and its secrets, which it gets in its environment.
func (h *Host) configure(a agent.Assignment) (args, secrets []string) {
	args = []string{h.path("runner/config.sh"), "--unattended", "--disableupdate"}
	labels := []string{"--labels", strings.Join(a.Labels, ",")}
	secrets = []string{inputPrefix + "TOKEN=" + a.Registration.Secret.Reveal()}
	if a.Label == "" {
		args = append(args, "--replace")
	} else {
		// A runner ahead of need must not replace another: one that did was seen to get the jobs of labels that it no longer
		// had (actions/runner#4225). An option that the arguments lack is taken from the environment (actions/runner 2.336,
		// src/Runner.Listener/CommandSettings.cs:111-138,369-378).
		labels, secrets = nil, append(secrets, inputPrefix+"LABELS="+a.Label.Reveal())
	}
	// Without --no-default-labels the runner would take any job of the scope that names these labels alone. The
	// record has them where the pool wants them.
	args = append(args, "--no-default-labels", "--url", a.Registration.URL, "--name", a.RunnerName)
	args = append(append(args, labels...), "--work", h.path("work"))
	if group := a.Registration.RunnerGroup; group != "" {
		args = append(args, "--runnergroup", group)
	}
	return args, secrets
}

// Deregister begins config.sh remove.
func (h *Host) Deregister(ctx context.Context, assignment int64, remove lifecycle.Registration) error {
	c := h.layout.removeCommand()
	c.log, c.limit = h.runnerLog(), configureLimit
	c.secrets = []string{inputPrefix + "TOKEN=" + remove.Secret.Reveal()}
	if err := h.startTask(ctx, taskDeregister, startRecord{Assignment: assignment}, c); err != nil {
		return fmt.Errorf("deregister runner: %w", err)
	}
	return nil
}

// registration is the file that exists as long as the runner is registered.
func (h *Host) registration() string { return filepath.Join(h.layout.registrationDir(), ".runner") }

func (h *Host) runnerLog() string { return h.path("logs/runner.log") }

// newLog moves the log of the last assignment aside, and replaces the one before that.
func (h *Host) newLog(ctx context.Context) error {
	if s, err := h.taskStatus(ctx, h.task(taskRegister)); err != nil || s.start != nil {
		return err // another attempt of the same assignment
	}
	err := os.Rename(h.runnerLog(), h.runnerLog()+".1")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// observeRegistration reads the state of config.sh, of config.sh remove, and of what they
// left on disk. The disk is read last: it shows what a task that has ended did.
func (h *Host) observeRegistration(ctx context.Context, s *agent.Observed) error {
	configured, err := h.configStatus(ctx, taskRegister)
	if err != nil {
		return fmt.Errorf("read state of registration: %w", err)
	}
	removed, err := h.configStatus(ctx, taskDeregister)
	if err != nil {
		return fmt.Errorf("read state of removal: %w", err)
	}
	h.forgetRemoved(ctx, removed)
	s.Registration = exists(h.registration())
	s.Removed = h.configProgress(ctx, taskDeregister, removed, s.Registration, "the registration is still on disk after config.sh remove")
	if configured.start == nil {
		if s.Registration {
			h.readRegistration(s)
		}
		return nil
	}
	s.RegisteredAs = configured.start.Kind
	lost := s.RegisteredAs == lifecycle.RegistrationToken && !s.Registration && s.Removed.Phase != agent.PhaseOK && !h.listenerLeft(ctx)
	s.Registered = h.configProgress(ctx, taskRegister, configured, lost,
		"there is no registration on disk although config.sh succeeded: it was deleted")
	return nil
}

// listenerLeft reports whether the listener has ended well, after which it is the listener that has deleted the registration.
func (h *Host) listenerLeft(ctx context.Context) bool {
	st, err := h.taskStatus(ctx, h.task(taskListen))
	return err == nil && st.ended && st.code == agent.CodeDone
}

// removedBefore reports whether a config.sh remove has failed because GitHub no longer has the registration, which is what it is for.
func (h *Host) removedBefore(ctx context.Context, removed taskStatus) bool {
	return removed.ended && removed.code > 0 && agent.RemovedBefore(h.processes.tail(ctx, h.task(taskDeregister), *removed.start))
}

// forgetRemoved deletes the files of a registration that GitHub no longer has: config.sh leaves them then.
func (h *Host) forgetRemoved(ctx context.Context, removed taskStatus) {
	if !h.removedBefore(ctx, removed) {
		return
	}
	dir := h.layout.registrationDir()
	// If that fails the removal has failed too, for the file that exists.
	_ = removeFiles(filepath.Join(dir, ".runner"), filepath.Join(dir, ".credentials"), filepath.Join(dir, ".credentials_rsaparams"))
}

func (h *Host) configStatus(ctx context.Context, name string) (taskStatus, error) {
	t := h.task(name)
	st, err := h.taskStatus(ctx, t)
	if err != nil {
		return st, err
	}
	return h.enforceLimit(ctx, t, st, configureLimit)
}

// configProgress returns the progress of a call of config.sh. A call that succeeded by its
// exit code has failed anyway if the disk contradicts it.
func (h *Host) configProgress(ctx context.Context, name string, st taskStatus, contradicted bool, how string) agent.Progress {
	p := h.progress(ctx, h.task(name), st, configureLimit)
	if name == taskDeregister && h.removedBefore(ctx, st) {
		p.Phase, p.Detail = agent.PhaseOK, ""
	}
	switch {
	case p.Phase == agent.PhaseFailed:
		p.Cause = causeOf(st.code, p.Detail)
		p.Assigned = name == taskDeregister && agent.JobAssigned(p.Detail)
	case p.Phase == agent.PhaseOK && contradicted:
		p.Phase, p.Cause, p.Detail = agent.PhaseFailed, lifecycle.CauseHost, how
	}
	return p
}

// runnerNamed matches the names under which the agent registers its assignments.
var runnerNamed = regexp.MustCompile(`^remuda-(\d+)-`)

// readRegistration restores from .runner what was lost of the task.
func (h *Host) readRegistration(s *agent.Observed) {
	path := h.registration()
	s.Registered, s.RegisteredAs = agent.Progress{Phase: agent.PhaseOK, Attempt: 1}, lifecycle.RegistrationToken
	if info, err := os.Stat(path); err == nil {
		s.Registered.At = info.ModTime()
	}
	data, err := safefile.Read(path)
	if err != nil {
		return
	}
	var settings struct {
		AgentName string    `json:"agentName"`
		Ephemeral looseBool `json:"ephemeral"`
	}
	// The runner writes a byte order mark.
	if json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &settings) != nil {
		return
	}
	if settings.Ephemeral {
		s.RegisteredAs = lifecycle.RegistrationJIT
	}
	if m := runnerNamed.FindStringSubmatch(settings.AgentName); m != nil {
		if n, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			s.Registered.Assignment = n
		}
	}
}

// looseBool is a boolean that config.sh writes as one, and GitHub as a string into a JIT
// configuration. Any other value is false.
type looseBool bool

// UnmarshalJSON accepts any value.
func (t *looseBool) UnmarshalJSON(text []byte) error {
	*t = looseBool(strings.EqualFold(strings.Trim(string(text), `"`), "true"))
	return nil
}

// noAnswer matches what config.sh prints if GitHub did not answer. The script has a single exit code, so
// nothing else tells the causes apart. What matches neither this nor a refusal counts against the host.
var noAnswer = regexp.MustCompile(`(?i)connection refused|connection reset|broken pipe|unexpected EOF|: EOF` +
	`|no such host|name or service not known|name resolution|network is unreachable|no route to host` +
	`|timed out|timeout|deadline exceeded|a task was canceled`)

func causeOf(code int, output string) lifecycle.Cause {
	if refused := agent.RefusedBy(output); refused != lifecycle.CauseNone {
		return refused
	}
	if code == codeOverdue || noAnswer.MatchString(output) {
		return lifecycle.CauseGitHub
	}
	return lifecycle.CauseHost
}
