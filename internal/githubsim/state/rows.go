package state

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/workflow/step"
)

// The kinds of rows in the journal.
const (
	KindRunner  = "runner"
	KindRun     = "run"
	KindJob     = "job"
	KindToken   = "token"
	KindHook    = "hook"
	KindCounter = "counter"
	KindApp     = "app"
	KindGroups  = "groups"
)

// Status and conclusion values, as GitHub writes them. A job is pending while it waits for its needs, for max-parallel or for
// its concurrency group, and waiting while it waits for an approval. A run is what the first of its jobs waits for that cannot go on.
const (
	StatusPending    = "pending"
	StatusWaiting    = "waiting"
	StatusQueued     = "queued"
	StatusInProgress = "in_progress"
	StatusCompleted  = "completed"

	ConclusionSuccess   = "success"
	ConclusionFailure   = "failure"
	ConclusionCancelled = "cancelled"
	ConclusionSkipped   = "skipped"
)

// Runner is one registration.
type Runner struct {
	ID         int64     `json:"id"`
	Scope      string    `json:"scope"` // "owner/name" of a repository, or an organization
	Name       string    `json:"name"`
	Labels     []Label   `json:"labels"`
	Ephemeral  bool      `json:"ephemeral"`
	Hosted     bool      `json:"hosted"`     // a machine of GitHub's own: no list of runners has it
	GroupID    int64     `json:"group_id"`   // 0: the default group
	Credential string    `json:"credential"` // hash of what its listener authenticates with
	Session    string    `json:"session"`    // of its listener; empty: none
	JobID      int64     `json:"job_id"`     // assigned or running; 0: none
	JIT        bool      `json:"jit"`        // it is a just-in-time runner
	CreatedAt  time.Time `json:"created_at"`

	// What follows is of this process only.
	IdleSince time.Time            `json:"-"` // when its session was opened
	Polls     int                  `json:"-"` // open polls
	LastSeen  time.Time            `json:"-"` // end of the last poll
	Abandoned bool                 `json:"-"` // its listener hung up in the middle of a poll
	Heard     bool                 `json:"-"` // since the server began: its session was opened, or it polled
	Sent      map[SentMessage]bool `json:"-"` // messages this session was given
	Changed   chan struct{}        `json:"-"` // closed when there may be a message
	jobSince  time.Time            // when JobID last changed
	wasBusy   bool                 // whether it was shown as busy then
}

type SentMessage struct {
	Kind  protocol.MessageKind
	JobID int64
}

type Label struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"` // "read-only" for the default ones, else "custom"
}

func (r *Runner) Notify() {
	close(r.Changed)
	r.Changed = make(chan struct{})
}

// Busy reports whether the runner is shown as busy at a time, which follows its jobs with a lag.
func (r *Runner) Busy(now time.Time, lag time.Duration) bool {
	if now.Sub(r.jobSince) < lag {
		return r.wasBusy
	}
	return r.JobID != 0
}

// SetJob gives the runner a job; 0 is none. lag is that of Busy.
func (r *Runner) SetJob(id int64, now time.Time, lag time.Duration) {
	r.wasBusy, r.jobSince = r.Busy(now, lag), now
	r.JobID = id
}

// Has reports whether the runner has every one of labels, without regard to case.
func (r *Runner) Has(labels []string) bool {
	for _, want := range labels {
		found := false
		for _, l := range r.Labels {
			found = found || strings.EqualFold(l.Name, want)
		}
		if !found {
			return false
		}
	}
	return true
}

// Serves reports whether the runner's scope takes in the repository.
func (r *Runner) Serves(repository string) bool {
	owner, _, _ := strings.Cut(repository, "/")
	return strings.EqualFold(r.Scope, repository) || strings.EqualFold(r.Scope, owner)
}

