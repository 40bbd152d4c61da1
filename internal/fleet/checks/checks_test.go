package checks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/checks"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/checkrun"
	policy "github.com/remuda-ci/remuda/internal/policy/checks"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// hub notes what is written to GitHub, and fails as it is asked to.
type hub struct {
	said []string
	err  map[string]error // by repository
	// lost: the answers to creations are lost, after their effect.
	lost bool
	open map[string]int64 // by run
}

func (h *hub) CreateCheck(_ context.Context, repository, runID string, c checkrun.Content) (int64, error) {
	if err := h.err[repository]; err != nil {
		return 0, err
	}
	id, is := h.open[runID]
	if !is {
		id = int64(len(h.open) + 1)
		if c.Conclusion == "" {
			h.open[runID] = id
		}
		h.said = append(h.said, fmt.Sprintf("create %s: %s %s", runID, c.Title, c.Conclusion))
	}
	if h.lost {
		return 0, &lifecycle.UnavailableError{What: "GitHub", Err: errors.New("the answer was lost")}
	}
	return id, nil
}

func (h *hub) UpdateCheck(_ context.Context, repository string, id int64, c checkrun.Content) error {
	if err := h.err[repository]; err != nil {
		return err
	}
	h.said = append(h.said, fmt.Sprintf("update %d: %s %s", id, c.Title, c.Conclusion))
	return nil
}

// world is a fleet that waits.
type world struct {
	*testing.T
	hub      *hub
	store    *memory.Store
	waits    []policy.Wait
	refusals []lifecycle.Event
	now      time.Time
	checks   *checks.Checks
}

func newWorld(t *testing.T) *world {
	t.Parallel()
	w := &world{T: t, hub: &hub{err: map[string]error{}, open: map[string]int64{}}, now: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)}
	w.store = memory.New(func() time.Time { return w.now })
	w.checks = &checks.Checks{
		Options:  checks.Options{GitHub: w.hub, Store: w.store, After: time.Minute},
		Waiting:  func(context.Context, time.Time) ([]policy.Wait, error) { return w.waits, nil },
		Refusals: func(context.Context, time.Time) ([]lifecycle.Event, error) { return w.refusals, nil },
		Ops:      op.NewDriver(w.store, hclog.NewNullLogger(), rand.New(rand.NewPCG(1, 1)), nil, nil), Log: hclog.NewNullLogger(),
	}
	return w
}

// sweep runs one sweep to its end.
func (w *world) sweep() error {
	w.Helper()
	s := w.checks.NewSweep()
	for range 1000 {
		p, err := s.Step(w.Context(), w.now)
		if err != nil || p.Done {
			return err
		}
	}
	w.Fatal("it does not end")
	return nil
}

func (w *world) wait(run, why string) {
	w.waits = append(w.waits, policy.Wait{Repository: "acme/" + run, RunID: run, Since: w.now.Add(-2 * time.Minute), Why: lifecycle.Because(lifecycle.ReasonPoolFull, "%s", why)})
}

func (w *world) said(want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.hub.said); diff != "" {
		w.Errorf("said to GitHub (-want +got):\n%s", diff)
	}
	w.hub.said = nil
}

func (w *world) open() (runs []string) {
	t, err := w.store.CheckTable(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	for _, c := range t.Open {
		runs = append(runs, fmt.Sprintf("%s %d", c.RunID, c.ID))
	}
	return runs
}

func (w *world) fine(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// TestALife: a check run is made, says another reason, and is completed.
func TestALife(t *testing.T) {
	w := newWorld(t)
	w.wait("1", "full")
	w.fine(w.sweep())
	w.fine(w.sweep())
	w.said("create 1: a job waits for a host: full ")
	w.waits, w.now = nil, w.now.Add(time.Minute)
	w.wait("1", "paused")
	w.fine(w.sweep())
	w.said("update 1: a job waits for a host: paused ")
	w.waits = nil
	w.fine(w.sweep())
	w.said("update 1: nothing waits for hosts any more, after 3m0s neutral")
	if got := w.open(); len(got) > 0 {
		t.Errorf("open are %v", got)
	}
	w.fine(w.sweep())
	w.said()
}

// TestAnAnswerThatIsLost makes no second check run.
func TestAnAnswerThatIsLost(t *testing.T) {
	w := newWorld(t)
	w.wait("1", "full")
	w.hub.lost = true
	if err := w.sweep(); !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	w.hub.lost = false
	w.fine(w.sweep())
	w.said("create 1: a job waits for a host: full ")
	if diff := cmp.Diff([]string{"1 1"}, w.open()); diff != "" {
		t.Error(diff)
	}
}

// TestGitHubTakesNone of one repository, and is not asked again. The others have theirs.
func TestGitHubTakesNone(t *testing.T) {
	for name, err := range map[string]error{"refused": lifecycle.ErrRefused, "gone": lifecycle.ErrNotFound} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.hub.err["acme/1"] = err
			w.wait("1", "full")
			w.wait("2", "full")
			w.fine(w.sweep())
			w.hub.err = nil
			w.fine(w.sweep())
			w.said("create 2: a job waits for a host: full ")
			w.waits = nil
			w.fine(w.sweep())
			w.said("update 1: nothing waits for hosts any more, after 2m0s neutral")
			if got := w.open(); len(got) > 0 {
				t.Errorf("open are %v", got)
			}
		})
	}
}

// TestACheckRunThatIsGone is forgotten at its end.
func TestACheckRunThatIsGone(t *testing.T) {
	w := newWorld(t)
	w.wait("1", "full")
	w.fine(w.sweep())
	w.waits, w.hub.err["acme/1"] = nil, lifecycle.ErrNotFound
	w.fine(w.sweep())
	if got := w.open(); len(got) > 0 {
		t.Errorf("open are %v", got)
	}
}

// TestARefusedJob has a check run once for each reason, which is completed at once.
func TestARefusedJob(t *testing.T) {
	w := newWorld(t)
	refusal := lifecycle.Event{Repository: "acme/app", RunID: "9", Action: lifecycle.ActionRefuseJob, Code: lifecycle.ReasonNotServed, Reason: "job 7 gets no host"}
	w.refusals = []lifecycle.Event{refusal, refusal}
	w.fine(w.sweep())
	w.fine(w.sweep())
	w.said("create 9: job 7 gets no host action_required")
	w.refusals[0].RunID, w.hub.err["acme/app"] = "10", lifecycle.ErrRefused
	w.fine(w.sweep())
	w.said()
	if got := w.open(); len(got) > 0 {
		t.Errorf("open are %v", got)
	}
}

// TestManyRunsAtOnce are written over several sweeps.
func TestManyRunsAtOnce(t *testing.T) {
	w := newWorld(t)
	for i := range 70 {
		w.wait(fmt.Sprint(i), "full")
	}
	for want := range []int{30, 60, 70} {
		_ = want
		w.fine(w.sweep())
	}
	if n := len(w.open()); n != 70 || len(w.hub.said) != 70 || !strings.HasPrefix(w.hub.said[0], "create 0:") {
		t.Errorf("%d are open, and %d were made", n, len(w.hub.said))
	}
}
