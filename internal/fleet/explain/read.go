package explain

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// List pages through the hosts that match the filter, with their reports.
func (ex *Explainer) List(ctx context.Context, filter lifecycle.Filter, page lifecycle.PageOf, now time.Time) (
	lifecycle.Page[lifecycle.Record], map[string]lifecycle.Report, error,
) {
	got, err := ex.Store.ListInstances(ctx, filter, page)
	if err != nil {
		return got, nil, fmt.Errorf("list instances: %w", err)
	}
	reports, err := ex.ReportsOf(ctx, got.Items, now)
	return got, reports, err
}

// ReportsOf reads the reports of records, by host key, as far as they may be believed.
func (ex *Explainer) ReportsOf(ctx context.Context, records []lifecycle.Record, now time.Time) (map[string]lifecycle.Report, error) {
	keys := make([]string, 0, len(records))
	for _, r := range records {
		keys = append(keys, r.HostKey)
	}
	return ex.Hosts.Reports(ctx, keys, now)
}

// Healthy reports whether a host reports and is not about to end, which is what an operator means by it.
func Healthy(r lifecycle.Record, report *lifecycle.Report, now time.Time, p lifecycle.Policy) bool {
	return r.State != lifecycle.StateTerminated && report != nil &&
		now.Sub(report.HeartbeatAt) < p.Silence && report.InterruptionAt.IsZero() && r.InterruptionAt.IsZero() && !r.Retiring
}

// Events lists the history after a page token, oldest first. With a run it is that run's only.
func (ex *Explainer) Events(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
	got, err := ex.Store.EventsSince(ctx, page)
	if err != nil {
		return got, fmt.Errorf("list events: %w", err)
	}
	return got, nil
}

// LastEvent is the page after which nothing has happened yet.
func (ex *Explainer) LastEvent(ctx context.Context) (lifecycle.PageOf, error) {
	after, err := ex.Store.LastEvent(ctx)
	if err != nil {
		return lifecycle.PageOf{}, fmt.Errorf("find the last event: %w", err)
	}
	return lifecycle.PageOf{After: after, Limit: explainEvents}, nil
}

// Counts are the live hosts of one pool.
type Counts struct {
	States map[lifecycle.State]int
	// Pooled of the idle ones may be claimed now. Fresh of those were never used, so any run may claim them.
	Pooled, Fresh int
}

// Count counts the live hosts by pool. It is for people: it goes through every host.
func (ex *Explainer) Count(ctx context.Context, now time.Time) (map[string]Counts, error) {
	counts := map[string]Counts{}
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
		return ex.Store.ListInstances(ctx, lifecycle.Filter{States: hosts.LiveStates}, page)
	}
	for r, err := range lifecycle.Pages(lifecycle.PageOf{Limit: 1000}, list) {
		if err != nil {
			return nil, fmt.Errorf("list instances: %w", err)
		}
		c, ok := counts[r.Pool]
		if !ok {
			c.States = map[lifecycle.State]int{}
		}
		c.States[r.State]++
		if r.Claimable(now, ex.Hosts.Policy(r.Pool).ClaimMargin) {
			c.Pooled++
			if r.Unused() {
				c.Fresh++
			}
		}
		counts[r.Pool] = c
	}
	return counts, nil
}
