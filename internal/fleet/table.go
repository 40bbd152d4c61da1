package fleet

import (
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/sweeps"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

// sweepTable is every sweep that the sweeper runs.
func (f *Fleet) sweepTable() []sweeps.Kind {
	table := []sweeps.Kind{
		{Name: "due", Every: f.timing.Due, New: func() op.Op { return f.NewDueSweep() }},
		{Name: "liveness", Every: f.timing.Liveness, New: func() op.Op { return f.NewLivenessSweep() }},
		{Name: "cloud", Every: f.timing.Cloud, New: func() op.Op { return f.NewCloudSweep() }},
		{Name: "github", Every: f.timing.Cloud, New: func() op.Op { return f.NewGitHubSweep() }},
	}
	if f.jobs != nil && f.jobs.Options.Parse != nil {
		table = append(table,
			sweeps.Kind{Name: "jobs", Every: f.timing.Due, New: func() op.Op { return f.NewJobSweep() }},
			sweeps.Kind{Name: "webhooks", Every: f.timing.Cloud, New: func() op.Op { return f.NewMissedSweep() }})
	}
	if f.scaleDown != nil {
		table = append(table, sweeps.Kind{Name: "scale_down", Every: f.scaleDown.Interval(), New: func() op.Op { return f.NewScaleDownSweep() }})
	}
	if f.work.Store != nil {
		table = append(table, sweeps.Kind{Name: "work", Every: workqueue.SweepInterval, New: func() op.Op { return f.NewWorkSweep() }})
	}
	if len(f.warm.Names()) > 0 {
		table = append(table, sweeps.Kind{Name: "warm", Every: f.timing.Warm, New: func() op.Op { return f.NewWarmSweep() }})
	}
	if f.sweeps.Releases != nil {
		table = append(table, sweeps.Kind{Name: "runners", Every: sweeps.RunnersEvery, New: func() op.Op { return f.NewRunnerSweep() }})
	}
	return table
}
