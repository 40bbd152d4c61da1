package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host/diag"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/proc"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// The directories that a job writes to and that Clean renews.
var jobDirs = []string{"work", "home", "tmp"}

// endLimit is how long processes may take to die before the machine is powered off, which
// ends the rest. An effect of the agent has 30 s, and most of that is for EC2's answer.
const endLimit = 4 * time.Second

// cleanResult is the content of cleanResultFile.
type cleanResult struct {
	Assignment int64     `json:"assignment"`
	At         time.Time `json:"at"`
	Failure    string    `json:"failure,omitempty"`
	// Statement is the signed statement of the clean-up; empty if there is no key.
	Statement string `json:"statement,omitempty"`
}

// Clean begins the clean-up: it removes everything that the last run left running or on
// disk, and then verifies the result.
func (h *Host) Clean(ctx context.Context, c agent.CleanUp) error {
	t := h.task(taskClean)
	st, err := h.taskStatus(ctx, t)
	if err != nil || st.running {
		return err
	}
	err = errors.Join(removeFiles(h.path(cleanResultFile)), h.leaveMirror(c.Mirror))
	if err == nil {
		err = h.layout.startClean(ctx, t, h.nextAttempt(startRecord{Assignment: c.Assignment, Host: h.o.InstanceID, RunBefore: c.RunBefore, KeepCaches: c.KeepCaches, NewRoot: c.NewRoot}, st))
	}
	if err != nil {
		return fmt.Errorf("clean host: %w", err)
	}
	return nil
}

// cleanResultFile is the file with the result of the last clean-up.
const cleanResultFile = "state/tasks/clean.result"

// CleanNow cleans the host, keeps the caches that its start names, and records the result.
func (h *Host) CleanNow(ctx context.Context, assignment int64) error {
	r := h.newStatement(assignment)
	h.mirror = h.takeMirror()
	err := h.cleanAndCheck(ctx, assignment, &r)
	result := cleanResult{Assignment: assignment, At: time.Now()}
	r.Result, r.EndedAt = statement.ResultClean, result.At.UTC()
	if err != nil {
		r.Result, result.Failure = statement.ResultFailed, err.Error()
	}
	result.Statement = h.sign(r)
	data, writeErr := json.Marshal(result)
	if writeErr == nil {
		writeErr = writeFile(h.path(cleanResultFile), data)
	}
	if writeErr != nil {
		h.log.Error("cannot write result of clean-up", logkey.Error, writeErr)
	}
	return errors.Join(err, writeErr)
}

// newStatement is the statement of a clean-up that begins now.
func (h *Host) newStatement(assignment int64) statement.Reset {
	r := statement.Reset{
		BootID: h.bootID, Assignment: assignment, Level: statement.LevelSlate, BegunAt: time.Now().UTC(),
		AgentVersion: h.o.Version, KeyWithinReach: h.layout.keyWithinReach(),
	}
	// Without the file of its start the statement names no host, and no key signs it.
	if start, err := h.task(taskClean).readStart(); err == nil && start != nil {
		r.Host, r.RunBefore = start.Host, start.RunBefore
		if start.NewRoot {
			r.Level = statement.LevelRootVolume
		}
	}
	return r
}

func (h *Host) cleanAndCheck(ctx context.Context, assignment int64, r *statement.Reset) error {
	keep := h.cachesToKeep()
	images := h.imagesToKeep(keep)
	if err := h.clean(ctx, r, images != nil); err != nil {
		return fmt.Errorf("clean host: %w", err)
	}
	if exists(h.registration()) || exists(h.path("runner/.runner")) {
		r.Check("registration", 1)
		return errors.New("check host: a registration is still on disk")
	}
	r.Check("registration", 0)
	keepCaches, err := h.settleCaches(keep)
	if err == nil && images != nil && h.checkDisk() != nil {
		h.log.Warn("images of docker not kept: there is no room", logkey.Cache, images.Name)
		images, err = nil, h.layout.removeImages(ctx)
	}
	if err != nil {
		return fmt.Errorf("settle caches: %w", err)
	}
	if err := h.layout.verify(ctx, r, images != nil); err != nil {
		return fmt.Errorf("check host: %w", err)
	}
	if images != nil {
		if err := h.keepImages(ctx, *images); err != nil {
			return err
		}
	}
	if len(keepCaches) > 0 {
		if err := h.commitCaches(ctx, assignment, keepCaches); err != nil {
			return err
		}
	}
	if err := h.layout.makeReady(ctx); err != nil {
		return fmt.Errorf("make host ready: %w", err)
	}
	return nil
}

