package storetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

var _ = add(group{name: "errors", tests: []suiteTest{
	{"a caller who has gone is told unavailable", testCancelled},
	{"no error tells a secret", testSecrets},
}})

// calls are all methods, on the rows of seed; each works once, in any order.
func calls(w world) map[string]func(context.Context) error {
	of := lifecycle.PageOf{}
	pool := lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}
	return map[string]func(context.Context) error{
		"CreateInstance": func(ctx context.Context) error { return w.Store.CreateInstance(ctx, fullRecord("new")) },
		"UpdateInstance": func(ctx context.Context) error { _, err := w.Store.UpdateInstance(ctx, fullRecord("a")); return err },
		"ClaimInstance":  func(ctx context.Context) error { _, err := w.Store.ClaimInstance(ctx, claimOf("pooled")); return err },
		"Instance":       func(ctx context.Context) error { _, err := w.Store.Instance(ctx, "a"); return err },
		"Instances":      func(ctx context.Context) error { _, err := w.Store.Instances(ctx, []string{"a"}); return err },
		"InstancesOfRun": func(ctx context.Context) error { _, err := w.Store.InstancesOfRun(ctx, runID, of); return err },
		"PooledInstances": func(ctx context.Context) error {
			_, err := w.Store.PooledInstances(ctx, "default", pool, repository, of)
			return err
		},
		"DueInstances": func(ctx context.Context) error { _, err := w.Store.DueInstances(ctx, start, of); return err },
		"ListInstances": func(ctx context.Context) error {
			_, err := w.Store.ListInstances(ctx, lifecycle.Filter{}, of)
			return err
		},
		"Reports":       func(ctx context.Context) error { _, err := w.Store.Reports(ctx, []string{"a"}); return err },
		"AllReports":    func(ctx context.Context) error { _, err := w.Store.AllReports(ctx, of); return err },
		"DeleteReport":  func(ctx context.Context) error { return w.Store.DeleteReport(ctx, "a") },
		"CreateRequest": func(ctx context.Context) error { return w.Store.CreateRequest(ctx, fullRequest("new")) },
		"UpdateRequest": func(ctx context.Context) error { _, err := w.Store.UpdateRequest(ctx, fullRequest("a")); return err },
		"Request":       func(ctx context.Context) error { _, err := w.Store.Request(ctx, repository, runID, "a"); return err },
		"RequestsOfRun": func(ctx context.Context) error { _, err := w.Store.RequestsOfRun(ctx, repository, runID); return err },
		"DueRequests":   func(ctx context.Context) error { _, err := w.Store.DueRequests(ctx, start, of); return err },
		"AddEvents": func(ctx context.Context) error {
			return w.Store.AddEvents(ctx, []lifecycle.Event{fullEvent("new")})
		},
		"EventsOfRun": func(ctx context.Context) error { _, err := w.Store.EventsOfRun(ctx, repository, runID, of); return err },
		"EventsOfInstance": func(ctx context.Context) error {
			_, err := w.Store.EventsOfInstance(ctx, "i-a", time.Time{}, 10)
			return err
		},
		"EventsSince": func(ctx context.Context) error { _, err := w.Store.EventsSince(ctx, of); return err },
		"LastEvent":   func(ctx context.Context) error { _, err := w.Store.LastEvent(ctx); return err },
		"Lease":       func(ctx context.Context) error { _, err := w.Store.Lease(ctx, "sweep"); return err },
		"TakeLease": func(ctx context.Context) error {
			_, err := w.Store.TakeLease(ctx, lifecycle.Lease{Name: "sweep", Holder: "b", Version: 1})
			return err
		},
		"CreateWebhook": func(ctx context.Context) error { return w.Store.CreateWebhook(ctx, fullWebhook("new")) },
		"UpdateWebhook": func(ctx context.Context) error { _, err := w.Store.UpdateWebhook(ctx, fullWebhook("a")); return err },
		"Webhook":       func(ctx context.Context) error { _, err := w.Store.Webhook(ctx, "a"); return err },
		"DueWebhooks":   func(ctx context.Context) error { _, err := w.Store.DueWebhooks(ctx, start, of); return err },
		"CreateJob":     func(ctx context.Context) error { return w.Store.CreateJob(ctx, fullJob(2)) },
		"UpdateJob":     func(ctx context.Context) error { _, err := w.Store.UpdateJob(ctx, fullJob(1)); return err },
		"Job":           func(ctx context.Context) error { _, err := w.Store.Job(ctx, 1); return err },
		"OpenJobsOfRun": func(ctx context.Context) error { _, err := w.Store.OpenJobsOfRun(ctx, repository, runID); return err },
		"WaitingJobs":   func(ctx context.Context) error { _, err := w.Store.WaitingJobs(ctx, jobPool, of); return err },
		"DueJobs":       func(ctx context.Context) error { _, err := w.Store.DueJobs(ctx, start, of); return err },
		"Turns":         func(ctx context.Context) error { _, err := w.Store.SlotTable(ctx, jobPool); return err },
		"UpdateTurns": func(ctx context.Context) error {
			_, err := w.Store.UpdateSlotTable(ctx, fullTurns(jobPool))
			return err
		},
		"FleetHold": func(ctx context.Context) error { _, err := w.Store.FleetHold(ctx); return err },
		"UpdateFleetHold": func(ctx context.Context) error {
			_, err := w.Store.UpdateFleetHold(ctx, lifecycle.FleetHold{Until: start})
			return err
		},
		"Breaker": func(ctx context.Context) error { _, err := w.Store.Breaker(ctx, jobPool); return err },
		"UpdateBreaker": func(ctx context.Context) error {
			_, err := w.Store.UpdateBreaker(ctx, fullBreaker(jobPool))
			return err
		},
		"Account": func(ctx context.Context) error { _, err := w.Store.QuotaLedger(ctx, "pool/a"); return err },
		"UpdateAccount": func(ctx context.Context) error {
			_, err := w.Store.UpdateQuotaLedger(ctx, fullAccount("pool/a"))
			return err
		},
		"SeeOnce":     func(ctx context.Context) error { return w.Store.SeeOnce(ctx, "token", "a", start.Add(time.Hour)) },
		"CreateWork":  func(ctx context.Context) error { return w.Store.CreateWork(ctx, fullWork("new")) },
		"UpdateWork":  func(ctx context.Context) error { _, err := w.Store.UpdateWork(ctx, fullWork("a")); return err },
		"Work":        func(ctx context.Context) error { _, err := w.Store.Work(ctx, service, "a"); return err },
		"WaitingWork": func(ctx context.Context) error { _, err := w.Store.WaitingWork(ctx, service, 1); return err },
		"CountWork":   func(ctx context.Context) error { _, err := w.Store.CountWork(ctx, service, 10); return err },
		"ListWork": func(ctx context.Context) error {
			_, err := w.Store.ListWork(ctx, service, model.JobStates, lifecycle.PageOf{})
			return err
		},
		"DueWork":            func(ctx context.Context) error { _, err := w.Store.DueWork(ctx, start, of); return err },
		"Worker":             func(ctx context.Context) error { _, err := w.Store.Worker(ctx, service, "a"); return err },
		"UpdateWorker":       func(ctx context.Context) error { _, err := w.Store.UpdateWorker(ctx, fullWorker("new")); return err },
		"Workers":            func(ctx context.Context) error { _, err := w.Store.Workers(ctx, service, of); return err },
		"HostView.Record":    func(ctx context.Context) error { _, _, err := w.ForHost("a").Record(ctx, true); return err },
		"HostView.PutReport": func(ctx context.Context) error { return w.ForHost("a").PutReport(ctx, fullReport("a")) },
	}
}

