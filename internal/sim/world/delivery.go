package world

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/delivery"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// missedDelivery is a delivery that was not acknowledged.
type missedDelivery struct {
	delivery.Missed
	webhook lifecycle.Webhook
}

// The ids of the repository and its owner in deliveries.
const (
	repositoryID = 1
	forkID       = 2
)

// deliver sends how a job is now: after a moment, late, twice, or not at all.
func (g *GitHub) deliver(j *WorkflowJob) {
	if g.OnDelivery == nil {
		return
	}
	g.deliveries++
	is := j.WorkflowJob
	hook := lifecycle.Webhook{
		DeliveryID: fmt.Sprintf("delivery-%d", g.deliveries), Action: is.Status, Job: &is, RepositoryID: repositoryID, OwnerID: repositoryID,
	}
	j.Deliveries = append(j.Deliveries, hook.DeliveryID)
	w := g.w
	after := w.Exp(time.Second, 10*time.Second)
	switch {
	case w.Chance(engine.FaultDeliveryLost):
		g.Missed(hook)
		return
	case w.Chance(engine.FaultDeliveryLate):
		after = w.Between(20*time.Second, 15*time.Minute)
	}
	w.After(after, func() { g.OnDelivery(hook) })
	if w.Chance(engine.FaultDeliveryTwice) {
		w.After(after+w.Exp(time.Minute, 10*time.Minute), func() { g.OnDelivery(hook) })
	}
}

// Missed notes that a delivery was not acknowledged.
func (g *GitHub) Missed(hook lifecycle.Webhook) {
	g.w.Tell("github", "delivery missed", fmt.Sprintf("%s: job %d is %s", hook.DeliveryID, hook.Job.ID, hook.Action))
	g.missed = append(g.missed, missedDelivery{delivery.Missed{
		ID: int64(len(g.missed) + 1), DeliveryID: hook.DeliveryID, Event: lifecycle.EventWorkflowJob, DeliveredAt: g.w.Now,
	}, hook})
}

// missedSince are the deliveries that were missed since a time.
func (g *GitHub) missedSince(since time.Time) (missed []delivery.Missed) {
	for _, m := range g.missed {
		if !m.DeliveredAt.Before(since) {
			missed = append(missed, m.Missed)
		}
	}
	return missed
}

// payload is the body of a missed delivery; nil: there is none.
func (g *GitHub) payload(id int64) []byte {
	for _, m := range g.missed {
		if m.ID == id {
			return engine.Must1(json.Marshal(m.webhook))
		}
	}
	return nil
}

// ParseDelivery reads the body of a missed delivery.
func (w *World) ParseDelivery(_, _ string, body []byte, _ time.Time) (hook lifecycle.Webhook, err error) {
	if err := json.Unmarshal(body, &hook); err != nil {
		return hook, fmt.Errorf("read delivery: %w", err)
	}
	w.Mark(engine.MarkFound)
	return hook, nil
}
