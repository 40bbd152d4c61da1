package agent

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// Observed is the actual state of the host, from its processes and files. Times
// are those of the host's own clock.
type Observed struct {
	BootID string
	// Key is the public key of this agent, which signs the statements of clean-ups; empty: it has none.
	Key statement.Key
	// Prepared is the pre-runner script in this boot; PhaseOK where there is
	// none to run. It belongs to no assignment.
	Prepared Progress
	// Allowed are the jobs that the job-started hook lets through.
	Allowed Allowed
	// Registered is the configuration of the runner. RegisteredAs is the kind of
	// registration that it was given.
	Registered   Progress
	RegisteredAs lifecycle.RegistrationKind
	// Registration is true while a registration is on disk.
	Registration bool
	Listener     Listener
	// RunnerVersion is the version of the runner on the host, such as "2.330.0"; empty if it is unknown.
	RunnerVersion string
	// Removed is the removal of the registration, Cleaned the clean-up.
	Removed Progress
	Cleaned Progress

	// Caches is what the host has of caches, and CacheBytes what they take.
	Caches     cache.List
	CacheBytes int64

	// Busy is true while a worker lives or a job has begun and not ended, and while neither is known.
	Busy bool
	// Taken is true while the listener has a job from GitHub and no worker for it yet. Busy is true too. A listener that is
	// stopped now tells GitHub nothing, and the job hangs until its lock runs out.
	Taken bool
	// Jobs counts the jobs begun since the last clean-up.
	Jobs int
	// Job is the name of the running job, which its workflow chooses freely; empty
	// if none runs or its name is unknown.
	Job string
	// Refused names the run whose job the hook refused; empty when none.
	Refused string
	// RefusedWorker is the pid of the living worker if the hook refused its job; 0
	// if it let the job in, or none lives. The hook ends such a worker itself.
	RefusedWorker int
	// InterruptionAt is when the cloud will reclaim the machine, by its notice; zero without one.
	InterruptionAt time.Time
	// RebalanceAt is when the cloud recommended to leave the machine, since it may
	// be reclaimed; zero if it never did.
	RebalanceAt time.Time
}

// served is the latest assignment for which the host has done something.
func (s Observed) served() int64 {
	return max(s.Registered.Assignment, s.Removed.Assignment, s.Cleaned.Assignment)
}

// Progress is the state of a task that the host carries out by itself.
type Progress struct {
	Phase Phase
	// Assignment is the assignment for which it was begun.
	Assignment int64
	// At is when the phase was reached.
	At time.Time
	// Attempt counts how often it was begun for this assignment.
	Attempt int
	// Cause and Detail explain PhaseFailed.
	Cause  lifecycle.Cause
	Detail string
	// Assigned is true of a removal that failed because GitHub has assigned a job to the runner.
	Assigned bool
	// Statement is the signed statement of a clean-up that has ended; empty: there is none.
	Statement string
}

// Phase is the state of a Progress.
type Phase string

// The phases.
const (
	PhaseNone    Phase = ""
	PhaseRunning Phase = "running"
	PhaseOK      Phase = "ok"
	PhaseFailed  Phase = "failed"
)

// of returns p if it is for the assignment, and no progress otherwise.
func (p Progress) of(assignment int64) Progress {
	if p.Assignment != assignment {
		return Progress{}
	}
	return p
}

// Allowed says which jobs may start; none if it is zero. It names a run or, for
// a job-scoped host, the repository or owner of its one job.
type Allowed struct {
	// RunID and Repository let all jobs of the run start.
	RunID      string `json:"runId,omitempty"`
	Repository string `json:"repository,omitempty"`
	// JobsOf lets one job start, of any run of the repository ("owner/name") or
	// of the owner ("owner"). A second one is refused until the next clean-up.
	JobsOf string `json:"jobsOf,omitempty"`
	// Forks lets that job be of a fork.
	Forks bool `json:"forks,omitempty"`
	// Standby lets no job start yet: for a few seconds a job waits for the run, or the scope, that
	// the agent sets as soon as it has read the claim. Then it is refused.
	Standby bool `json:"standby,omitempty"`
}

// allowedBy returns the jobs that may start under a record.
func allowedBy(r lifecycle.Record) Allowed {
	switch {
	case standsBy(r):
		return Allowed{Standby: true}
	case r.State == lifecycle.StateIdle:
		return Allowed{}
	case r.JobsOf != "":
		return Allowed{JobsOf: r.JobsOf, Forks: r.Forks}
	}
	return Allowed{RunID: r.RunID, Repository: r.Repository}
}

func (a Allowed) String() string {
	switch {
	case a.JobsOf != "" && a.Forks:
		return "one job of " + a.JobsOf + ", or of a fork,"
	case a.JobsOf != "":
		return "one job of " + a.JobsOf
	case a.RunID != "":
		return "jobs of run " + a.RunID
	case a.Standby:
		return "jobs of the run that claims this host"
	}
	return "no job"
}

// Listener is the runner's listener process.
type Listener struct {
	Phase      ListenerPhase
	Assignment int64
	// StartedAt is when it was started, At when it reached its phase.
	StartedAt, At time.Time
	// Code is the exit code of ListenerExited; CodeUnknown if its end was not seen.
	Code int
	// Listened is true if it has written that it listens for jobs.
	Listened bool
	// Unconfigured is true if it exited and has deleted the runner's configuration,
	// as it does when GitHub has deleted the registration.
	Unconfigured bool
	// Detail is the end of its output.
	Detail string
}

// ListenerPhase is the state of a Listener.
type ListenerPhase string

// The phases of a listener.
const (
	ListenerNone      ListenerPhase = ""
	ListenerStarting  ListenerPhase = "starting"
	ListenerListening ListenerPhase = "listening" // it has written that it listens for jobs
	ListenerStopping  ListenerPhase = "stopping"  // it was asked to end
	ListenerExited    ListenerPhase = "exited"
)

// CodeUnknown is the exit code of a listener whose end was not seen.
const CodeUnknown = -1

// Exit codes of Runner.Listener, which run.sh would hide (docs/design.md#github-and-ec2-facts).
const (
	CodeDone            = 0
	CodeTerminated      = 1
	CodeRetryable       = 2
	CodeUpdating        = 3
	CodeUpdatingJobs    = 4
	CodeSessionConflict = 5
	CodeDeprecated      = 7
)

// alive reports whether the listener's process runs.
func (l Listener) alive() bool { return l.Phase != ListenerNone && l.Phase != ListenerExited }

// changing reports whether something on the host may change by itself.
func (s Observed) changing() bool {
	return s.Busy || s.Listener.alive() || s.Prepared.Phase == PhaseRunning ||
		s.Registered.Phase == PhaseRunning || s.Removed.Phase == PhaseRunning || s.Cleaned.Phase == PhaseRunning
}

// shifted returns the state with every time moved by d: from the host's clock to the store's.
func (s Observed) shifted(d time.Duration) Observed {
	for _, p := range []*Progress{&s.Prepared, &s.Registered, &s.Removed, &s.Cleaned} {
		p.At = shift(p.At, d)
	}
	s.Listener.At = shift(s.Listener.At, d)
	s.Listener.StartedAt = shift(s.Listener.StartedAt, d)
	s.InterruptionAt = shift(s.InterruptionAt, d)
	s.RebalanceAt = shift(s.RebalanceAt, d)
	return s
}

func shift(t time.Time, d time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(d)
}
