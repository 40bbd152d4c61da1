package fleet_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/checkrun"
)

// checkHub keeps the check runs of refused jobs, by run.
type checkHub struct{ made []string }

func (h *checkHub) RunHead(context.Context, string, string) (checkrun.Head, error) {
	return checkrun.Head{SHA: "a commit"}, nil
}

func (h *checkHub) FindCheck(_ context.Context, _, runID string, _ checkrun.Head, _ checkrun.Purpose) (checkrun.Found, error) {
	if i := slices.Index(h.made, runID); i >= 0 {
		return checkrun.Found{ID: int64(i + 1)}, nil
	}
	return checkrun.Found{}, lifecycle.ErrNotFound
}

func (h *checkHub) CreateCheck(_ context.Context, _, runID string, _ checkrun.Head, _ checkrun.Purpose, _ checkrun.Content) (int64, error) {
	h.made = append(h.made, runID)
	return int64(len(h.made)), nil
}

func (h *checkHub) UpdateCheck(context.Context, string, int64, checkrun.Content) error { return nil }

// A controld ends between the refusal of a job and its check run: the next one makes it, and no other makes it again.
func TestARefusalBeforeARestartHasItsCheckRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, github := jobWorld(t, 1), &checkHub{}
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		w.hub.say(ctx, queuedJob(1, "1", "self-hosted", "remuda-small")) // it is of no pool, and the replica ends before it sweeps
		for _, replica := range []string{"b", "c"} {
			f := w.newFleet(replica, func(o *fleet.Options) {
				withJobs(o, w.hub, 1)
				o.Checks = &fleet.CheckOptions{GitHub: github, Store: w.store, After: time.Minute}
			})
			sweeping, end := context.WithCancel(ctx)
			go f.Sweep(sweeping)
			time.Sleep(2 * time.Minute)
			if replica == "b" {
				w.hub.say(ctx, queuedJob(2, "2", "self-hosted", "remuda-small"))
				time.Sleep(2 * time.Minute)
			}
			end()
			synctest.Wait()
			if want := []string{"1", "2"}; !slices.Equal(github.made, want) {
				t.Errorf("after replica %s the refused jobs of runs %v have check runs, want %v", replica, github.made, want)
			}
		}
	})
}