// Run is one workflow run.
type Run struct {
	ID         int64     `json:"id"`
	Repository string    `json:"repository"`
	Origin     Origin    `json:"origin"`
	Number     int       `json:"number"`
	Attempt    int       `json:"attempt"`
	Workflow   string    `json:"workflow"` // its name
	Title      string    `json:"title"`
	Source     string    `json:"source"` // the file
	Status     string    `json:"status"`
	Conclusion string    `json:"conclusion"`
	Cancelled  bool      `json:"cancelled"` // a person cancelled this attempt
	CreatedAt  time.Time `json:"created_at"`
	StartedAt  time.Time `json:"started_at"` // of this attempt
	UpdatedAt  time.Time `json:"updated_at"`
	Jobs       []int64   `json:"jobs"` // that count now
	Past       []int64   `json:"past"` // of earlier attempts, replaced by a rerun
}

// Job is one job of one attempt of a run.
type Job struct {
	ID          int64                `json:"id"`
	RunID       int64                `json:"run_id"`
	Attempt     int                  `json:"attempt"`
	Key         string               `json:"key"` // its id in the file, shared by the jobs of a matrix
	Name        string               `json:"name"`
	Labels      []string             `json:"labels"`
	Needs       []string             `json:"needs"`
	FailFast    bool                 `json:"fail_fast"`
	MaxParallel int                  `json:"max_parallel"`
	Always      bool                 `json:"always"` // it runs whatever became of what it needs, and of the run
	Matrix      map[string]any       `json:"matrix"`
	Env         map[string]string    `json:"env"`
	Steps       []step.Step          `json:"steps"`
	Environment string               `json:"environment"` // all are protected: a person has to approve
	Approved    bool                 `json:"approved"`
	Group       string               `json:"group"` // of concurrency
	Status      string               `json:"status"`
	Conclusion  string               `json:"conclusion"`
	RunnerID    int64                `json:"runner_id"` // while queued: assigned to it
	RunnerName  string               `json:"runner_name"`
	GroupID     int64                `json:"group_id"`     // of the runner
	Hosted      bool                 `json:"hosted"`       // the runner is GitHub's own
	IDToken     bool                 `json:"id_token"`     // it may ask for ID tokens
	IDTokenKey  string               `json:"id_token_key"` // hash of what it asks for them with
	Token       string               `json:"token"`        // hash of what its worker authenticates with
	Progress    []protocol.StepState `json:"progress"`
	CreatedAt   time.Time            `json:"created_at"` // zero: it waits for its needs, so GitHub has not made it yet
	QueuedAt    time.Time            `json:"queued_at"`
	AssignedAt  time.Time            `json:"assigned_at"`
	StartedAt   time.Time            `json:"started_at"`
	CompletedAt time.Time            `json:"completed_at"`
	CancelledAt time.Time            `json:"cancelled_at"` // when it was asked to stop
	LockedUntil time.Time            `json:"locked_until"` // while it runs: it fails as lost then
}

// Token is a registration, remove or installation token, kept by its hash.
type Token struct {
	Purpose      string    `json:"purpose"`
	Scope        string    `json:"scope"` // of an installation token the account
	Installation int64     `json:"installation,omitempty"`
	Repositories []string  `json:"repositories,omitempty"` // that an installation token is for, without their owner; nil: all
	ExpiresAt    time.Time `json:"expires_at"`
	// Permissions are those of an installation token.
	Permissions map[string]string `json:"permissions,omitempty"`
}

func (r *Runner) Group() int64 {
	if r.Hosted {
		return HostedGroupID
	}
	return cmp.Or(r.GroupID, GroupID)
}

// Covers reports whether an installation token is good for the repository or organization; "" is neither.
func (t *Token) Covers(scope string) bool {
	if scope == "" {
		return true
	}
	owner, name, isRepository := strings.Cut(scope, "/")
	if !strings.EqualFold(owner, t.Scope) {
		return false
	}
	return !isRepository || t.Repositories == nil || slices.ContainsFunc(t.Repositories, func(n string) bool { return strings.EqualFold(n, name) })
}

// The groups that are always there.
const (
	GroupID   = 1
	GroupName = "Default"

	HostedGroupID   = 0 // of GitHub's own machines
	HostedGroupName = "GitHub Actions"
)
