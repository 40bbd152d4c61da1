package host

import (
	"context"
	"syscall"
	"time"
)

// launcher starts the tasks of a host so that they outlive the agent. What was
// begun, and how it ended, is in the files of a task; whether it runs, and what
// it said, only its launcher knows.
type launcher interface {
	// start starts what b and c say. Nothing of an earlier one runs.
	start(ctx context.Context, t task, b begun, c command) error
	// find looks for a task that was begun.
	find(ctx context.Context, t task, b begun) (found, error)
	// adopt finds a listener of which the files of its task know nothing, or that
	// nobody saw end.
	adopt(ctx context.Context, unseen bool) (*begun, found, error)
	// signal sends a signal to the program of what was found, or to all that it
	// started.
	signal(ctx context.Context, f found, sig syscall.Signal, all bool) error
	// worker finds the worker of a listener that is gone, or hides it; 0: there
	// is none.
	worker(ctx context.Context) (pid int, err error)
	// said reports whether the task has written a text.
	said(ctx context.Context, t task, b begun, text []byte) bool
	// tail is the end of what the task has written, of at most tailLimit bytes.
	tail(ctx context.Context, t task, b begun) string
	// pace is how soon to look again at something that is under way.
	pace() time.Duration
	// furnish makes what must be there before anything can run, as far as that
	// is the agent's own to make.
	furnish() error
	// environment is what a task gets by the way that it runs.
	environment() []string
	// end ends all tasks, as far as the end of the machine does not.
	end() error
	// tidy puts away what an agent that was killed has left.
	tidy()
	// registered is where the registration of the runner is kept, and removal what
	// takes it back.
	registered() string
	removal() command
	// shield sees to it that nobody else may read the secrets of a JIT
	// configuration, which the runner writes to files.
	shield() error
	// preparation is what is run once in each boot before anything else; nil:
	// nothing is.
	preparation() *command
	// startClean begins the clean-up, which ends with Host.CleanNow.
	startClean(ctx context.Context, t task, b begun) error
	// clean ends what the last run left running and renews what it wrote to.
	clean(ctx context.Context) error
	// check looks at what clean left, as if somebody else had cleaned.
	check(ctx context.Context) error
	// ready makes a clean host what it was before its first run.
	ready(ctx context.Context) error
}

// found is what a launcher finds of a task.
type found struct {
	// running is true while anything of it lives that the launcher started.
	running bool
	// pid of its program; 0 when it is not known or gone.
	pid int
	// handle is what the launcher knows it by.
	handle handle
	// ended says that it ran and runs no more. code is how it ended, where its
	// files do not say it.
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
	// secrets are variables of the environment that nobody else may see.
	secrets []string
	// log is the file that takes its output, where there is no journal.
	log string
	// limit is how long it may take; 0: as long as it likes. Its launcher ends it
	// then where it can, and else the agent.
	limit time.Duration
	// root says that it is the operator's or our own, and no job's.
	root bool
}
