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

// hub is GitHub: it notes what is written, and fails as it is asked to.
type hub struct {
	said []string
	err  map[string]error // by repository
	// lost: the answers to creations are lost, after their effect.
	lost  bool
	made  map[string]checkrun.Found // by run and purpose
	calls int
}

func (h *hub) RunHead(_ context.Context, repository, runID string) (checkrun.Head, error) {
	h.calls++
	return checkrun.Head{SHA: "sha of " + runID, Workflow: "CI"}, h.err[repository]
}

func (h *hub) FindCheck(_ context.Context, _, runID string, _ checkrun.Head, p checkrun.Purpose) (checkrun.Found, error) {
	h.calls++
	found, is := h.made[runID+string(p)]
	if !is {
		return found, lifecycle.ErrNotFound
	}
	return found, nil
}

func (h *hub) CreateCheck(_ context.Context, _, runID string, head checkrun.Head, p checkrun.Purpose, c checkrun.Content) (int64, error) {
	h.calls++
	id := int64(len(h.made) + 1)
	h.made[runID+string(p)] = checkrun.Found{ID: id, Open: c.Conclusion == ""}
	h.said = append(h.said, fmt.Sprintf("create %s at %s: %s %s", runID, head.SHA, c.Title, c.Conclusion))
	if h.lost {
		return 0, &lifecycle.UnavailableError{What: "GitHub", Err: errors.New("the answer was lost")}
	}
	return id, nil
}

func (h *hub) UpdateCheck(_ context.Context, repository string, id int64, c checkrun.Content) error {
	h.calls++
	if err := h.err[repository]; err != nil {
		return err
	}
	for key, found := range h.made {
		if found.ID == id {
			h.made[key] = checkrun.Found{ID: id, Open: c.Conclusion == ""}
		}
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
	more     bool
	refusals []lifecycle.Event
	now      time.Time
	checks   *checks.Checks
}

func newWorld(t *testing.T) *world {
	t.Parallel()
	w := &world{T: t, hub: &hub{err: map[string]error{}, made: map[string]checkrun.Found{}}, now: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)}
	w.store = memory.New(func() time.Time { return w.now })
	w.checks = w.replica()
	return w
}

// replica is a controld of the fleet.
func (w *world) replica() *checks.Checks {
	return &checks.Checks{
		Options: checks.Options{GitHub: w.hub, Store: w.store, After: time.Minute},
		Waiting: func(context.Context, time.Time) ([]policy.Wait, bool, error) { return w.waits, w.more, nil },
		Refusals: func(context.Context, string, time.Time) ([]lifecycle.Event, string, error) {
			return w.refusals, "next", nil
		},
		Ops: op.NewDriver(w.store, hclog.NewNullLogger(), rand.New(rand.NewPCG(1, 1)), nil, nil), Log: hclog.NewNullLogger(),
	}
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
	w.said("create 1 at sha of 1: a job has waited for a host: full ")
	w.waits, w.now = nil, w.now.Add(5*time.Minute)
	w.wait("1", "paused")
	w.waits[0].Why.Code = lifecycle.ReasonPoolPaused
	w.fine(w.sweep())
	w.said("update 1: a job has waited for a host: paused ")
	w.waits = nil
	w.fine(w.sweep())
	w.said("update 1: nothing waits for hosts any more, after 7m0s neutral")
	if got := w.open(); len(got) > 0 {
		t.Errorf("open are %v", got)
	}
	calls := w.hub.calls
	w.fine(w.sweep())
	if w.said(); w.hub.calls > calls {
		t.Error("GitHub is called while nothing waits")
	}
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
	w.said("create 1 at sha of 1: a job has waited for a host: full ")
	if diff := cmp.Diff([]string{"1 0"}, w.open()); diff != "" {
		t.Error(diff)
	}
	w.now = w.now.Add(time.Minute)
	w.fine(w.sweep())
	w.said("update 1: a job has waited for a host: full ")
	if diff := cmp.Diff([]string{"1 1"}, w.open()); diff != "" {
		t.Error(diff)
	}
}

