package agent

import (
	"cmp"
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Store holds the agent's two rows: its record and its report.
type Store interface {
	// Record reads this host's record, and returns the store's own time of the
	// answer (zero if it has none). Errors: lifecycle.ErrNotFound, ErrUnavailable.
	Record(ctx context.Context, consistent bool) (lifecycle.Record, time.Time, error)
	// PutReport replaces this host's report.
	PutReport(ctx context.Context, p lifecycle.Report) error
}

// Host is the machine: the runner on it, the clean-up, the power switch. No
// method waits for what it begins; Observe returns how far that has come. Every
// method is safe to repeat. An error means that nothing was begun.
type Host interface {
	// Observe returns the actual state of the host, from its processes and files and not from memory.
	Observe(ctx context.Context) (Observed, error)
	// Prepare begins the pre-runner script. Observed.Prepared follows it.
	Prepare(ctx context.Context) error
	// Allow sets which jobs may start: the job-started hook refuses all others.
	// The zero Allowed refuses every job except those that the runner took while
	// they were allowed. Under Allowed.Standby a job waits for the next Allow, for a
	// few seconds. The change is complete when Allow returns.
	Allow(ctx context.Context, a Allowed) error
	// Introduce sets what the job-started hook shows in the log of each job that it lets start; empty: nothing.
	Introduce(ctx context.Context, text string) error
	// Register begins the configuration of the runner, again if one failed
	// before. Observed.Registered follows it.
	Register(ctx context.Context, a Assignment) error
	// Listen starts the listener of a configured runner. Observed.Listener follows it.
	Listen(ctx context.Context, a Assignment) error
	// Stop asks the listener to end, and kills it if it was asked before and did
	// not end. It does nothing while a worker lives.
	Stop(ctx context.Context) error
	// EndRefused kills the worker whose job the hook refused, with what that job
	// runs. It does nothing to a worker whose job was let in.
	EndRefused(ctx context.Context) error
	// Deregister begins the removal of the registration, again if one failed
	// before. Observed.Removed follows it.
	Deregister(ctx context.Context, assignment int64, remove lifecycle.Registration) error
	// Clean begins the clean-up after an assignment and its check, again if
	// one failed before. Observed.Cleaned follows it.
	Clean(ctx context.Context, c CleanUp) error
	// PowerOff ends the machine, whatever runs on it.
	PowerOff(ctx context.Context, reason string) error
}

// State keeps the agent's memory on the host's disk.
type State interface {
	// Load returns what was saved last, or the zero Memory if nothing was. An error means that the saved
	// state could not be used. It has been moved out of the way then, if that was possible.
	Load() (Memory, error)
	// Save replaces what was saved, all or nothing.
	Save(m Memory) error
}

// CleanUp is a clean-up after an assignment.
type CleanUp struct {
	Assignment int64
	// RunBefore is the run that the statement of the clean-up names, "owner/name/id"; empty: it names none.
	RunBefore string
	// KeepCaches are the names, with commas between, of the caches that become what the last run has left in them. What it has left in others is
	// deleted.
	KeepCaches string
	// Mirror is for a cache of those that holds git; nil: it stays as it is.
	Mirror *lifecycle.Mirror
	// NewRoot: no run has used the root volume of the host, with which the cloud has replaced that of the runs before.
	NewRoot bool
}

// Assignment is what the host needs to serve a run.
type Assignment struct {
	// Number is the assignment under which the runner registers and listens. A host that was
	// claimed while it listened serves by the runner of an earlier assignment.
	Number     int64
	RunID      string
	Repository string
	// CachesOf is the repository ("owner/name") or owner whose caches the jobs see; empty: it is not known yet.
	CachesOf string
	// DropCaches are the keys of caches that are deleted before the jobs see them.
	DropCaches []string
	// RunnerName is the name to register under.
	RunnerName string
	// Labels are the runner's labels. The first is the run id, except for a
	// job-scoped host, whose JIT configuration has labels of its own.
	Labels []string
	// Label is the only label of a runner that registers ahead of need; Labels is empty then. It is
	// a secret, since a job that names it would come to the host.
	Label lifecycle.Secret
	// Registration is the short-lived secret; its Secret is empty when the record no longer has it.
	Registration lifecycle.Registration
}

func assignmentOf(r lifecycle.Record) Assignment {
	a := Assignment{
		Number: runnerAssignment(r), RunID: r.RunID, Repository: r.Repository, RunnerName: r.RunnerName, Labels: r.Labels,
	}
	a.DropCaches = r.DropCaches.Keys()
	a.CachesOf = cmp.Or(r.JobsOf, r.Repository)
	if r.State == lifecycle.StateIdle { // it registers ahead of need, and its next run is of any repository of the trust key
		a.CachesOf = r.TrustKey
	}
	switch {
	case r.Standby != nil && !r.Standby.Discarded:
		a.Labels, a.Label = nil, r.Standby.Label
	case r.JobsOf == "":
		a.Labels = append([]string{r.RunID}, r.Labels...)
	}
	if r.Registration != nil {
		a.Registration = *r.Registration
	}
	return a
}
