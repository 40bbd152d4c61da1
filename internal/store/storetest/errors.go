package storetest

import (
	"context"
	"maps"
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
	s, of := w.Store, lifecycle.PageOf{}
	calls := map[string]func(context.Context) error{
		"ClaimInstance": func(ctx context.Context) error { _, err := s.ClaimInstance(ctx, claimOf("pooled")); return err },
		"Instances":     func(ctx context.Context) error { _, err := s.Instances(ctx, []string{"a"}); return err },
		"Reports":       func(ctx context.Context) error { _, err := s.Reports(ctx, []string{"a"}); return err },
		"DeleteReport":  func(ctx context.Context) error { return s.DeleteReport(ctx, "a") },
		"RequestsOfRun": func(ctx context.Context) error { _, err := s.RequestsOfRun(ctx, repository, runID); return err },
		"AddEvents":     func(ctx context.Context) error { return s.AddEvents(ctx, []lifecycle.Event{fullEvent("new")}) },
		"EventsOfInstance": func(ctx context.Context) error {
			_, err := s.EventsOfInstance(ctx, "i-a", time.Time{}, time.Time{}, 10)
			return err
		},
		"LastEvent":          func(ctx context.Context) error { _, err := s.LastEvent(ctx); return err },
		"OpenJobsOfRun":      func(ctx context.Context) error { _, err := s.OpenJobsOfRun(ctx, repository, runID); return err },
		"JobsOf":             func(ctx context.Context) error { _, err := s.JobsOf(ctx, []int64{1}); return err },
		"SeeOnce":            func(ctx context.Context) error { return s.SeeOnce(ctx, "token", "a", start.Add(time.Hour)) },
		"WaitingWork":        func(ctx context.Context) error { _, err := s.WaitingWork(ctx, service, 1); return err },
		"CountWork":          func(ctx context.Context) error { _, err := s.CountWork(ctx, service, 10); return err },
		"ListWork":           func(ctx context.Context) error { _, err := s.ListWork(ctx, service, model.JobStates, of); return err },
		"Workers":            func(ctx context.Context) error { _, err := s.Workers(ctx, service, of); return err },
		"HostView.Record":    func(ctx context.Context) error { _, _, err := w.ForHost("a").Record(ctx, true); return err },
		"HostView.PutReport": func(ctx context.Context) error { return w.ForHost("a").PutReport(ctx, fullReport("a")) },
	}
	for _, k := range kinds {
		maps.Copy(calls, k.calls(s))
	}
	for _, l := range listings {
		calls["list "+l.name] = func(ctx context.Context) error { _, _, err := l.list(ctx, s, of); return err }
	}
	return calls
}

func (w world) seed(t *testing.T) {
	t.Helper()
	for _, k := range kinds {
		k.seed(t, w)
	}
	instances.put(t, w, pooledRecord("pooled"))
	w.report(t, fullReport("a"))
	w.addEvents(t, fullEvent("old"))
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
	equal(t, "record after it all", instances.row(), instances.at(t, w, instances.keys[0]))
	equal(t, "job after it all", jobs.row(), jobs.at(t, w, jobs.keys[0]))
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
	if got := instances.stored(t, w, "a").Registration.Secret.Reveal(); got != secret {
		t.Error("the secret did not survive")
	}
}
