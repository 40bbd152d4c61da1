package fleet

import (
	"github.com/remuda-ci/remuda/internal/fleet/checks"
	"github.com/remuda-ci/remuda/internal/fleet/costs"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/sweeps"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

// sweepTable is every sweep of this fleet. The sweeper runs them at their intervals, and a
// refresh runs each of them once, in this order, except those aside.
func (f *Fleet) sweepTable() []sweeps.Kind {
	table := []sweeps.Kind{
		{Name: "due", Every: f.timing.Due, New: func() op.Op { return f.NewDueSweep() }},
		{Name: "liveness", Every: f.timing.Liveness, New: func() op.Op { return f.NewLivenessSweep() }},
		{Name: "cloud", Every: f.timing.Cloud, Dry: true, New: func() op.Op { return f.NewCloudSweep() }},
		{Name: "github", Every: f.timing.Cloud, Dry: true, New: func() op.Op { return f.NewGitHubSweep() }},
	}
	add := func(configured bool, k sweeps.Kind) {
		if configured {
			table = append(table, k)
		}
	}
	webhooks := f.jobs != nil && f.jobs.Options.Parse != nil
	add(webhooks, sweeps.Kind{Name: "jobs", Every: f.timing.Due, New: func() op.Op { return f.NewJobSweep() }})
	add(webhooks, sweeps.Kind{Name: "webhooks", Every: f.timing.Cloud, New: func() op.Op { return f.NewMissedSweep() }})
	add(f.work.Store != nil, sweeps.Kind{Name: "work", Every: workqueue.SweepInterval, Dry: true, New: func() op.Op { return f.NewWorkSweep() }})
	if o := f.scaleDown; o != nil {
		add(true, sweeps.Kind{Name: "scale_down", Every: o.Interval(), Dry: true, New: func() op.Op { return f.NewScaleDownSweep() }})
	}
	add(true, sweeps.Kind{Name: "services", Every: f.timing.Services, Apart: true, Dry: true, New: func() op.Op { return f.NewServiceSweep() }})
	add(f.warm.Some(), sweeps.Kind{Name: "warm", Every: f.timing.Warm, Dry: true, New: func() op.Op { return f.NewWarmSweep() }})
	add(f.sweeps.Releases != nil, sweeps.Kind{Name: "runners", Every: sweeps.RunnersEvery, Measures: true, New: func() op.Op { return f.NewRunnerSweep() }})
	add(f.costs != nil, sweeps.Kind{Name: "days", Every: costs.DaysEvery, Aside: true, New: func() op.Op { return f.NewDaySweep() }})
	add(f.budgets != nil, sweeps.Kind{Name: "budgets", Every: f.timing.Budgets, Aside: true, New: func() op.Op { return f.budgets.NewSweep() }})
	if c := f.checks; c != nil {
		add(true, sweeps.Kind{Name: "checks", Every: checks.Every, Slow: true, Aside: true, New: func() op.Op { return c.NewSweep() }})
	}
	return table
}