func (w world) seed(t *testing.T) {
	t.Helper()
	w.create(t, fullRecord("a"), pooledRecord("pooled"))
	w.createRequests(t, fullRequest("a"))
	w.report(t, fullReport("a"))
	w.addEvents(t, fullEvent("old"))
	w.createWebhooks(t, fullWebhook("a"))
	w.createJobs(t, fullJob(1))
	w.createWork(t, fullWork("a"))
	w.updateWorker(t, fullWorker("a"))
	if _, err := w.Store.TakeLease(t.Context(), lifecycle.Lease{Name: "sweep", Holder: "a"}); err != nil {
		t.Fatal(err)
	}
}

func testCancelled(t *testing.T, w world) {
	w.seed(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for name, call := range calls(w) {
		for _, ctx := range []context.Context{cancelled, late} {
			err := call(ctx)
			wantError(t, name, err, lifecycle.ErrUnavailable)
			wantError(t, name, err, ctx.Err())
		}
	}
	equal(t, "record after it all", fullRecord("a"), w.instance(t, "a"))
	equal(t, "job after it all", fullJob(1), w.job(t, 1))
	for name, call := range calls(w) {
		if err := call(t.Context()); err != nil {
			t.Errorf("%s with a caller who stays: %v", name, err)
		}
	}
}

func testSecrets(t *testing.T, w world) {
	w.seed(t)
	stale := fullRecord("a")
	stale.Version = 7
	_, lost := w.Store.UpdateInstance(t.Context(), stale)
	claim := claimOf("a")
	_, refused := w.Store.ClaimInstance(t.Context(), claim)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, gone := w.Store.UpdateInstance(cancelled, fullRecord("a"))
	errs := []error{lost, refused, gone, w.Store.CreateInstance(t.Context(), fullRecord("a")), w.Store.CreateInstance(cancelled, fullRecord("b"))}
	for i, err := range errs {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("error %d: got %v, want one without the secret", i, err)
		}
	}
	if got := w.instance(t, "a").Registration.Secret.Reveal(); got != secret {
		t.Error("the secret did not survive")
	}
}
