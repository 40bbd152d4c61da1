package fleet_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// linePlaces notes from which places of the line the waiting jobs are read.
type linePlaces struct {
	fleet.JobStore
	mu     sync.Mutex
	places []string
}

func (s *linePlaces) WaitingJobs(ctx context.Context, pool string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Job], error) {
	s.mu.Lock()
	s.places = append(s.places, page.After)
	s.mu.Unlock()
	return s.JobStore.WaitingJobs(ctx, pool, page)
}

// taken are the places since the last call.
func (s *linePlaces) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	places := s.places
	s.places = nil
	return places
}

// Jobs at the head of the line whose budget is used up are read when all is looked at. In between the jobs behind them are read.
func TestJobsOverTheirBudgetAreNotReadEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := &linePlaces{}
		w := jobWorld(t, 1)
		count := func(o *fleet.JobOptions) { line.JobStore, o.Store = o.Store, line }
		w.fleet = w.newFleet("b", func(o *fleet.Options) { withJobs(o, w.hub, 1, count) }, budgeted)
		w.spend(t.Context(), repository, "9", 10)
		for id := range int64(30) {
			j := lifecycle.Job{
				ID: 1000 + id, Repository: repository, RunID: "1", Pool: jobPool, Scope: repository, Labels: []string{"remuda-small"}, State: lifecycle.JobWaiting,
				QueuedAt: time.Now(), DueAt: time.Now().Add(24 * time.Hour), Version: 1,
			}
			if err := w.store.CreateJob(t.Context(), j); err != nil {
				t.Fatal(err)
			}
		}
		w.live(t, func(ctx context.Context) {
			if all := line.taken(); !slices.Contains(all, "") {
				t.Errorf("the first look did not begin at the head of the line: %q", all)
			}
			time.Sleep(time.Second)
			line.taken()
			other := poolJob(1, time.Now())
			other.Repository, other.RunID = "acme/site", "2"
			w.hub.queue(ctx, other, time.Minute)
			synctest.Wait()
			if places := line.taken(); len(places) == 0 || slices.Contains(places, "") {
				t.Errorf("for a new job the line was read from %q, want a place behind its head", places)
			}
		})
	})
}
