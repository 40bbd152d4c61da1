package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The directories that a job writes to and that Clean renews.
var jobDirs = []string{"work", "home", "tmp"}

// killLimit is how long what is left of a run may take to die of SIGKILL. It is
// far more than any process needs that is not stuck in the kernel.
const killLimit = 10 * time.Second

// killPause is between looks at the processes that are being killed.
const killPause = 5 * time.Millisecond

// quietLooks is how many looks in a row must find nothing: a process can slip
// past one, by being born behind it to a parent that dies ahead of it.
const quietLooks = 2

// cleaning is the file of a clean-up that has ended.
type cleaning struct {
	Assignment int64     `json:"assignment"`
	At         time.Time `json:"at"`
	Failure    string    `json:"failure,omitempty"`
}

// Clean begins the clean-up: everything that the last run left running or
// lying about goes, and then a look at the result decides. It runs within the
// agent; when that is killed it begins again.
func (h *Host) Clean(_ context.Context, assignment int64) error {
	t := h.task(taskClean)
	st, err := t.look()
	if err != nil || st.running {
		return err
	}
	lock, err := t.intend(h.numbered(begun{Assignment: assignment}, st))
	if err != nil {
		return fmt.Errorf("clean host: %w", err)
	}
	if err := h.removeFile("state/tasks/clean.result"); err != nil {
		return errors.Join(fmt.Errorf("clean host: %w", err), lock.Close())
	}
	go func() {
		h.cleanAndTell(assignment)
		lock.Close()
		h.notify()
	}()
	return nil
}

func (h *Host) cleanAndTell(assignment int64) {
	result := cleaning{Assignment: assignment}
	err := h.clean()
	if err == nil {
		err = h.check()
	}
	if err != nil {
		result.Failure = err.Error()
	}
	result.At = time.Now()
	data, err := json.Marshal(result)
	if err == nil {
		err = writeFile(h.path("state/tasks/clean.result"), data)
	}
	if err != nil {
		h.log.Error("cannot write the result of the clean-up", "error", err)
	}
}

// cleaned tells of the clean-up.
func (h *Host) cleaned() (agent.Progress, error) {
	st, err := h.task(taskClean).look()
	if err != nil {
		return agent.Progress{}, fmt.Errorf("look at clean-up: %w", err)
	}
	if st.running {
		return st.progress(0, ""), nil
	}
	data, err := readFile(h.path("state/tasks/clean.result"))
	if errors.Is(err, fs.ErrNotExist) {
		return agent.Progress{}, nil
	}
	if err != nil {
		return agent.Progress{}, fmt.Errorf("look at clean-up: %w", err)
	}
	var result cleaning
	if json.Unmarshal(data, &result) != nil {
		return agent.Progress{}, nil
	}
	p := agent.Progress{Phase: agent.PhaseOK, Assignment: result.Assignment, At: result.At}
	if result.Failure != "" {
		p.Phase, p.Cause, p.Detail = agent.PhaseFailed, lifecycle.CauseHost, result.Failure
	}
	return p, nil
}

func (h *Host) clean() error {
	if err := h.killAll(); err != nil {
		return fmt.Errorf("clean host: %w", err)
	}
	for _, dir := range jobDirs {
		if err := renewDir(h.path(dir)); err != nil {
			return fmt.Errorf("clean host: %w", err)
		}
	}
	if err := mirrorTree(h.o.Distribution, h.path("runner")); err != nil {
		return fmt.Errorf("clean host: %w", err)
	}
	if err := h.writeHooks(); err != nil {
		return fmt.Errorf("clean host: %w", err)
	}
	if err := h.forgetJobs(); err != nil {
		return fmt.Errorf("clean host: %w", err)
	}
	for _, name := range []string{taskListen, taskDeregister, taskRegister} {
		if err := h.task(name).forget(); err != nil {
			return fmt.Errorf("clean host: %w", err)
		}
	}
	return nil
}

// check looks at what clean left, as if somebody else had cleaned.
func (h *Host) check() error {
	pids, err := h.processes()
	if err != nil {
		return fmt.Errorf("check host: %w", err)
	}
	if len(pids) > 0 {
		return fmt.Errorf("check host: process %d (%s) still runs", pids[0], programOf(pids[0]))
	}
	for _, dir := range jobDirs {
		info, err := os.Lstat(h.path(dir))
		if err != nil {
			return fmt.Errorf("check host: %w", err)
		}
		entries, err := os.ReadDir(h.path(dir))
		if err != nil {
			return fmt.Errorf("check host: %w", err)
		}
		if !info.IsDir() || len(entries) > 0 {
			return fmt.Errorf("check host: %s is not an empty directory", h.path(dir))
		}
	}
	if exists(h.path("runner/.runner")) {
		return errors.New("check host: a registration is still on disk")
	}
	return h.checkDisk()
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

// killAll kills every process of the host until none is left. Those that are
// born meanwhile are found by the next look, and those of which nothing can be
// said are looked at until something can, or they are gone.
func (h *Host) killAll() error {
	end := time.Now().Add(killLimit)
	for quiet := 0; quiet < quietLooks; time.Sleep(killPause) {
		pids, unclear, err := h.survey()
		late := time.Now().After(end)
		switch {
		case err != nil:
			return err
		case len(pids) == 0 && (unclear == 0 || late):
			quiet++
			continue
		case late:
			return fmt.Errorf("kill processes: %d are left after %s, the first is %d (%s)",
				len(pids), killLimit, pids[0], programOf(pids[0]))
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

// PowerOff ends everything that runs on the host but the agent, and then the
// machine. Where it has no switch of its own the agent ends itself then, which
// whoever started it takes for the end of the machine.
func (h *Host) PowerOff(ctx context.Context, why string) error {
	h.log.Warn("powering off", "why", why)
	err := h.killAll()
	switch {
	case h.o.Power == nil && err != nil:
		return fmt.Errorf("power off: %w", err)
	case h.o.Power == nil:
		return nil
	case err != nil:
		h.log.Error("not everything could be ended before the machine", "error", err)
	}
	if err := h.o.Power.Off(ctx, why); err != nil {
		return fmt.Errorf("power off: %w", err)
	}
	return nil
}
