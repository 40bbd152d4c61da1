package storetest

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var _ = add(group{name: "webhooks", tests: []suiteTest{
	{"a delivery comes back as it was written", testWebhookRoundTrip},
	{"a delivery is remembered once", testWebhookExists},
	{"an update needs the stored version", testWebhookVersion},
	{"rows share nothing with their callers", testWebhookAliasing},
	{"whatever the id is made of", testWebhookIDs},
	{"by due", testWebhooksByDue},
}})

type (
	webhookPage = lifecycle.Page[lifecycle.Webhook]
	jobPage     = lifecycle.Page[lifecycle.Job]
)

// beyondFloat is an id that a number of JavaScript's kind does not hold.
const beyondFloat = 1<<53 + 1

// fullWebhook has a value in every attribute. No delivery of GitHub's is of a
// job and of a run.
func fullWebhook(deliveryID string) lifecycle.Webhook {
	return lifecycle.Webhook{
		DeliveryID: deliveryID, Action: "completed",
		Job: &lifecycle.WorkflowJob{
			ID: beyondFloat, Repository: repository, RunID: runID, RunAttempt: 2, Labels: []string{"gpu", "fast"},
			Status: lifecycle.StatusCompleted, Conclusion: "success", RunnerName: "remuda-3-i-a", RunnerID: 1<<40 + 7,
			QueuedAt: start, StartedAt: start.Add(time.Second), CompletedAt: start.Add(time.Minute),
		},
		Run: &lifecycle.WorkflowRun{
			RunID: runID, RunAttempt: 2, Repository: repository, RepositoryID: beyondFloat + 1, OwnerID: beyondFloat + 2,
			HeadRepositoryID: beyondFloat + 3, Event: "push", HeadBranch: "main", Path: ".github/workflows/ci.yml@main",
			Status: lifecycle.StatusCompleted, Conclusion: "failure",
		},
		RepositoryID: beyondFloat + 4, OwnerID: beyondFloat + 5, Late: true, ReceivedAt: start.Add(2 * time.Minute),
		Reason: "it's \"done\" — 100%", DueAt: start.Add(3 * time.Minute), Version: 1, ExpiresAt: start.Add(10 * time.Hour),
	}
}

func (w world) createWebhooks(t *testing.T, webhooks ...lifecycle.Webhook) {
	t.Helper()
	for _, h := range webhooks {
		if err := w.Store.CreateWebhook(t.Context(), h); err != nil {
			t.Fatalf("CreateWebhook(%s): %v", h.DeliveryID, err)
		}
	}
}

func (w world) webhook(t *testing.T, deliveryID string) lifecycle.Webhook {
	t.Helper()
	h, err := w.Store.Webhook(t.Context(), deliveryID)
	if err != nil {
		t.Fatalf("Webhook(%s): %v", deliveryID, err)
	}
	return h
}

func testWebhookRoundTrip(t *testing.T, w world) {
	want := fullWebhook("a")
	isFull(t, want)
	isFull(t, *want.Job)
	isFull(t, *want.Run)
	w.createWebhooks(t, want)
	got := w.webhook(t, "a")
	equal(t, "webhook", want, got)
	isUTC(t, "receivedAt", got.ReceivedAt)
	isUTC(t, "the job's queuedAt", got.Job.QueuedAt)

	want = lifecycle.Webhook{DeliveryID: "empty", Version: 1}
	w.createWebhooks(t, lifecycle.Webhook{DeliveryID: "empty", Version: 7}) // a new row has version 1, whatever the caller says
	equal(t, "webhook without attributes", want, w.webhook(t, "empty"))
}

func testWebhookExists(t *testing.T, w world) {
	w.createWebhooks(t, fullWebhook("a"))
	again := lifecycle.Webhook{DeliveryID: "a", Action: "queued"}
	wantError(t, "the delivery repeated", w.Store.CreateWebhook(t.Context(), again), lifecycle.ErrExists)
	equal(t, "webhook", fullWebhook("a"), w.webhook(t, "a"))
}

