package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
)

var webhooks = kind[lifecycle.Webhook]{
	KindOf: store.Webhooks, noun: "a delivery",
	keys:   []store.Key{{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"f"}},
	full:   func(key store.Key) lifecycle.Webhook { return fullWebhook(key[0]) },
	bare:   func(key store.Key) lifecycle.Webhook { return lifecycle.Webhook{DeliveryID: key[0]} },
	create: store.Store.CreateWebhook, update: store.Store.UpdateWebhook, due: store.Store.DueWebhooks,
	get: func(s store.Store, ctx context.Context, key store.Key) (lifecycle.Webhook, error) {
		return s.Webhook(ctx, key[0])
	},
}

// The id of a delivery is a header, which is not signed.
var _ = add(group{name: "webhooks", tests: append(webhooks.cases(),
	suiteTest{"whatever the id is made of", webhooks.oddKeys},
	suiteTest{"by due", webhooks.byDue},
)})

// fullWebhook has a value in every attribute. No delivery of GitHub's is of a job and of a run.
func fullWebhook(deliveryID string) lifecycle.Webhook {
	return lifecycle.Webhook{
		DeliveryID: deliveryID, Kind: lifecycle.WebhookHostEnded, Action: "completed",
		Job: &lifecycle.WorkflowJob{
			ID: beyondFloat, Repository: repository, RunID: runID, RunAttempt: 2, Name: "build (1)", Workflow: "CI", Labels: []string{"gpu", "fast"},
			Status: lifecycle.StatusCompleted, Conclusion: "success", RunnerName: "remuda-3-i-a", RunnerID: 1<<40 + 7,
			QueuedAt: start, StartedAt: start.Add(time.Second), CompletedAt: start.Add(time.Minute),
		},
		Run: &lifecycle.WorkflowRun{
			RunID: runID, RunAttempt: 2, Repository: repository, RepositoryID: beyondFloat + 1, OwnerID: beyondFloat + 2,
			HeadRepositoryID: beyondFloat + 3, Event: "push", HeadBranch: "main", Path: ".github/workflows/ci.yml@main",
			Status: lifecycle.StatusCompleted, Conclusion: "failure",
		},
		RepositoryID: beyondFloat + 4, OwnerID: beyondFloat + 5, Late: true, Unknown: 2, Refused: true, ReceivedAt: start.Add(2 * time.Minute),
		Reason: "it's \"done\" — 100%", DueAt: start.Add(3 * time.Minute), Version: 1, ExpiresAt: start.Add(10 * time.Hour),
	}
}

var _ = add(group{name: "seen", tests: []suiteTest{
	{"an id of a kind is seen once", testSeeOnce},
	{"and again after its time", testSeeOnceAgain},
}})

func testSeeOnce(t *testing.T, w world) {
	until := start.Add(time.Hour)
	for _, seen := range []struct{ kind, id string }{
		{"token", "a"}, {"token", "A"}, {"token", "a "}, {"token", ""}, {"other", "a"}, {"token a", ""}, {"token/a", "b"}, {"token", "a/b"}, {"token", "a b"},
		{"token", "é'; -- %\"{}\\"},
	} {
		if err := w.Store.SeeOnce(t.Context(), seen.kind, seen.id, until); err != nil {
			t.Errorf("first time of %q: %v", seen, err)
		}
		for range 2 {
			wantError(t, "seen before", w.Store.SeeOnce(t.Context(), seen.kind, seen.id, until), lifecycle.ErrExists)
		}
	}
}

// testSeeOnceAgain: another look before the end does not lengthen the time, and an
// id whose time is over does not count, whether or not its row is still there.
func testSeeOnceAgain(t *testing.T, w world) {
	see := func(until time.Time) error { return w.Store.SeeOnce(t.Context(), "token", "a", until) }
	const d = 90*time.Second + time.Nanosecond // no whole second
	if err := see(start.Add(d).In(time.FixedZone("elsewhere", -7*60*60))); err != nil {
		t.Fatal(err)
	}
	w.clock.advance(d - time.Nanosecond)
	wantError(t, "just before its time", see(start.Add(time.Hour)), lifecycle.ErrExists)
	w.clock.advance(time.Nanosecond)
	if err := see(w.clock.Now().Add(d)); err != nil {
		t.Errorf("at its time: %v", err)
	}
	wantError(t, "seen again", see(start.Add(time.Hour)), lifecycle.ErrExists)
	w.churn(t, time.Hour)
	if err := see(w.clock.Now().Add(d)); err != nil {
		t.Errorf("long after its time: %v", err)
	}
	if err := w.Store.SeeOnce(t.Context(), "token", "past", start); err != nil {
		t.Errorf("with a time that is over: %v", err)
	}
}
