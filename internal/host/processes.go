package host

import (
	"context"
	"syscall"
	"time"
)

// processes starts the tasks of a host so that they outlive the agent, and finds them again. The files of a task record
// that it was started and how it ended. Only processes knows whether it runs, and what it has written.
type processes interface {
	// start starts command c as recorded in r. No earlier process of the task runs.
	start(ctx context.Context, t task, r startRecord, c command) error
	// find looks for the process of a task that was started.
	find(ctx context.Context, t task, r startRecord) (taskProcess, error)
	// adopt finds a listener that the files of its task do not know. unseen says that they know of one whose end was not
	// seen.
	adopt(ctx context.Context, unseen bool) (*startRecord, taskProcess, error)
	// signal sends a signal to the program of a task or, with all, to everything that the task has started.
	signal(ctx context.Context, p taskProcess, sig syscall.Signal, all bool) error
	// findWorker finds the worker of a listener that is gone or cannot be found; 0 if there is none.
	findWorker(ctx context.Context) (pid int, err error)
	// hasWritten reports whether the output of the task contains text.
	hasWritten(ctx context.Context, t task, r startRecord, text []byte) bool
	// tail returns the end of the task's output, at most tailLimit bytes.
	tail(ctx context.Context, t task, r startRecord) string
	// pollInterval is how soon to look again at a task that runs.
	pollInterval() time.Duration
	// endAll ends all tasks, unless they end with the machine anyway.
	endAll() error
	// removeSecrets removes secrets that a killed agent has left in memory.
	removeSecrets()
}

// taskProcess is the process of a task.
type taskProcess struct {
	// running is true while anything lives that the task has started.
	running bool
	// pid is that of its program; 0 if it is unknown or gone.
	pid int
	// handle identifies it to processes.
	handle handle
	// ended says that it ran and no longer runs. code is how it ended, if its files do not say that.
	ended bool
	code  int
}

// handle is a process group, or the name of a unit.
type handle struct {
	group int
	unit  string
}

// command is what a task runs.
type command struct {
	args []string
	dir  string
	env  []string
	// secrets are variables of the environment that only the command may see.
	secrets []string
	// log is the file for its output, where there is no journal.
	log string
	// limit is how long it may take; 0 for no limit. systemd enforces it for a unit, and the agent for a process group.
	limit time.Duration
	// root says that it runs as root. It is the operator's command or our own, and no job's.
	root bool
}
