package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/silence"
)

// A recommendation to leave a machine ends a host that serves no run, and no run.
func TestRebalanceRecommendation(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	host := func(state lifecycle.State, edit func(r *lifecycle.Record)) lifecycle.Record {
		r := lifecycle.Record{
			HostKey: "i-1", InstanceID: "i-1", Pool: "default", State: state, Assignment: 3, Version: 9, Threshold: now.Add(time.Hour),
			Repository: "acme/app", RunID: "7", RequestID: "q", CreatedAt: now.Add(-time.Hour), LaunchedAt: now.Add(-time.Hour),
		}
		edit(&r)
		return r
	}
	idle := func(pooledAt time.Time) lifecycle.Record {
		return host(lifecycle.StateIdle, func(r *lifecycle.Record) {
			r.RunID, r.RequestID, r.PooledAt, r.ReleasedAt = "", "", pooledAt, now.Add(-time.Minute)
		})
	}
	tests := map[string]struct {
		record lifecycle.Record
		signal lifecycle.Signal
		busy   bool
		ends   bool
	}{
		"in the pool":            {idle(now.Add(-time.Second)), lifecycle.SignalRemoveRegOK, false, true},
		"just clean":             {idle(time.Time{}), lifecycle.SignalRemoveRegOK, false, true},
		"serving a run":          {host(lifecycle.StateRunning, func(*lifecycle.Record) {}), lifecycle.SignalRegOK, false, false},
		"with a job":             {host(lifecycle.StateRunning, func(*lifecycle.Record) {}), lifecycle.SignalRegOK, true, false},
		"busy although released": {idle(time.Time{}), lifecycle.SignalNone, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := lifecycle.Facts{
				Record: test.record, Watch: silence.Watch{StoreReadableSince: now.Add(-time.Hour), ReportsReadAt: now},
				Report: &lifecycle.Report{HostKey: "i-1", HeartbeatAt: now, Assignment: 3, Signal: test.signal, Busy: test.busy, RegisteredAt: now.Add(-time.Minute)},
			}
			without := lifecycle.Decide(facts, now, lifecycle.DefaultPolicy())
			if without.Action == lifecycle.ActionTerminate {
				t.Fatalf("without a recommendation: %+v", without)
			}
			facts.Report.RebalanceAt = now.Add(-time.Second)
			d := lifecycle.Decide(facts, now, lifecycle.DefaultPolicy())
			if ends := d.Action == lifecycle.ActionTerminate; ends != test.ends || ends && !strings.Contains(d.Reason, "recommends to leave") {
				t.Errorf("decision %+v", d)
			}
		})
	}
}
