package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// unitLayout is the layout of a host whose tasks are units. What needs rights over the runner's user is done by root, in
// units of their own: see PrepareNow and CleanNow.
type unitLayout struct {
	h         *Host
	o         Systemd
	processes *unitProcesses
}

var _ layout = (*unitLayout)(nil)

// environment has only what systemd does not derive from the user.
func (l *unitLayout) environment() []string {
	return []string{"HOME=" + l.o.Home, "PATH=" + usualPath}
}

// registrationDir is root's own copy of what the registration wrote. Jobs can write to
// the runner's directory. A removal token is valid for every runner of its scope, so it
// must not be used where a job can read it.
func (l *unitLayout) registrationDir() string { return l.h.path(rootRunner) }

// rootRunner is a copy of the runner that no job can change and that runs no job.
const rootRunner = "registered"

// removeCommand runs where no job could write, and as root, so that no job can read its environment.
func (l *unitLayout) removeCommand() command {
	dir := l.registrationDir()
	return command{
		args: []string{filepath.Join(dir, "config.sh"), "remove", "--unattended"}, dir: dir, root: true,
		env: append(l.h.environment(), "HOME="+dir, "RUNNER_ALLOW_RUNASROOT=1"), // the last of a name counts
	}
}

// setUp makes only what the agent has the right to make. The rest is made by the
// preparation, which runs as root with all capabilities.
func (l *unitLayout) setUp() error {
	if err := l.h.makeDirs("hooks", "job"); err != nil {
		return err
	}
	if err := os.MkdirAll(l.h.path("state/tasks"), 0o700); err != nil { // and state itself
		return fmt.Errorf("make directory: %w", err)
	}
	return l.h.writeHooks()
}

// protectCredentials has nothing to do: the distribution of an image, and with it the
// runner's directory, is closed to all users except the runner's and root.
func (l *unitLayout) protectCredentials() error { return nil }

// startClean starts the clean-up as root, in a unit of its own.
func (l *unitLayout) startClean(ctx context.Context, t task, b startRecord) error {
	c := l.agentdCommand("clean", "--assignment", strconv.FormatInt(b.Assignment, 10))
	c.limit = l.h.o.PreRunnerLimit + cleanLimit
	return l.processes.start(ctx, t, b, c)
}

// prepareCommand also runs as root: it sets up the host.
func (l *unitLayout) prepareCommand() *command {
	c := l.agentdCommand("prepare")
	c.limit = l.h.o.PreRunnerLimit + layOutLimit
	return &c
}

const (
	// cleanLimit is for everything except the pre-runner script. A release has 120 s,
	// and a host that takes longer is ended.
	cleanLimit = 3 * time.Minute
	// layOutLimit is for what comes before and after the pre-runner script.
	layOutLimit = time.Minute
)

// agentdCommand is a command of agentd itself, as root.
func (l *unitLayout) agentdCommand(what string, args ...string) command {
	return command{
		args: append([]string{l.o.Program, what, "--config", l.o.Config}, args...), dir: "/", root: true,
		env: []string{"PATH=" + usualPath},
	}
}
