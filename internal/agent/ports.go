// Package agent is the logic of the host agent: it watches its own record,
// keeps the host in step with it, and says how that goes in its own report.
//
// It is level-triggered. Each step looks at the record, at what the host is
// really doing and at what it last reported, decides on one effect and does
// it. Whatever a step began is found again by the next one, also by the next
// one of a restarted agent. Nothing but Run sleeps or reads a clock.
package agent

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Store is the agent's own two rows.
type Store interface {
	// Record reads this host's record, with the store's own time of the answer
	// (zero if it has none): lifecycle.ErrNotFound, ErrUnavailable.
	Record(ctx context.Context, consistent bool) (lifecycle.Record, time.Time, error)
	// PutReport replaces this host's report.
	PutReport(ctx context.Context, p lifecycle.Report) error
}

// Host is the machine: the runner on it, the clean-up, the power switch. No
// method waits for what it begins; Look tells how far it has come. Every
// method is safe to repeat. An error means that the thing was not begun.
type Host interface {
	// Look says what is really there, from the processes and files of the
	// host and not from memory.
	Look(ctx context.Context) (Scene, error)
	// Prepare begins the pre-runner script. Scene.Prepared follows it.
	Prepare(ctx context.Context) error
	// Allow says which jobs may start: the job-started hook refuses all others.
	// The zero Allowed refuses every job, but those that the runner had taken
	// before while they were allowed. It is done when it returns.
	Allow(ctx context.Context, a Allowed) error
	// Register begins the configuration of the runner, again if one failed
	// before. Scene.Registered follows it.
	Register(ctx context.Context, a Assignment) error
	// Listen starts the listener of a configured runner. Scene.Listener
	// follows it.
	Listen(ctx context.Context, a Assignment) error
	// Stop asks the listener to end, and makes it end when it was asked before
	// and did not. It does nothing while a worker lives.
	Stop(ctx context.Context) error
	// Deregister begins the removal of the registration, again if one failed
	// before. Scene.Removed follows it.
	Deregister(ctx context.Context, assignment int64, remove lifecycle.Registration) error
	// Clean begins the clean-up after an assignment and its check, again if
	// one failed before. Scene.Cleaned follows it.
	Clean(ctx context.Context, assignment int64) error
	// PowerOff ends the machine, whatever runs on it.
	PowerOff(ctx context.Context, why string) error
}

// State keeps the agent's memory on the host's disk.
type State interface {
	// Load returns what was saved last, and the zero Memory when nothing was.
	// An error means that something was there and could not be used; it is out
	// of the way then, or left alone if even that was not possible.
	Load() (Memory, error)
	// Save replaces what was saved, all or nothing.
	Save(m Memory) error
}

// Assignment is what the host needs to serve a run.
type Assignment struct {
	Number     int64
	RunID      string
	Repository string
	// RunnerName is the name to register under.
	RunnerName string
	// Labels are the runner's labels; the first is the run id, but of a
	// job-scoped host, whose JIT configuration brings its own.
	Labels []string
	// Registration is the short-lived secret; its Secret is empty when the
	// record no longer has it.
	Registration lifecycle.Registration
}

func assignmentOf(r lifecycle.Record) Assignment {
	a := Assignment{
		Number: r.Assignment, RunID: r.RunID, Repository: r.Repository, RunnerName: r.RunnerName, Labels: r.Labels,
	}
	if r.JobsOf == "" {
		a.Labels = append([]string{r.RunID}, r.Labels...)
	}
	if r.Registration != nil {
		a.Registration = *r.Registration
	}
	return a
}
