package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var _ = add(group{name: "expiry", tests: []suiteTest{
	{"live rows never vanish", testLiveStay},
	{"expired rows are whole or gone", testExpiredWhole},
	{"the history is kept for 24 h", testHistoryKept},
}})

// churn writes something every few minutes, since stores clear up behind
// writes.
func (w world) churn(t *testing.T, d time.Duration) {
	t.Helper()
	const step = 7 * time.Minute
	for passed := time.Duration(0); passed < d; passed += step {
		w.clock.advance(min(step, d-passed))
		w.report(t, lifecycle.Report{HostKey: "churn", HeartbeatAt: w.clock.Now()})
	}
}

func testLiveStay(t *testing.T, w world) {
	forever, later := fullRecord("forever"), fullRecord("later")
	forever.ExpiresAt, later.ExpiresAt = time.Time{}, start.Add(time.Hour)
	w.create(t, forever, later)
	foreverRequest, laterRequest := fullRequest("forever"), fullRequest("later")
	foreverRequest.ExpiresAt, laterRequest.ExpiresAt = time.Time{}, start.Add(time.Hour)
	w.createRequests(t, foreverRequest, laterRequest)
	foreverWebhook, laterWebhook := fullWebhook("forever"), fullWebhook("later")
	foreverWebhook.ExpiresAt, laterWebhook.ExpiresAt = time.Time{}, start.Add(time.Hour)
	w.createWebhooks(t, foreverWebhook, laterWebhook)
	foreverJob, laterJob := fullJob(1), fullJob(2)
	foreverJob.ExpiresAt, laterJob.ExpiresAt = time.Time{}, start.Add(time.Hour)
	w.createJobs(t, foreverJob, laterJob)
	foreverWork, laterWork := fullWork("forever"), fullWork("later")
	foreverWork.ExpiresAt, laterWork.ExpiresAt = time.Time{}, start.Add(time.Hour)
	w.createWork(t, foreverWork, laterWork)
	foreverWorker, laterWorker := fullWorker("forever"), fullWorker("later")
	foreverWorker.ExpiresAt, laterWorker.ExpiresAt = time.Time{}, start.Add(time.Hour)
	foreverWorker, laterWorker = w.updateWorker(t, foreverWorker), w.updateWorker(t, laterWorker)
	turns := w.updateTurns(t, fullTurns(jobPool))
	w.report(t, fullReport("a"))
	if _, err := w.Store.TakeLease(t.Context(), lifecycle.Lease{Name: "sweep", Holder: "a"}); err != nil {
		t.Fatal(err)
	}

	w.churn(t, time.Hour-time.Nanosecond)
	equal(t, "record that expires soon", later, w.instance(t, "later"))
	equal(t, "request that expires soon", laterRequest, w.request(t, "later"))
	equal(t, "webhook that expires soon", laterWebhook, w.webhook(t, "later"))
	equal(t, "job that expires soon", laterJob, w.job(t, 2))
	equal(t, "job of a service that expires soon", laterWork, w.work(t, "later"))
	equal(t, "worker that expires soon", laterWorker, w.worker(t, "later"))
	w.churn(t, 48*time.Hour)
	equal(t, "record that does not expire", forever, w.instance(t, "forever"))
	equal(t, "request that does not expire", foreverRequest, w.request(t, "forever"))
	equal(t, "webhook that does not expire", foreverWebhook, w.webhook(t, "forever"))
	equal(t, "job that does not expire", foreverJob, w.job(t, 1))
	equal(t, "job of a service that does not expire", foreverWork, w.work(t, "forever"))
	equal(t, "worker that does not expire", foreverWorker, w.worker(t, "forever"))
	equal(t, "turns", turns, w.turns(t, jobPool))
	if got, err := w.Store.Reports(t.Context(), []string{"a"}); err != nil || len(got) != 1 {
		t.Errorf("report: got %v and error %v, want it", got, err)
	}
	if _, err := w.Store.Lease(t.Context(), "sweep"); err != nil {
		t.Errorf("lease: %v", err)
	}
}

func testExpiredWhole(t *testing.T, w world) {
	r := fullRecord("a")
	r.ExpiresAt = start.Add(time.Minute)
	w.create(t, r)
	q := fullRequest("a")
	q.ExpiresAt = start.Add(time.Minute)
	w.createRequests(t, q)
	h, j := fullWebhook("a"), fullJob(1)
	h.ExpiresAt, j.ExpiresAt = start.Add(time.Minute), start.Add(time.Minute)
	w.createWebhooks(t, h)
	w.createJobs(t, j)
	w.churn(t, time.Hour)
	switch got, err := w.Store.Instance(t.Context(), "a"); {
	case err == nil:
		equal(t, "record", r, got)
	case !errors.Is(err, lifecycle.ErrNotFound):
		t.Error(err)
	}
	switch got, err := w.Store.Request(t.Context(), repository, runID, "a"); {
	case err == nil:
		equal(t, "request", q, got)
	case !errors.Is(err, lifecycle.ErrNotFound):
		t.Error(err)
	}
	switch got, err := w.Store.Webhook(t.Context(), "a"); {
	case err == nil:
		equal(t, "webhook", h, got)
	case !errors.Is(err, lifecycle.ErrNotFound):
		t.Error(err)
	}
	switch got, err := w.Store.Job(t.Context(), 1); {
	case err == nil:
		equal(t, "job", j, got)
	case !errors.Is(err, lifecycle.ErrNotFound):
		t.Error(err)
	}
}

func testHistoryKept(t *testing.T, w world) {
	since := func(of lifecycle.PageOf) []string {
		t.Helper()
		page, err := w.Store.EventsSince(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		return reasons(page.Items)
	}
	w.addEvents(t, fullEvent("old"))
	page, err := w.Store.EventsSince(t.Context(), lifecycle.PageOf{})
	if err != nil {
		t.Fatal(err)
	}
	w.churn(t, 24*time.Hour-time.Nanosecond)
	equal(t, "after just under 24 h", []string{"old"}, since(lifecycle.PageOf{}))

	// Whatever has vanished by then, a watcher's place stays good.
	w.churn(t, time.Hour)
	e := fullEvent("new")
	e.At = w.clock.Now()
	w.addEvents(t, e)
	w.churn(t, time.Hour)
	equal(t, "what came since", []string{"new"}, since(lifecycle.PageOf{After: page.Next}))
}