func testWebhookVersion(t *testing.T, w world) {
	w.createWebhooks(t, fullWebhook("a"))
	want := fullWebhook("a")
	want.Job, want.DueAt, want.Reason = nil, time.Time{}, "done"
	want.ReceivedAt = want.ReceivedAt.In(time.FixedZone("elsewhere", 2*60*60))
	got, err := w.Store.UpdateWebhook(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	want.Version = 2
	equal(t, "what update returns", want, got)
	isUTC(t, "receivedAt as update returns it", got.ReceivedAt)
	for _, version := range []int64{-1, 0, 1, 3} {
		stale := fullWebhook("a")
		stale.Version = version
		_, err := w.Store.UpdateWebhook(t.Context(), stale)
		wantError(t, "update with another version", err, lifecycle.ErrConflict)
	}
	equal(t, "webhook", want, w.webhook(t, "a"))

	_, err = w.Store.UpdateWebhook(t.Context(), fullWebhook("nobody"))
	wantError(t, "update of an unknown delivery", err, lifecycle.ErrConflict)
	_, err = w.Store.Webhook(t.Context(), "nobody")
	wantError(t, "read of an unknown delivery", err, lifecycle.ErrNotFound)
}

func testWebhookAliasing(t *testing.T, w world) {
	scribble := func(h lifecycle.Webhook) {
		h.Job.Labels[0], h.Job.Status, h.Run.Status = "scribbled", "scribbled", "scribbled"
	}
	h := fullWebhook("a")
	w.createWebhooks(t, h)
	scribble(h)
	equal(t, "webhook after the caller changed its own", fullWebhook("a"), w.webhook(t, "a"))
	scribble(w.webhook(t, "a"))
	equal(t, "webhook after a reader changed its own", fullWebhook("a"), w.webhook(t, "a"))

	h = fullWebhook("a")
	updated, err := w.Store.UpdateWebhook(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	scribble(h)
	scribble(updated)
	want := fullWebhook("a")
	want.Version = 2
	equal(t, "webhook after both sides of an update changed their own", want, w.webhook(t, "a"))
}

// testWebhookIDs: the id of a delivery is a header, which is not signed.
func testWebhookIDs(t *testing.T, w world) {
	ids := []string{"0b1a", "0B1A", "0b1a ", "0b1a/0b1a", "job/1", "%", "'; --", "é\t\"{}\\", "1"}
	for _, id := range ids {
		_, err := w.Store.Webhook(t.Context(), id)
		wantError(t, "read before it was written: "+id, err, lifecycle.ErrNotFound)
		w.createWebhooks(t, fullWebhook(id))
	}
	w.createJobs(t, fullJob(1))
	for _, id := range ids {
		equal(t, "webhook "+id, fullWebhook(id), w.webhook(t, id))
	}
	_, err := w.Store.Webhook(t.Context(), "")
	wantError(t, "read of no id", err, lifecycle.ErrNotFound)
}

func testWebhooksByDue(t *testing.T, w world) {
	for id, due := range map[string]time.Time{
		"early": start.Add(-time.Hour), "now-b": start, "now-a": start, "later": start.Add(time.Nanosecond), "never": {},
	} {
		h := fullWebhook(id)
		h.DueAt = due
		w.createWebhooks(t, h)
	}
	j := fullJob(1)
	j.DueAt = start
	w.createJobs(t, j) // is no webhook
	due := func(now time.Time) []string {
		t.Helper()
		var ids []string
		for _, h := range all(t, 2, func(of lifecycle.PageOf) (webhookPage, error) { return w.Store.DueWebhooks(t.Context(), now, of) }) {
			ids = append(ids, h.DeliveryID)
		}
		return ids
	}
	equal(t, "the longest due first", []string{"early", "now-a", "now-b"}, due(start))
	equal(t, "a nanosecond later", []string{"early", "now-a", "now-b", "later"}, due(start.Add(time.Nanosecond)))
	equal(t, "long before", []string(nil), due(start.Add(-2*time.Hour)))

	h := w.webhook(t, "now-a")
	h.DueAt = time.Time{}
	if _, err := w.Store.UpdateWebhook(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	equal(t, "after one was worked on", []string{"early", "now-b"}, due(start))
}
