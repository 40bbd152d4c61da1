// Package protocol is what the stand-in runner and the stand-in server say to each other under /_standin/runner. It is private
// to the two: GitHub's own protocol is not documented, and nothing but the stand-in runner speaks this one.
package protocol

import (
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/workflow/step"
)

// PollTime is how long the server holds a poll that has nothing to say. GitHub holds one for 50 s; shorter costs requests,
// longer and proxies cut in.
const PollTime = 50 * time.Second

// LogLimit is how many bytes of a job's log are kept, on both sides: the last ones.
const LogLimit = 1 << 20

// Paths of the protocol. Those of a job take its id for %d.
const (
	PathAuthorize = "/_standin/runner/authorize"
	PathRegister  = "/_standin/runner/register"
	PathRemove    = "/_standin/runner/remove"
	PathSession   = "/_standin/runner/session"
	PathMessages  = "/_standin/runner/messages"
	PathAck       = "/_standin/runner/jobs/%d/acknowledge"
	PathAcquire   = "/_standin/runner/jobs/%d/acquire"
	PathRenew     = "/_standin/runner/jobs/%d/renew"
	PathLog       = "/_standin/runner/jobs/%d/log"
	PathSteps     = "/_standin/runner/jobs/%d/steps"
	PathComplete  = "/_standin/runner/jobs/%d/complete"
)

// What a token is to be used for: the runner_event of GitHub's call.
const (
	EventRegister = "register"
	EventRemove   = "remove"
)

// Authorize asks whether a registration or remove token is good, and how it is used; its Authorization is the token. It stands for
// POST /actions/runner-registration (actions/runner 2.336, src/Runner.Listener/Configuration/ConfigurationManager.cs:825-886).
type Authorize struct {
	URL   string `json:"url"` // of the repository or organization
	Event string `json:"runner_event"`
}

// Authorized answers Authorize.
type Authorized struct {
	// AdminFlow is use_v2_flow of GitHub's answer: the runner calls the REST API with the token itself
	// (src/Runner.Listener/Configuration/CredentialManager.cs:91-92).
	AdminFlow bool     `json:"use_v2_flow"`
	Groups    []string `json:"groups"` // names of the runner groups, which actions/runner asks for in a call of its own
}

// Register asks for a registration; its Authorization is the registration token.
type Register struct {
	URL       string   `json:"url"` // of the repository or organization
	Name      string   `json:"name"`
	Labels    []string `json:"labels"` // beside the default ones, or alone
	Group     string   `json:"group,omitempty"`
	Version   string   `json:"version,omitempty"` // of the runner
	Replace   bool     `json:"replace"`
	Ephemeral bool     `json:"ephemeral"`
	Hosted    bool     `json:"hosted,omitempty"` // it stands for a machine of GitHub's own

	NoDefaultLabels bool `json:"no_default_labels,omitempty"` // it gets no labels beside Labels
}

// Registered answers Register.
type Registered struct {
	ID         int64  `json:"id"`
	Credential string `json:"credential"` // what the listener authenticates with from now on
	Times      Times  `json:"times"`
}

// Times are how long a runner takes for what the real one does and the stand-in does not. The server says them when it registers a
// runner, in nanoseconds.
type Times struct {
	ConflictPause time.Duration `json:"conflict_pause"` // between tries to open a session that another listener has
	ConflictLimit time.Duration `json:"conflict_limit"` // for all of them; then exit 5
	Renew         time.Duration `json:"renew"`          // between renewals of a job's lock
	Configure     time.Duration `json:"configure"`      // for config.sh as a whole
	Listen        time.Duration `json:"listen"`         // before a listener opens its session
}

// Remove asks for the end of a registration; its Authorization is the remove token.
type Remove struct {
	URL string `json:"url"`
	ID  int64  `json:"id"`
}

// Session answers the opening of a session.
type Session struct {
	ID string `json:"id"`
}

// Message is what a poll brings. A poll that brings none is answered 204.
type Message struct {
	Kind    MessageKind `json:"kind"`
	JobID   int64       `json:"job_id"`
	Version string      `json:"version,omitempty"` // of MessageRefresh
}

// MessageKind says what a Message asks of the listener.
type MessageKind string

// The kinds of messages.
const (
	MessageJob    MessageKind = "job"    // acquire and run this job
	MessageCancel MessageKind = "cancel" // stop this job
	// MessageRefresh asks the runner to update itself to a version (actions/runner 2.336, RunnerRefreshMessage).
	MessageRefresh MessageKind = "refresh"
)

// Job is all a worker needs, the answer to acquire.
type Job struct {
	ID     int64             `json:"id"`
	Name   string            `json:"name"`
	Token  string            `json:"token"` // the worker's Authorization for this job
	GitHub map[string]any    `json:"github"`
	Matrix map[string]any    `json:"matrix"`
	Env    map[string]string `json:"env"`
	Steps  []step.Step       `json:"steps"`
	// Where and with what its steps ask for ID tokens; empty without the permission.
	IDTokenURL    string `json:"id_token_url,omitempty"`
	IDTokenSecret string `json:"id_token_secret,omitempty"`
	Hosted        bool   `json:"hosted,omitempty"` // its runner stands for a machine of GitHub's own
}

// StepState is the progress of one step of a job, as the jobs endpoint of GitHub shows it.
type StepState struct {
	Name        string     `json:"name"`
	Status      string     `json:"status"`
	Conclusion  *string    `json:"conclusion"`
	Number      int        `json:"number"`
	StartedAt   *time.Time `json:"started_at"`
	CompletedAt *time.Time `json:"completed_at"`
}

// Complete ends a job.
type Complete struct {
	Conclusion string `json:"conclusion"` // success, failure or cancelled
	Reason     string `json:"reason,omitempty"`
}

// Problem is the body of every refusal.
type Problem struct {
	Message string `json:"message"`
}
