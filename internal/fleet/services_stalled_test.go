package fleet_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// inTables is inServices for services whose jobs are in tables of their owners, where silent workers are looked for.
func inTables(t *testing.T, do func(*testing.T, *serviceWorld), names ...string) {
	t.Helper()
	inServices(t, func(t *testing.T, w *serviceWorld) {
		w.containers.stalled = map[string][]string{}
		options := w.options(names...)
		w.fleet = w.newFleet("a", func(o *fleet.Options) {
			options(o)
			o.Log = hclog.New(&hclog.LoggerOptions{Output: &w.containers.log})
			for name, s := range o.Services.Services {
				s.Stalled = w.containers
				o.Services.Services[name] = s
			}
		})
		do(t, w)
	}, names...)
}

// reasonsOf are the reasons of an action in the history.
func (w *serviceWorld) reasonsOf(action lifecycle.Action) (reasons []string) {
	w.t.Helper()
	page, err := w.store.EventsSince(w.t.Context(), lifecycle.PageOf{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range page.Items {
		if e.Action == action {
			reasons = append(reasons, fmt.Sprintf("%s %s", e.Code, e.Reason))
		}
	}
	return reasons
}

// A job whose worker died in a table elsewhere no longer keeps its service's runners.
func TestStalledJobsOfATableFailAndFreeTheService(t *testing.T) {
	inTables(t, func(t *testing.T, w *serviceWorld) {
		w.containers.desired["jobs"] = 1
		w.containers.jobs("jobs", 0, 2)
		w.containers.stalled["jobs"] = []string{"7", "8"}
		w.nudge("jobs")
		if n := w.containers.called()["fail_stalled"]; n > 0 {
			t.Error("a nudge looked for stalled jobs")
		}
		dry := w.fleet.NewRefresh(true)
		if err := w.fleet.Drive(t.Context(), dry, patience); err != nil {
			t.Fatal(err)
		}
		if d := dry.Decisions(); len(d) != 3 || d[0].Action != lifecycle.ActionFailJob || len(w.reasonsOf(lifecycle.ActionFailJob)) > 0 || len(w.containers.stalled["jobs"]) != 2 {
			t.Errorf("a dry refresh decided %v and has %v in the history", d, w.reasonsOf(lifecycle.ActionFailJob))
		}
		for range 5 {
			w.sweep()
		}
		w.want("jobs", 0, "after five checks")
		want := []string{
			"worker_silent job 7 of service jobs: its worker has shown no sign of life in the table for too long",
			"worker_silent job 8 of service jobs: its worker has shown no sign of life in the table for too long",
		}
		if diff := cmp.Diff(want, w.reasonsOf(lifecycle.ActionFailJob)); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
	}, "jobs")
}

// TestATableThatCannotBeUpdated has no columns for stalled jobs, or may not be written. That is said, once in the log, and its service is scaled
// as before: no sweep fails for it.
func TestATableThatCannotBeUpdated(t *testing.T) {
	inTables(t, func(t *testing.T, w *serviceWorld) {
		const line = "stalled jobs are not failed; the service is still scaled"
		refused := fmt.Errorf("fail stalled jobs: %w", lifecycle.ErrRefused)
		away := &lifecycle.UnavailableError{What: "list stalled jobs", Err: errors.New("no route")}
		w.containers.jobs("jobs", 1, 0)
		for n, look := range []struct {
			err   error
			lines int // in the log, since the beginning
		}{{refused, 1}, {refused, 1}, {away, 2}, {away, 2}, {nil, 2}, {away, 3}, {refused, 4}, {nil, 4}, {refused, 5}, {refused, 5}} {
			w.containers.stalledErr = map[string]error{"jobs": look.err}
			time.Sleep(time.Minute)
			s := w.fleet.NewServiceSweep()
			if err := w.fleet.Drive(t.Context(), s, 0); err != nil {
				t.Fatal(err)
			}
			if err := s.Failed(); err != nil {
				t.Errorf("look %d: the sweep failed: %v", n, err)
			}
			w.nudge("jobs")
			if got := strings.Count(w.containers.log.String(), line); got != look.lines {
				t.Errorf("look %d: %d lines in the log, want %d", n, got, look.lines)
			}
		}
		w.want("jobs", 1, "with a job that waits")
		w.sweep()
		row, err := w.store.Service(t.Context(), "jobs")
		if err != nil || !strings.Contains(row.Reason, "; stalled jobs are not failed: fail stalled jobs") {
			t.Errorf("got %q, %v", row.Reason, err)
		}
	}, "jobs")
}
