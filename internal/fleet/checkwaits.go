package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy/checks"
)

const (
	// checkWaitsAtMost is how many waits of each pool have check runs: those that wait longest.
	checkWaitsAtMost = 1000
	// refusalsAtMost is how many of the newest events are looked through for refused jobs.
	refusalsAtMost = 1000
)

// checkWaits lists what waits for hosts, in the words of check runs.
func (f *Fleet) checkWaits(ctx context.Context, now time.Time) ([]checks.Wait, error) {
	list, _, err := f.explain.Waiting(ctx, "", checkWaitsAtMost, now)
	var waits []checks.Wait
	for _, w := range list {
		waits = append(waits, checks.Wait{
			Repository: w.Repository, RunID: w.RunID, Request: w.RequestID != "", Job: w.Job.Name, Since: w.Since, Why: w.Reason, Next: w.Next,
		})
	}
	return waits, err
}

// refusals are the events of jobs that get no host, since a time.
func (f *Fleet) refusals(ctx context.Context, since time.Time) ([]lifecycle.Event, error) {
	h, err := f.explain.History(ctx, "", since, refusalsAtMost)
	return slices.DeleteFunc(h.Events, func(e lifecycle.Event) bool { return e.Action != lifecycle.ActionRefuseJob }), err
}
