package host

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/proc"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// The job hooks, which the runner's worker runs before the first and after the
// last step of a job. In job they and the agent tell each other
//
//	allow     which jobs may start, written by the agent, one field on each line:
//	          run id, repository, the run that was allowed before, the worker
//	          that had a job of it when the host was released, the scope from
//	          which one job may start, the scope that was allowed before, and for
//	          each of the two "forks" if its job may be of a fork; then "standby" if a job
//	          waits for the agent to write another one
//	introduction  what the hook shows in the log of a job that starts, written by the agent
//	box/jobs      one byte for every job that has begun since the last clean-up
//	box/busy      there while a job runs; its name
//	box/refused   the run whose job was refused; stays permanently
//	box/refused-worker  the worker whose job was refused, for whatever reason: its pid and
//	          when it started, in clock ticks since the boot
//
// Jobs can write to the box, and delete what is in it.
const (
	hookStarted   = "hooks/job-started.sh"
	hookCompleted = "hooks/job-completed.sh"

	jobBox            = "job/box"
	markAllow         = "job/allow"
	markIntroduction  = "job/introduction"
	markJobs          = "job/box/jobs"
	markBusy          = "job/box/busy"
	markRefused       = "job/box/refused"
	markRefusedWorker = "job/box/refused-worker"
)

// DefaultRefusalWait is how long the job-started hook waits between its message and the end of the worker. The worker sends what a
// step writes every half second (actions/runner 2.336, src/Runner.Common/JobServerQueue.cs).
const DefaultRefusalWait = 2 * time.Second

// DefaultStandbyWait is how long a job waits on a host in standby for the claim of its run. GitHub gets the labels of a run after the claim is
// written, and the agent reads its record twice a second, so this is for a store that does not answer for a moment.
const DefaultStandbyWait = 5 * time.Second

// standbyPoll is between two looks of the waiting hook; job-started.sh says it too.
const standbyPoll = 100 * time.Millisecond

//go:embed job-started.sh
var jobStarted string

//go:embed job-completed.sh
var jobCompleted string

// writeHooks writes the hooks with their placeholders replaced. They take nothing from the environment that a job could set.
func (h *Host) writeHooks() error {
	fill := strings.NewReplacer(
		"@JOB_DIR@", shellQuoted(h.path("job")),
		"@AGENTD@", shellQuoted(h.o.Program),
		"@STANDBY_POLLS@", strconv.Itoa(int((h.o.StandbyWait+standbyPoll-1)/standbyPoll)),
		"@JOB_SUMMARY@", strconv.FormatBool(h.o.JobSummary),
		"@REFUSAL_WAIT@", strconv.FormatFloat(h.o.RefusalWait.Seconds(), 'f', -1, 64),
	)
	for name, text := range map[string]string{hookStarted: jobStarted, hookCompleted: jobCompleted} {
		script := []byte(fill.Replace(text))
		if old, err := safefile.Read(h.path(name)); err == nil && bytes.Equal(old, script) {
			continue
		}
		if err := writeFileMode(h.path(name), script, 0o755); err != nil {
			return fmt.Errorf("write job hook: %w", err)
		}
	}
	return nil
}

// shellCommand is a command as a line of the shell.
func shellCommand(args []string) string {
	quoted := make([]string, 0, len(args))
	for _, arg := range args {
		quoted = append(quoted, shellQuoted(arg))
	}
	return strings.Join(quoted, " ")
}

func shellQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Allow tells the job-started hook which jobs may start. A job that was taken before the
// host was released may still start, as long as the worker that took it lives.
func (h *Host) Allow(ctx context.Context, a agent.Allowed) error {
	if strings.ContainsAny(a.RunID+a.Repository+a.JobsOf, "\n\r") {
		return errors.New("allow jobs: line break in run, repository or scope")
	}
	next, err := h.nextAllowance(ctx, a)
	if err == nil {
		err = writeFileMode(h.path(markAllow), next.text(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("allow jobs: %w", err)
	}
	return nil
}

// Introduce writes what the job-started hook shows.
func (h *Host) Introduce(_ context.Context, text string) error {
	if err := writeFileMode(h.path(markIntroduction), []byte(text), 0o644); err != nil {
		return fmt.Errorf("introduce the host: %w", err)
	}
	return nil
}

func (h *Host) nextAllowance(ctx context.Context, a agent.Allowed) (allowance, error) {
	next, none := allowance{Allowed: a}, agent.Allowed{}
	before, err := h.allowance()
	switch {
	case err != nil || a != none:
	case before.Allowed != none:
		next.released = before.Allowed
		next.worker, err = h.currentWorker(ctx)
	default: // released by an agent that was killed after that
		next.released, next.worker = before.released, before.worker
	}
	return next, err
}

// allowance is the content of the file allow.
type allowance struct {
	agent.Allowed
	released agent.Allowed // what was allowed before the release
	worker   int           // that had a job of it at that time; 0 for none
}

func (a allowance) text() []byte {
	forks := map[bool]string{true: forksAllowed}
	standby := map[bool]string{true: standbyWaits}
	return fmt.Appendf(nil, "%s\n%s\n%s\n%d\n%s\n%s\n%s\n%s\n%s\n",
		a.RunID, a.Repository, a.released.RunID, a.worker, a.JobsOf, a.released.JobsOf, forks[a.Forks], forks[a.released.Forks], standby[a.Standby])
}

// forksAllowed is the line of markAllow that lets a job be of a fork. Any other line, also one that is missing, does not.
const forksAllowed = "forks"

// standbyWaits is the line of markAllow that makes a job wait.
const standbyWaits = "standby"

func (h *Host) allowance() (allowance, error) {
	data, err := safefile.Read(h.path(markAllow))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, safefile.ErrNotRegular) {
		return allowance{}, nil
	}
	if err != nil {
		return allowance{}, err
	}
	lines := append(strings.Split(string(data), "\n"), make([]string, 9)...) // missing lines are empty
	worker, err := strconv.Atoi(lines[3])
	if err != nil {
		worker = 0
	}
	return allowance{
		Allowed: agent.Allowed{
			RunID: lines[0], Repository: lines[1], JobsOf: lines[4], Forks: lines[6] == forksAllowed, Standby: lines[8] == standbyWaits,
		},
		released: agent.Allowed{RunID: lines[2], JobsOf: lines[5], Forks: lines[7] == forksAllowed},
		worker:   worker,
	}, nil
}

// observeJob reads what the hooks have written.
func (h *Host) observeJob(s *agent.Observed) error {
	a, err := h.allowance()
	if err != nil {
		return fmt.Errorf("read job markers: %w", err)
	}
	s.Allowed = a.Allowed
	if info, err := os.Stat(h.path(markJobs)); err == nil {
		s.Jobs = int(info.Size())
	}
	if h.hasBusyMarker() {
		// An unreadable marker has no name.
		name, _ := safefile.Read(h.path(markBusy))
		s.Job = clip(strings.TrimSpace(string(name)), longestName)
	}
	refused, err := safefile.Read(h.path(markRefused))
	switch {
	case err == nil, errors.Is(err, safefile.ErrNotRegular):
		s.Refused = cmp.Or(clip(strings.TrimSpace(string(refused)), longestName), "unknown")
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read job markers: %w", err)
	}
	return nil
}

// longestName is longer than GitHub allows the id of a job to be, in bytes.
const longestName = 200

func clip(s string, most int) string { return s[:min(len(s), most)] }

// observeRefusal returns the pid of the living worker if the hook refused its job, else 0. The host remembers that for as long as
// the worker lives, since a step of its job could delete the file. Whatever a job writes to the file, it names no other worker than
// one of its own runner: pid and start have to be those of the worker that was found.
func (h *Host) observeRefusal(worker int) (pid int) {
	if worker == 0 {
		h.refused = proc.ID{}
		return 0
	}
	s, err := h.proc.Stat(worker)
	if err != nil || s.Dead() {
		return 0
	}
	if data, err := safefile.Read(h.path(markRefusedWorker)); err == nil && refusedWorker(string(data)) == s.ID {
		h.refused = s.ID
	}
	if h.refused != s.ID {
		return 0
	}
	return worker
}

// refusedWorker reads the content of markRefusedWorker; zero if that names no worker.
func refusedWorker(text string) proc.ID {
	pid, start, _ := strings.Cut(strings.TrimSpace(text), " ")
	id := proc.ID{}
	var err, startErr error
	id.PID, err = strconv.Atoi(pid)
	id.Start, startErr = strconv.ParseUint(start, 10, 64)
	if err != nil || startErr != nil {
		return proc.ID{}
	}
	return id
}

// EndRefused kills the worker whose job the hook refused, together with everything that its listener has started. The worker alone
// is not enough: its steps would live on. No other job can be among them, since a listener has one worker at a time. A worker whose
// job was let in is left alone.
func (h *Host) EndRefused(ctx context.Context) error {
	st, err := h.listenerStatus(ctx)
	if err != nil {
		return fmt.Errorf("end refused job: %w", err)
	}
	worker, err := h.findLivingWorker(ctx, st.pid, true)
	if err != nil {
		return fmt.Errorf("end refused job: %w", err)
	}
	if h.observeRefusal(worker) == 0 {
		return nil
	}
	if st.handle == (handle{}) { // the listener and its task are gone, and only what they started is left
		err = h.processes.endAll()
	} else {
		err = h.processes.signal(ctx, st.taskProcess, syscall.SIGKILL, true)
	}
	if err != nil {
		return fmt.Errorf("end refused job: %w", err)
	}
	return nil
}

func (h *Host) hasBusyMarker() bool { return exists(h.path(markBusy)) }
