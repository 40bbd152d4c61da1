package githubsim

import (
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/workflow/step"
)

// The kinds of rows in the journal.
const (
	kindRunner  = "runner"
	kindRun     = "run"
	kindJob     = "job"
	kindToken   = "token"
	kindHook    = "hook"
	kindCounter = "counter"
	kindApp     = "app"
	kindGroups  = "groups"
)

// Status and conclusion values, as GitHub writes them. A job is pending while it waits for its needs or for max-parallel;
// GitHub does not show such a job at all.
const (
	statusPending    = "pending"
	statusQueued     = "queued"
	statusInProgress = "in_progress"
	statusCompleted  = "completed"

	conclusionSuccess   = "success"
	conclusionFailure   = "failure"
	conclusionCancelled = "cancelled"
	conclusionSkipped   = "skipped"
)

// runner is one registration.
type runner struct {
	ID         int64     `json:"id"`
	Scope      string    `json:"scope"` // "owner/name" of a repository, or an organisation
	Name       string    `json:"name"`
	Labels     []label   `json:"labels"`
	Ephemeral  bool      `json:"ephemeral"`
	Hosted     bool      `json:"hosted"`     // a machine of GitHub's own: no list of runners has it
	GroupID    int64     `json:"group_id"`   // 0: the default group
	Credential string    `json:"credential"` // hash of what its listener authenticates with
	Session    string    `json:"session"`    // of its listener; empty: none
	JobID      int64     `json:"job_id"`     // assigned or running; 0: none
	CreatedAt  time.Time `json:"created_at"`

	// What follows is of this process only.
	polls     int           // open polls
	lastSeen  time.Time     // end of the last poll
	abandoned bool          // its listener hung up in the middle of a poll
	heard     bool          // since the server began: its session was opened, or it polled
	sent      map[sent]bool // messages this session was given
	changed   chan struct{} // closed when there may be a message
}

type sent struct {
	kind protocol.MessageKind
	job  int64
}

type label struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"` // "read-only" for the default ones, else "custom"
}

func (r *runner) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// has reports whether the runner has every one of labels, without regard to case.
func (r *runner) has(labels []string) bool {
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

// serves reports whether the runner's scope takes in the repository.
func (r *runner) serves(repository string) bool {
	owner, _, _ := strings.Cut(repository, "/")
	return strings.EqualFold(r.Scope, repository) || strings.EqualFold(r.Scope, owner)
}

// run is one workflow run.
type run struct {
	ID         int64     `json:"id"`
	Repository string    `json:"repository"`
	Origin     origin    `json:"origin"`
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

// job is one job of one attempt of a run.
type job struct {
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
	CreatedAt   time.Time            `json:"created_at"`
	AssignedAt  time.Time            `json:"assigned_at"`
	StartedAt   time.Time            `json:"started_at"`
	CompletedAt time.Time            `json:"completed_at"`
	CancelledAt time.Time            `json:"cancelled_at"` // when it was asked to stop
}

// token is a registration, remove or installation token, kept by its hash.
type token struct {
	Purpose      string    `json:"purpose"`
	Scope        string    `json:"scope"` // of an installation token the account
	Installation int64     `json:"installation,omitempty"`
	Repositories []string  `json:"repositories,omitempty"` // that an installation token is for, without their owner; nil: all
	ExpiresAt    time.Time `json:"expires_at"`
}
