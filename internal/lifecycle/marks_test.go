package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// A host out of the pool is as old as its assignment, whatever its machine is.
func TestServingSince(t *testing.T) {
	launched := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	later := launched.Add(3 * time.Hour)
	p := lifecycle.DefaultPolicy()
	for name, test := range map[string]struct {
		record lifecycle.Record
		want   time.Time
	}{
		"starting":           {lifecycle.Record{State: lifecycle.StateCreated, Assignment: 1, LaunchedAt: launched}, launched},
		"of its first run":   {lifecycle.Record{State: lifecycle.StateRunning, Assignment: 1, LaunchedAt: launched, RuntimeEndsAt: later.Add(p.MaxRuntime)}, launched},
		"of a later run":     {lifecycle.Record{State: lifecycle.StateRunning, Assignment: 3, LaunchedAt: launched, RuntimeEndsAt: later.Add(p.MaxRuntime)}, later},
		"its own runtime":    {lifecycle.Record{State: lifecycle.StateRunning, Assignment: 3, LaunchedAt: launched, MaxRuntime: time.Hour, RuntimeEndsAt: later.Add(time.Hour)}, later},
		"claimed":            {lifecycle.Record{State: lifecycle.StateClaimed, Assignment: 3, LaunchedAt: launched, Threshold: later.Add(p.ClaimTimeout)}, later},
		"launch not known":   {lifecycle.Record{State: lifecycle.StateCreated, Assignment: 1, CreatedAt: launched}, launched},
		"nothing is known":   {lifecycle.Record{State: lifecycle.StateRunning, Assignment: 1}, time.Time{}},
		"end is not written": {lifecycle.Record{State: lifecycle.StateRunning, Assignment: 3, LaunchedAt: launched}, launched},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.record.ServingSince(p); !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Neither Retiring nor an idle reading is a mark of scale-down, alone or both: a
// host may retire for another reason while it waits for its confirmation.
func TestScalingDown(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		record lifecycle.Record
		want   bool
	}{
		"marked":                     {lifecycle.Record{State: lifecycle.StateRunning, Retiring: true, IdleDetectedAt: at, ScaleDownAt: at}, true},
		"retiring for another cause": {lifecycle.Record{State: lifecycle.StateRunning, Retiring: true}, false},
		"seen idle":                  {lifecycle.Record{State: lifecycle.StateRunning, IdleDetectedAt: at}, false},
		"seen idle, and retiring":    {lifecycle.Record{State: lifecycle.StateRunning, Retiring: true, IdleDetectedAt: at}, false},
		"ended":                      {lifecycle.Record{State: lifecycle.StateTerminated, Retiring: true, IdleDetectedAt: at, ScaleDownAt: at}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.record.ScalingDown(); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestAScaleDownIsTakenBack(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, begun := range map[string]bool{"its own retirement goes": true, "another's stays": false} {
		t.Run(name, func(t *testing.T) {
			r := lifecycle.Record{State: lifecycle.StateRunning, IdleDetectedAt: at}
			if begun {
				r.BeginScaleDown(at.Add(time.Minute))
				if !r.Retiring || !r.ScaleDownAt.Equal(at.Add(time.Minute)) || !r.IdleDetectedAt.Equal(at) {
					t.Errorf("begun: %+v", r)
				}
			} else {
				r.Retiring = true
			}
			r.UndoScaleDown()
			if r.Retiring == begun || r.ScalingDown() || !r.IdleDetectedAt.IsZero() {
				t.Errorf("taken back: retiring %t, scaling down %t, idle since %s", r.Retiring, r.ScalingDown(), r.IdleDetectedAt)
			}
		})
	}
}

// Only a run-scoped host leaves a run behind that is looked at again, and only
// where its end says so.
func TestARunThatIsLeft(t *testing.T) {
	serving := lifecycle.Record{State: lifecycle.StateRunning, RunID: "7", Labels: []string{"gpu"}, Repository: "acme/web", Assignment: 1}
	jobScoped, unused := serving, serving
	jobScoped.JobsOf, unused.RunID = "acme", ""
	for name, test := range map[string]struct {
		record lifecycle.Record
		leaves bool
		want   *lifecycle.LeftRun
	}{
		"run-scoped":   {serving, true, &lifecycle.LeftRun{RunID: "7", Labels: []string{"gpu"}}},
		"another end":  {serving, false, nil},
		"job-scoped":   {jobScoped, true, nil},
		"without runs": {unused, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := lifecycle.Decision{Action: lifecycle.ActionTerminate, Why: "idle", Leaves: test.leaves}
			got, err := lifecycle.Apply(test.record, d, time.Now(), lifecycle.DefaultPolicy())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Left); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.RunID != "" || got.Labels != nil {
				t.Errorf("it still has run %q and labels %v", got.RunID, got.Labels)
			}
		})
	}
}
