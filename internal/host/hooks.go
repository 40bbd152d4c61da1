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

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// The job hooks, which the runner's worker runs before the first and after the
// last step of a job. In job they and the agent tell each other
//
//	allow     which jobs may start, written by the agent, one field on each line:
//	          run id, repository, the run that was allowed before, the worker
//	          that had a job of it when the host was released, the scope from
//	          which one job may start, and the scope that was allowed before
//	box/jobs      one byte for every job that has begun since the last clean-up
//	box/busy      there while a job runs; its name
//	box/refused   the run whose job was refused; stays permanently
//
// Jobs can write to the box, and delete what is in it.
const (
	hookStarted   = "hooks/job-started.sh"
	hookCompleted = "hooks/job-completed.sh"

	jobBox      = "job/box"
	markAllow   = "job/allow"
	markJobs    = "job/box/jobs"
	markBusy    = "job/box/busy"
	markRefused = "job/box/refused"
)

//go:embed job-started.sh
var jobStarted []byte

//go:embed job-completed.sh
var jobCompleted []byte

// placeholder is replaced in the hooks by the quoted path of job.
var placeholder = []byte("@JOB_DIR@")

func (h *Host) writeHooks() error {
	dir := []byte(shellQuoted(h.path("job")))
	for name, script := range map[string][]byte{hookStarted: jobStarted, hookCompleted: jobCompleted} {
		script = bytes.ReplaceAll(script, placeholder, dir)
		if old, err := safefile.Read(h.path(name)); err == nil && bytes.Equal(old, script) {
			continue
		}
		if err := writeFileMode(h.path(name), script, 0o755); err != nil {
			return fmt.Errorf("write job hook: %w", err)
		}
	}
	return nil
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
	return fmt.Appendf(nil, "%s\n%s\n%s\n%d\n%s\n%s\n",
		a.RunID, a.Repository, a.released.RunID, a.worker, a.JobsOf, a.released.JobsOf)
}

func (h *Host) allowance() (allowance, error) {
	data, err := safefile.Read(h.path(markAllow))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, safefile.ErrNotRegular) {
		return allowance{}, nil
	}
	if err != nil {
		return allowance{}, err
	}
	lines := append(strings.Split(string(data), "\n"), make([]string, 6)...) // missing lines are empty
	worker, err := strconv.Atoi(lines[3])
	if err != nil {
		worker = 0
	}
	return allowance{
		Allowed:  agent.Allowed{RunID: lines[0], Repository: lines[1], JobsOf: lines[4]},
		released: agent.Allowed{RunID: lines[2], JobsOf: lines[5]},
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

func (h *Host) hasBusyMarker() bool { return exists(h.path(markBusy)) }
