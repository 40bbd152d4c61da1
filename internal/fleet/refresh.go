package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Refresh brings what the fleet needs to be there, looks at every host once and
// then runs every sweep. With a dry run
// it decides and says what it would do, and does nothing.
type Refresh struct {
	course
	f      *Fleet
	page   lifecycle.PageOf
	last   bool
	hosts  []lifecycle.Facts
	sweeps []Op

	resources []lifecycle.Resource
	decided   []Decided
}

// NewRefresh begins a refresh.
func (f *Fleet) NewRefresh(dryRun bool) *Refresh {
	r := &Refresh{f: f}
	r.journal = journal{f: f, dry: dryRun, sweep: "refresh", decided: &r.decided}
	due, cloud, github := f.NewDueSweep(), f.NewCloudSweep(), f.NewGitHubSweep()
	scaleDown, services, warm := f.NewScaleDownSweep(), f.NewServiceSweep(), f.NewWarmSweep()
	work := f.NewWorkSweep()
	for _, j := range []*journal{
		&due.journal, &cloud.journal, &github.journal, &work.journal, &scaleDown.journal, &services.journal, &warm.journal,
	} {
		j.dry, j.decided = dryRun, &r.decided
	}
	r.sweeps = []Op{cloud, github, work, scaleDown, services, warm}
	if !dryRun {
		r.sweeps = slices.Insert(r.sweeps, 0, Op(due))
	}
	r.next = r.ensure
	return r
}

// Decisions are those made so far, one or more per host.
func (r *Refresh) Decisions() []Decided { return r.decided }

// list takes a page of hosts. A refresh is an order by a person, so it may go
// through everything there is.
func (r *Refresh) list(ctx context.Context, now time.Time) (Progress, error) {
	got, err := r.f.store.ListInstances(ctx, lifecycle.Filter{States: liveStates}, r.page)
	if err != nil {
		return again, fmt.Errorf("list hosts: %w", err)
	}
	r.page.After, r.last = got.Next, got.Next == ""
	keys := make([]string, 0, len(got.Items))
	for _, record := range got.Items {
		keys = append(keys, record.HostKey)
	}
	reports, err := r.f.reports(ctx, keys, now)
	if err != nil {
		return again, err
	}
	if r.hosts, err = r.f.inspect(ctx, keys, reports, now); err != nil {
		return again, err
	}
	r.next = r.host
	return again, nil
}

var liveStates = []lifecycle.State{
	lifecycle.StateCreated, lifecycle.StateRunning, lifecycle.StateIdle, lifecycle.StateClaimed,
}

func (r *Refresh) host(ctx context.Context, now time.Time) (Progress, error) {
	if len(r.hosts) == 0 {
		r.next = r.list
		if r.last {
			r.next = r.sweep
		}
		return again, nil
	}
	if _, _, err := r.f.bring(ctx, &r.journal, r.hosts[0], now); !r.past(ctx, err) {
		return again, err
	}
	r.hosts = r.hosts[1:]
	return again, nil
}

func (r *Refresh) sweep(ctx context.Context, now time.Time) (Progress, error) {
	if len(r.sweeps) == 0 {
		return done, nil
	}
	progress, err := r.sweeps[0].Step(ctx, now)
	if progress.Done {
		r.sweeps = r.sweeps[1:]
	}
	if err != nil && !(progress.Done && r.past(ctx, err)) {
		return again, err
	}
	return again, nil
}
