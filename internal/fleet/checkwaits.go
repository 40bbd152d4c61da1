package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy/checks"
)

// checkWaitsAtMost is how many waits are looked at: those that wait longest.
const checkWaitsAtMost = 1000

// checkWaits lists what waits for hosts, in the words of check runs.
func (f *Fleet) checkWaits(ctx context.Context, now time.Time) (waits []checks.Wait, more bool, err error) {
	list, more, err := f.explain.Waiting(ctx, "", checkWaitsAtMost, now)
	for _, w := range list {
		waits = append(waits, checks.Wait{
			Repository: w.Repository, RunID: w.RunID, Request: w.RequestID != "", Job: w.Job.Name, Since: w.Since, Why: w.Reason, Next: w.Next,
		})
	}
	return waits, more, err
}

// refusals are the events of jobs that get no host, from a place in the history on.
func (f *Fleet) refusals(ctx context.Context, place string) ([]lifecycle.Event, string, error) {
	if place == "" {
		last, err := f.store.LastEvent(ctx)
		return nil, last, err
	}
	page, err := f.store.EventsSince(ctx, lifecycle.PageOf{After: place})
	return slices.DeleteFunc(page.Items, func(e lifecycle.Event) bool { return e.Action != lifecycle.ActionRefuseJob }), page.Next, err
}
