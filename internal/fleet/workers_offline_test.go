package fleet_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// offline are the events of workers that went offline, in order.
func (w *workWorld) offline() (reasons []string) {
	w.t.Helper()
	page, err := w.store.EventsSince(w.t.Context(), lifecycle.PageOf{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range page.Items {
		if e.Action == lifecycle.ActionWorkerOffline {
			reasons = append(reasons, string(e.Code)+" "+e.Reason)
		}
	}
	return reasons
}

func (w *workWorld) heartbeat(worker string, now time.Time) {
	w.t.Helper()
	if _, err := w.fleet.HearWorker(w.t.Context(), "render", worker, "1.0", now); err != nil {
		w.t.Fatal(err)
	}
}

// A worker that goes offline is recorded once each time, by whichever replica sweeps.
func TestAWorkerGoesOffline(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("render", "film")
	w.heartbeat("idle", workBegan)
	w.claim("render", "busy", workBegan)
	w.sweep(workBegan.Add(model.WorkerSilence - time.Millisecond))
	if got := w.offline(); len(got) > 0 {
		t.Errorf("too early: %q", got)
	}
	w.sweep(workBegan.Add(model.WorkerSilence))
	w.sweep(workBegan.Add(model.WorkerSilence + time.Second))
	want := []string{
		"worker_silent worker busy of service render has sent no heartbeat since 2026-03-04T05:06:07Z, for longer than 1m0s",
		"worker_silent worker idle of service render has sent no heartbeat since 2026-03-04T05:06:07Z, for longer than 1m0s",
	}
	if diff := cmp.Diff(want, w.offline()); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	w.heartbeat("idle", workBegan.Add(10*time.Minute))
	w.sweep(workBegan.Add(10 * time.Minute))
	w.sweep(workBegan.Add(11 * time.Minute))
	want = append(want, "worker_silent worker idle of service render has sent no heartbeat since 2026-03-04T05:16:07Z, for longer than 1m0s")
	if diff := cmp.Diff(want, w.offline()); diff != "" {
		t.Errorf("history after a second time (-want +got):\n%s", diff)
	}
}

// More workers than a page has are all found, and one that reports while the sweep is at it is not offline.
func TestManyWorkersGoOffline(t *testing.T) {
	w := newWorkWorld(t)
	for i := range 250 {
		w.heartbeat("w-"+string(rune('a'+i/26))+string(rune('a'+i%26)), workBegan)
	}
	sweep := w.fleet.NewWorkSweep()
	at := workBegan.Add(2 * time.Minute)
	for range 3 {
		if _, err := sweep.Step(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	w.heartbeat("w-ac", at)
	for {
		p, err := sweep.Step(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		if p.Done {
			break
		}
	}
	if got := w.offline(); len(got) != 249 {
		t.Errorf("%d workers went offline, want all but one of 250", len(got))
	}
	row, err := w.work.Worker(t.Context(), "render", "w-ac")
	if err != nil || !row.OfflineAt.IsZero() {
		t.Errorf("the one that reported: %+v, %v", row, err)
	}
}
