package lifecycle

import (
	"errors"
	"time"
)

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
	// Reason says what came of it; empty while it is not processed.
	Reason string `json:"reason,omitempty"`

	// DueAt is when the jobs sweep works on it; zero once it is done.
	DueAt     time.Time `json:"dueAt,omitzero"`
	Version   int64     `json:"version"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// MissedDelivery is a delivery that GitHub could not hand over.
type MissedDelivery struct {
	// ID is what GitHub's API knows it by; DeliveryID what its header said.
	ID          int64
	DeliveryID  string
	Event       string
	DeliveredAt time.Time
}
