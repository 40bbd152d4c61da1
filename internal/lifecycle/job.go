package lifecycle

import (
	"errors"
	"time"
)

// WorkflowJob is a job of a workflow run, as GitHub describes it.
type WorkflowJob struct {
	ID         int64  `json:"id"`
	Repository string `json:"repository"` // "owner/name"
	RunID      string `json:"runId"`
	RunAttempt int    `json:"runAttempt,omitempty"`
	// Name is what people call it, such as "build (1)": the author of the workflow chose it.
	Name string `json:"name,omitempty"`
	// Workflow is the name of its workflow, which the author chose too; empty: GitHub did not say.
	Workflow string `json:"workflow,omitempty"`
	// Labels are what its runner must have.
	Labels []string `json:"labels,omitempty"`
	// Status is GitHub's: "queued", "waiting", "in_progress" or "completed".
	Status     string `json:"status"`
	Conclusion string `json:"conclusion,omitempty"`
	// RunnerName is the runner that took it; empty while none has.
	RunnerName string `json:"runnerName,omitempty"`
	// RunnerID is that runner's id, which tells an organization's runner from a repository's of the same name; 0: GitHub did not say.
	RunnerID int64 `json:"runnerId,omitempty"`
	// QueuedAt is when GitHub made it (created_at).
	QueuedAt    time.Time `json:"queuedAt,omitzero"`
	StartedAt   time.Time `json:"startedAt,omitzero"`
	CompletedAt time.Time `json:"completedAt,omitzero"`
}

// WorkflowRun is a run, as GitHub describes it.
type WorkflowRun struct {
	RunID      string `json:"runId"`
	RunAttempt int    `json:"runAttempt,omitempty"`
	Repository string `json:"repository"` // "owner/name"
	// RepositoryID and OwnerID stay when names change.
	RepositoryID int64 `json:"repositoryId,omitempty"`
	OwnerID      int64 `json:"ownerId,omitempty"`
	// HeadRepositoryID is where its commit comes from: another one than
	// RepositoryID is a fork. 0: GitHub did not say.
	HeadRepositoryID int64 `json:"headRepositoryId,omitempty"`
	// Event is what started it, such as "push". HeadBranch is its branch, and Path its workflow file.
	Event      string `json:"event,omitempty"`
	HeadBranch string `json:"headBranch,omitempty"`
	Path       string `json:"path,omitempty"`
	// Status is GitHub's: "queued", "in_progress", "completed" and others.
	Status     string `json:"status"`
	Conclusion string `json:"conclusion,omitempty"`
}

// The statuses of runs and jobs that matter to us.
const (
	StatusQueued     = "queued"
	StatusInProgress = "in_progress"
	StatusCompleted  = "completed"
)

// JobState is how far a Job has come.
type JobState string

// The states of a job.
const (
	JobWaiting JobState = "waiting" // queued on GitHub: no runner has it
	JobRunning JobState = "running" // a runner has it, ours or not
	JobDone    JobState = "done"    // completed, or gone from GitHub
)

// JobStates lists every state, in the order of a job's life.
var JobStates = []JobState{JobWaiting, JobRunning, JobDone}

// Job is a workflow job that is to run on our hosts: a row of the jobs table. Only controld writes it, always under a condition.
type Job struct {
	ID         int64    `json:"id"`
	Repository string   `json:"repository"`
	RunID      string   `json:"runId"`
	RunAttempt int      `json:"runAttempt,omitempty"`
	Name       string   `json:"name,omitempty"`     // that of WorkflowJob
	Workflow   string   `json:"workflow,omitempty"` // that of WorkflowJob
	Labels     []string `json:"labels,omitempty"`
	// Pool is the job pool that serves it; empty: the hosts of its run do.
	Pool string `json:"pool,omitempty"`
	// Scope says which runners can take it: "owner/name", or "owner" where runners
	// are registered with the organization.
	Scope string `json:"scope,omitempty"`

	State    JobState  `json:"state"`
	QueuedAt time.Time `json:"queuedAt,omitzero"`
	// RunnerName is the runner that took it.
	RunnerName string    `json:"runnerName,omitempty"`
	StartedAt  time.Time `json:"startedAt,omitzero"`
	EndedAt    time.Time `json:"endedAt,omitzero"`
	Conclusion string    `json:"conclusion,omitempty"`
	// NotBefore is until when it is passed over, after a slot that was assigned for
	// it ended without a job. Passed counts how often in a row that has happened.
	NotBefore time.Time `json:"notBefore,omitzero"`
	Passed    int       `json:"passed,omitempty"`
	// Reason is the sentence of the last change.
	Reason string `json:"reason,omitempty"`

	// DueAt is when GitHub is asked about it, in case its webhooks were lost; zero once it is done.
	DueAt     time.Time `json:"dueAt,omitzero"`
	Version   int64     `json:"version"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// PassedOver reports whether the job gets no slot for now.
func (j Job) PassedOver(now time.Time) bool { return now.Before(j.NotBefore) }

// Before is the order in which jobs of a pool are served: by queuedAt, and then by id.
func (j Job) Before(o Job) bool {
	if !j.QueuedAt.Equal(o.QueuedAt) {
		return j.QueuedAt.Before(o.QueuedAt)
	}
	return j.ID < o.ID
}

// The events of GitHub's that are of use here.
const (
	EventWorkflowJob = "workflow_job"
	EventWorkflowRun = "workflow_run"
)

// ErrWebhookIgnored says that a delivery is fine and of no use here. The text of
// the error around it says why.
var ErrWebhookIgnored = errors.New("ignored")

// WebhookKind says where a Webhook comes from.
type WebhookKind string

// The kinds of webhooks.
const (
	WebhookDelivered WebhookKind = "delivered" // GitHub made it, whether it was received or recovered
	WebhookFound     WebhookKind = "found"     // for a job that GitHub lists as queued
	WebhookHostEnded WebhookKind = "ended"     // for a waiting job whose run lost a host
)

// Webhook is what is kept of one delivery of GitHub's: a row that is written before the delivery is
// acknowledged, so that a crash loses nothing and a repeated delivery is known.
type Webhook struct {
	// DeliveryID is GitHub's, from X-GitHub-Delivery.
	DeliveryID string `json:"deliveryId"`
	// Kind is written when the row is made.
	Kind WebhookKind `json:"kind,omitempty"`
	// Action is GitHub's: "queued", "in_progress", "completed" and others.
	Action string `json:"action"`
	// Job is set for workflow_job, Run for workflow_run.
	Job *WorkflowJob `json:"job,omitempty"`
	Run *WorkflowRun `json:"run,omitempty"`
	// RepositoryID and OwnerID stay when names change.
	RepositoryID int64 `json:"repositoryId,omitempty"`
	OwnerID      int64 `json:"ownerId,omitempty"`
	// Late is set when the delivery was not received but found later: then
	// GitHub is asked whether it still holds.
	Late       bool      `json:"late,omitempty"`
	ReceivedAt time.Time `json:"receivedAt"`
	// Unknown counts how often it was put off because GitHub did not know its run.
	Unknown int `json:"unknown,omitempty"`
	// Refused is set when its job gets no host, and no row.
	Refused bool `json:"refused,omitempty"`
	// Reason says what came of it; empty while it is not processed.
	Reason string `json:"reason,omitempty"`

	// DueAt is when the jobs sweep works on it; zero once it is done.
	DueAt     time.Time `json:"dueAt,omitzero"`
	Version   int64     `json:"version"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}
