package lifecycle

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// MachineState is what the cloud says of a machine.
type MachineState string

// The machine states. A machine that the cloud does not show has the state gone too: see Machine.Shown.
const (
	MachinePending MachineState = "pending"
	MachineRunning MachineState = "running"
	MachineEnding  MachineState = "ending" // shutting down
	MachineGone    MachineState = "gone"
	// MachineStopping and MachineStopped: it keeps its disk, and can be started again.
	MachineStopping MachineState = "stopping"
	MachineStopped  MachineState = "stopped"
)

// Hardware is what a machine is and how it is bought.
type Hardware struct {
	ResourceClass string     `json:"resourceClass"`
	UsageClass    UsageClass `json:"usageClass"`
	InstanceType  string     `json:"instanceType"`
	CPU           int        `json:"cpu"`
	MemoryMiB     int        `json:"mmem"`
	Arch          string     `json:"arch,omitempty"`
	Zone          string     `json:"zone,omitempty"`
}

// Machine is a host as the cloud sees it, with the tags we gave it.
type Machine struct {
	InstanceID string
	HostKey    string
	State      MachineState
	Impaired   bool // the cloud's own health checks fail
	// Hibernates: it was launched so that it can be hibernated when it is stopped.
	Hibernates bool
	Foreign    bool // it has our tag and no launch of ours made it, as far as the cloud shows
	// EndReason is the cloud's code and sentence for why the machine ended; empty if it gives none.
	EndReason string
	Hardware
	LaunchedAt time.Time
	// EndedAt is when the end of the machine was ordered, or it ended by itself: it is paid for until then. Zero: it lives, or the cloud does not say.
	EndedAt time.Time

	// From the tags of the launch.
	Pool            string
	Repository      string
	RunID           string
	RequestID       string
	Launch          int
	TemplateVersion string
	// Bypass is set by an operator's tag: scale-down leaves the machine alone.
	Bypass bool
}

// halted reports whether the machine does not run any more, or is about to.
func (m Machine) halted() bool {
	return m.State == MachineEnding || m.State == MachineStopping || m.State == MachineStopped
}

// Shown reports whether the cloud shows the machine, running or ended. EC2 shows an ended one for about an hour.
func (m Machine) Shown() bool { return m.InstanceType != "" }

// From reports whether the launch of an order made the machine. Request ids are unique within a run.
func (m Machine) From(o LaunchOrder) bool {
	return m.RequestID == o.RequestID && m.Launch == o.Number && m.RunID == o.RunID && m.Repository == o.Repository
}

// Runner is a registration as GitHub sees it. GitHub's busy flag lags and flips
// (docs/design.md#github-and-ec2-facts): nothing is ended on it alone.
type Runner struct {
	ID     int64
	Name   string
	Online bool
	Busy   bool
	// Gone: GitHub was asked for it and has none of that name.
	Gone bool
}

// Message is an idle host's entry in the queue. It is a hint: the claim's condition decides. The JSON names
// are in docs/interfaces.md#the-queue-message and must not change.
type Message struct {
	InstanceID    string     `json:"id"`
	ResourceClass string     `json:"resourceClass"`
	InstanceType  string     `json:"instanceType"`
	CPU           int        `json:"cpu"`
	MemoryMiB     int        `json:"mmem"`
	UsageClass    UsageClass `json:"usageClass"`
	HostKey       string     `json:"hostKey"`
	Pool          string     `json:"pool"`
	Assignment    int64      `json:"assignment"`
	Threshold     time.Time  `json:"threshold"`
	TrustKey      string     `json:"trustKey"`
}

// Message is the queue entry of a pooled host.
func (r Record) Message() Message {
	return Message{
		InstanceID: r.InstanceID, ResourceClass: r.ResourceClass, InstanceType: r.InstanceType,
		CPU: r.CPU, MemoryMiB: r.MemoryMiB, UsageClass: r.UsageClass, HostKey: r.HostKey,
		Pool: r.Pool, Assignment: r.Assignment, Threshold: r.Threshold, TrustKey: r.TrustKey,
	}
}

// QueueName is the queue of idle hosts of one resource and usage class.
type QueueName struct {
	ResourceClass string
	UsageClass    UsageClass
}

// Delivery is one message as handed out by the queue. The receiver owns it until
// it is deleted or returned, or until its visibility timeout ends.
type Delivery struct {
	Message Message
	// Handle names this delivery to Delete and Return.
	Handle string
}

// Event is one transition or decision, kept for 24 hours for people and watchers.
type Event struct {
	// ID is unique and sorts by time within a store.
	ID         string    `json:"id"`
	At         time.Time `json:"at"`
	InstanceID string    `json:"instanceId,omitempty"`
	Repository string    `json:"repository,omitempty"`
	RunID      string    `json:"runId,omitempty"`
	RequestID  string    `json:"requestId,omitempty"`
	// Pool is that of an event without a host: of its request, of its job, or the pool that was paused. The pool of a host is in its record.
	Pool       string `json:"pool,omitempty"`
	Assignment int64  `json:"assignment,omitempty"`
	// Action is what was done or decided; From and To are set on transitions.
	Action Action `json:"action"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Reason string `json:"reason"`
	// Code is the reason in a word; empty in rows of an older controld.
	Code ReasonCode `json:"code,omitempty"`
	// Sweep names the sweep that decided; empty for a request, an order and what a host did.
	Sweep string `json:"sweep,omitempty"`
	// JobID and JobName are those of the job that starts, ends or is refused; 0: it is about none.
	JobID   int64  `json:"jobId,omitempty"`
	JobName string `json:"jobName,omitempty"`
	// Since is when the time began that the event ends: a request was made, a job was queued before it starts or is refused, and started
	// before it ends.
	Since time.Time `json:"since,omitzero"`
	// Statement is the signed statement of the reset after which the event came, and AgentKey the key by which it was verified.
	Statement string        `json:"statement,omitempty"`
	AgentKey  statement.Key `json:"agentKey,omitempty"`
}

// HostHistory is what is left of the history of one host, oldest first.
type HostHistory struct {
	Events []Event
	// From is where the history begins if it was not read as far back as the caller
	// asked, because it is too long to read within a call.
	From time.Time
}
