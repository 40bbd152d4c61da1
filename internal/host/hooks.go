package host

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/remuda-ci/remuda/internal/agent"
)

// The job hooks, which the runner's worker runs before the first and after the
// last step of a job. In state/job they and the agent tell each other
//
//	allow     which run's jobs may start: run id, repository, the run that was
//	          allowed last, and the worker that had taken a job of that run when
//	          it was released, each on a line; written by the agent
//	jobs      one byte for every job that has begun since the last clean-up
//	busy      there while a job runs
//	refused   the run whose job was refused; stays for good
const (
	hookStarted   = "hooks/job-started.sh"
	hookCompleted = "hooks/job-completed.sh"
)

//go:embed job-started.sh
var jobStarted []byte

//go:embed job-completed.sh
var jobCompleted []byte

// placeholder stands in the hooks for the path of state/job, quoted.
var placeholder = []byte("@JOB_DIR@")

func (h *Host) writeHooks() error {
	dir := []byte(shellQuoted(h.path("state/job")))
	for name, script := range map[string][]byte{hookStarted: jobStarted, hookCompleted: jobCompleted} {
		script = bytes.ReplaceAll(script, placeholder, dir)
		if old, err := readFile(h.path(name)); err == nil && bytes.Equal(old, script) {
			continue
		}
		if err := writeFileMode(h.path(name), script, 0o755); err != nil {
			return fmt.Errorf("write job hook: %w", err)
		}
	}
	return nil
}

func shellQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Allow tells the job-started hook which run's jobs may start. A job that was
// taken before its run was released may start all the same, as long as the
// worker that took it lives.
func (h *Host) Allow(_ context.Context, a agent.Allowed) error {
	if strings.ContainsAny(a.RunID+a.Repository, "\n\r") {
		return errors.New("allow run: line break in its id or repository")
	}
	before, err := h.allowance()
	next := allowance{Allowed: a}
	if err == nil && a.RunID == "" && before.RunID != "" {
		next.released = before.RunID
		next.worker, err = h.livingWorker()
	} else if a.RunID == "" {
		next.released, next.worker = before.released, before.worker
	}
	if err == nil {
		err = writeFileMode(h.path("state/job/allow"), next.text(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("allow run: %w", err)
	}
	return nil
}

// allowance is the content of the file allow.
type allowance struct {
	agent.Allowed
	released string // the run that was allowed last
	worker   int    // that had taken a job of it then; 0: none had
}

func (a allowance) text() []byte {
	return fmt.Appendf(nil, "%s\n%s\n%s\n%d\n", a.RunID, a.Repository, a.released, a.worker)
}

func (h *Host) allowance() (allowance, error) {
	data, err := readFile(h.path("state/job/allow"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotPlain) {
		return allowance{}, nil
	}
	if err != nil {
		return allowance{}, err
	}
	lines := append(strings.Split(string(data), "\n"), "", "", "", "")
	worker, err := strconv.Atoi(lines[3])
	if err != nil {
		worker = 0
	}
	return allowance{agent.Allowed{RunID: lines[0], Repository: lines[1]}, lines[2], worker}, nil
}

// lookAtJob tells of what the hooks wrote.
func (h *Host) lookAtJob(s *agent.Scene) error {
	a, err := h.allowance()
	if err != nil {
		return fmt.Errorf("look at jobs: %w", err)
	}
	s.Allowed = a.Allowed
	if info, err := os.Stat(h.path("state/job/jobs")); err == nil {
		s.Jobs = int(info.Size())
	}
	refused, err := readFile(h.path("state/job/refused"))
	switch {
	case err == nil, errors.Is(err, errNotPlain):
		s.Refused = clip(strings.TrimSpace(string(refused)), 200)
		if s.Refused == "" {
			s.Refused = "unknown"
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look at jobs: %w", err)
	}
	return nil
}

func clip(s string, most int) string { return s[:min(len(s), most)] }

func (h *Host) marked() bool { return exists(h.path("state/job/busy")) }

// forgetJobs takes away what the hooks wrote for the last run. That a job was
// refused is never taken away.
func (h *Host) forgetJobs() error {
	for _, name := range []string{"jobs", "busy"} {
		if err := os.Remove(h.path("state/job", name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