// keptDiagnostics is a copy of the runner's _diag as the last run left it, which GitHub's support asks for first. Only the user that cleans
// the host can read it, root where tasks are units: the logs name repositories and may quote what a job printed.
const keptDiagnostics = "state/diag"

func (h *Host) clean(ctx context.Context, r *statement.Reset, keepImages bool) error {
	if err := diag.Keep(h.path("runner"), h.path(keptDiagnostics)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.log.Warn("cannot keep the runner's diagnostics", logkey.Error, err) // which the next run does not need
	}
	h.noteUsedActions()
	if err := h.layout.clean(ctx, r, keepImages); err != nil {
		return err
	}
	if err := h.writeHooks(); err != nil {
		return err
	}
	// What the hooks wrote for the last run goes, except that a job was refused, which stays.
	if err := removeFiles(h.path(markJobs), h.path(markBusy), h.path(markRefusedWorker)); err != nil {
		return err
	}
	for _, name := range []string{taskListen, taskDeregister, taskRegister} {
		if err := h.task(name).removeFiles(); err != nil {
			return err
		}
	}
	return nil
}

// cleanProgress returns the progress of the clean-up.
func (h *Host) cleanProgress(ctx context.Context) (agent.Progress, error) {
	st, err := h.taskStatus(ctx, h.task(taskClean))
	if err != nil {
		return agent.Progress{}, fmt.Errorf("read state of clean-up: %w", err)
	}
	if st.running {
		return h.progress(ctx, h.task(taskClean), st, 0), nil
	}
	data, err := safefile.Read(h.path(cleanResultFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return agent.Progress{}, fmt.Errorf("read state of clean-up: %w", err)
	}
	var result cleanResult
	if json.Unmarshal(data, &result) != nil { // also if there is none
		return agent.Progress{}, nil
	}
	p := agent.Progress{Phase: agent.PhaseOK, Assignment: result.Assignment, At: result.At, Statement: result.Statement}
	if result.Failure != "" {
		p.Phase, p.Cause, p.Detail = agent.PhaseFailed, lifecycle.CauseHost, result.Failure
	}
	return p, nil
}

func (h *Host) checkDisk() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(h.o.Dir, &fs); err != nil {
		return fmt.Errorf("check disk: %w", err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < h.o.MinimumFree {
		return fmt.Errorf("check disk: %d MiB are free for %s, %d are needed: free some space, or ask for less (runner.minimum_free_mib)",
			free>>20, h.o.Dir, h.o.MinimumFree>>20)
	}
	return nil
}

// killAll kills every process of the host until none is left. The next scan finds those that were started in
// the meantime. Unclear ones are scanned again until they are clear or gone.
func (h *Host) killAll(limit time.Duration) error {
	end := time.Now().Add(limit)
	for quiet := 0; quiet < proc.QuietScans; time.Sleep(proc.KillPause) {
		pids, unclear, err := h.scanMarked()
		late := time.Now().After(end)
		switch {
		case err != nil:
			return err
		case len(pids) == 0 && (unclear == 0 || late):
			quiet++
			continue
		case late:
			return fmt.Errorf("kill processes: %d remain after %s, the first is %d (%s)",
				len(pids), limit, pids[0], proc.Default.Program(pids[0]))
		}
		quiet = 0
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
	}
	return nil
}

// PowerOff ends everything that runs on the host except the agent, and then powers off the machine. Without
// Options.Power the agent ends itself after that, and its init treats that as the end of the machine.
func (h *Host) PowerOff(ctx context.Context, reason string) error {
	h.log.Warn("powering off", logkey.Reason, reason)
	err := h.processes.endAll()
	switch {
	case h.o.Power == nil && err != nil:
		return fmt.Errorf("power off: %w", err)
	case h.o.Power == nil:
		return nil
	case err != nil:
		h.log.Error("cannot end all processes before the machine", logkey.Error, err)
	}
	if err := h.o.Power.Off(ctx, reason); err != nil {
		return fmt.Errorf("power off: %w", err)
	}
	return nil
}