// TestACrash after each step: another replica goes on, and there is one check run.
func TestACrash(t *testing.T) {
	for steps := range 12 {
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			w := newWorld(t)
			w.wait("1", "full")
			s := w.checks.NewSweep()
			for range steps {
				if _, err := s.Step(t.Context(), w.now); err != nil {
					t.Fatal(err)
				}
			}
			w.checks, w.now = w.replica(), w.now.Add(time.Minute)
			w.fine(w.sweep())
			if diff := cmp.Diff([]string{"1 1"}, w.open()); diff != "" || len(w.hub.made) != 1 {
				t.Errorf("made are %v: %s", w.hub.made, diff)
			}
			w.waits = nil
			w.fine(w.sweep())
			if w.hub.made["1wait"].Open || len(w.open()) > 0 {
				t.Errorf("left is %v", w.hub.made)
			}
		})
	}
}

// TestTwoReplicasAtOnce make one check run, however their steps fall.
func TestTwoReplicasAtOnce(t *testing.T) {
	for turns := range 1 << 10 {
		w := &world{T: t, hub: &hub{err: map[string]error{}, made: map[string]checkrun.Found{}}, now: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)}
		w.store = memory.New(func() time.Time { return w.now })
		w.wait("1", "full")
		sweeps := []*checks.Sweep{w.replica().NewSweep(), w.replica().NewSweep()}
		done := []bool{false, false}
		for i := 0; !done[0] || !done[1]; i++ {
			who := turns >> (i % 10) & 1
			if done[who] {
				who = 1 - who
			}
			p, err := sweeps[who].Step(t.Context(), w.now)
			w.fine(err)
			done[who] = p.Done
		}
		if len(w.hub.said) != 1 || len(w.hub.made) != 1 {
			t.Fatalf("turns %b: %q", turns, w.hub.said)
		}
	}
}

// TestGitHubTakesNone of one repository, and is not asked again for an hour. The others have theirs.
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
			w.said("create 2 at sha of 2: a job has waited for a host: full ")
			w.now = w.now.Add(time.Hour)
			w.fine(w.sweep())
			w.said("create 1 at sha of 1: a job has waited for a host: full ")
		})
	}
}

