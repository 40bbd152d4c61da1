package fleet

import (
	"context"
	"slices"
	"time"

	sweepchecks "github.com/remuda-ci/remuda/internal/fleet/checks"
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

// mostRecentEvents bounds how many events are read when a replica begins.
const mostRecentEvents = 1000

// refusals are the events of jobs that get no host, from a place in the history on. Without one it begins a while ago. What comes between the two
// reads is in both.
func (f *Fleet) refusals(ctx context.Context, place string, now time.Time) ([]lifecycle.Event, string, error) {
	if place != "" {
		page, err := f.store.EventsSince(ctx, lifecycle.PageOf{After: place})
		return refusalsAmong(page.Items), page.Next, err
	}
	last, err := f.store.LastEvent(ctx)
	if err != nil {
		return nil, "", err
	}
	recent, err := f.store.EventsOfInstance(ctx, "", now.Add(-sweepchecks.RefusalsBack), time.Time{}, mostRecentEvents)
	return refusalsAmong(recent.Events), last, err
}

func refusalsAmong(events []lifecycle.Event) []lifecycle.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e lifecycle.Event) bool { return e.Action != lifecycle.ActionRefuseJob })
}