// TestAnEndThatGitHubRefuses is tried again later, and given up in the end.
func TestAnEndThatGitHubRefuses(t *testing.T) {
	w := newWorld(t)
	w.wait("1", "full")
	w.fine(w.sweep())
	w.waits, w.hub.err["acme/1"], w.hub.said = nil, lifecycle.ErrRefused, nil
	w.fine(w.sweep())
	w.hub.err = nil
	w.fine(w.sweep())
	w.said()
	w.now = w.now.Add(time.Hour)
	w.fine(w.sweep())
	w.said("update 1: nothing waits for hosts any more, after 1h2m0s neutral")
	w.wait("1", "full")
	w.fine(w.sweep())
	w.waits, w.hub.err = nil, map[string]error{"acme/1": lifecycle.ErrRefused}
	for range 60 {
		w.now = w.now.Add(time.Hour)
		w.fine(w.sweep())
	}
	if got := w.open(); len(got) > 0 {
		t.Errorf("open are %v", got)
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

// TestTurnedOff completes what is open, and makes nothing.
func TestTurnedOff(t *testing.T) {
	w := newWorld(t)
	w.wait("1", "full")
	w.fine(w.sweep())
	w.checks.After, w.hub.said = 0, nil
	w.refusals = []lifecycle.Event{{Repository: "acme/app", RunID: "9", Action: lifecycle.ActionRefuseJob}}
	w.fine(w.sweep())
	w.said("update 1: nothing waits for hosts any more, after 2m0s neutral")
}

// TestMoreWaits: what is not among what was listed may wait too.
func TestMoreWaits(t *testing.T) {
	w := newWorld(t)
	w.wait("1", "full")
	w.fine(w.sweep())
	w.waits, w.more, w.hub.said = nil, true, nil
	w.fine(w.sweep())
	w.said()
}

// TestARefusedJob: its run has a check run, which is completed at once, beside the one that says what waits.
func TestARefusedJob(t *testing.T) {
	w := newWorld(t)
	refusal := func(run, text string) lifecycle.Event {
		return lifecycle.Event{Repository: "acme/" + run, RunID: run, Action: lifecycle.ActionRefuseJob, Code: lifecycle.ReasonNotServed, Reason: text}
	}
	w.wait("9", "full")
	w.refusals = []lifecycle.Event{refusal("9", "job 7 gets no host"), refusal("9", "job 8 gets no host")}
	w.fine(w.sweep())
	w.fine(w.sweep())
	w.said("create 9 at sha of 9: a job has waited for a host: full ", "create 9 at sha of 9: job 7 gets no host action_required")
	w.waits = nil
	w.fine(w.sweep())
	w.said("update 1: nothing waits for hosts any more, after 2m0s neutral")
	w.refusals = []lifecycle.Event{refusal("10", "job 9 gets no host")}
	w.hub.err["acme/10"] = &lifecycle.UnavailableError{What: "GitHub"}
	if err := w.sweep(); !errors.Is(err, lifecycle.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	w.refusals, w.hub.err = nil, map[string]error{"acme/11": lifecycle.ErrRefused}
	w.fine(w.sweep())
	w.said("create 10 at sha of 10: job 9 gets no host action_required")
	w.refusals = []lifecycle.Event{refusal("11", "job 10 gets no host")}
	w.fine(w.sweep())
	w.said()
}

// TestManyRunsAtOnce are written over several sweeps, and not more than an hour has room for.
func TestManyRunsAtOnce(t *testing.T) {
	w := newWorld(t)
	for i := range 300 {
		w.wait(fmt.Sprint(i), "full")
	}
	w.refusals = nil
	for range 120 {
		w.fine(w.sweep())
		w.now = w.now.Add(30 * time.Second)
	}
	if n := len(w.hub.said); n < 240 || n > 260 || !strings.HasPrefix(w.hub.said[0], "create 0 ") {
		t.Errorf("%d were made in an hour", n)
	}
	for i := range 500 {
		w.refusals = append(w.refusals, lifecycle.Event{Repository: "acme/app", RunID: fmt.Sprint("x", i), Action: lifecycle.ActionRefuseJob})
	}
	w.waits, w.hub.said = nil, nil
	w.more = true
	w.fine(w.sweep())
	if n := len(w.hub.said); n != 10 {
		t.Errorf("%d refusals were written at once", n)
	}
}

// TestAReplicaThatBegins finds the check runs of refusals before it, and has all writes left for those after that.
func TestAReplicaThatBegins(t *testing.T) {
	w := newWorld(t)
	for i := range 50 {
		run := fmt.Sprint("x", i)
		w.refusals = append(w.refusals, lifecycle.Event{Repository: "acme/app", RunID: run, Action: lifecycle.ActionRefuseJob})
		w.hub.made[run+string(checkrun.Refusal)] = checkrun.Found{ID: int64(i + 1)}
	}
	w.fine(w.sweep())
	w.said()
	w.refusals = nil
	for i := range 20 {
		w.refusals = append(w.refusals, lifecycle.Event{Repository: "acme/app", RunID: fmt.Sprint("y", i), Action: lifecycle.ActionRefuseJob})
	}
	w.fine(w.sweep())
	if n := len(w.hub.said); n != 10 {
		t.Errorf("%d refusals were written at once", n)
	}
}

// TestRefusedCheckRunsAreLogged: the log says once an hour that GitHub takes no check run, whichever run it is of.
func TestRefusedCheckRunsAreLogged(t *testing.T) {
	w := newWorld(t)
	var logs strings.Builder
	w.checks.Log = hclog.New(&hclog.LoggerOptions{Output: &logs})
	refused := func(run string, logged int) {
		t.Helper()
		w.hub.err["acme/"+run] = lifecycle.ErrRefused
		w.refusals = []lifecycle.Event{{Repository: "acme/" + run, RunID: run, Action: lifecycle.ActionRefuseJob}}
		w.fine(w.sweep())
		if n := strings.Count(logs.String(), "GitHub takes no check run"); n != logged {
			t.Errorf("after run %s the log has %d lines, want %d", run, n, logged)
		}
	}
	refused("1", 1)
	refused("2", 1)
	w.now = w.now.Add(time.Hour - time.Second)
	refused("3", 1)
	w.now = w.now.Add(time.Second)
	refused("4", 2)
}
