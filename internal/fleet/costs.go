package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/costs"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy/budget"
)

// The names of the room of costs that callers need.
type (
	CostBy     = costs.By
	CostQuery  = costs.Query
	CostReport = costs.Report
	CostRow    = costs.Row
	CallRow    = costs.CallRow
	BudgetUse  = budget.Use
)

// The kinds of rows of a report of costs.
const (
	CostByRepository   = costs.ByRepository
	CostByOwner        = costs.ByOwner
	CostByWorkflow     = costs.ByWorkflow
	CostByRun          = costs.ByRun
	CostByJob          = costs.ByJob
	CostByPool         = costs.ByPool
	CostByDay          = costs.ByDay
	CostByInstanceType = costs.ByInstanceType
)

// ErrNoPrices says that costs cannot be asked for.
var ErrNoPrices = errors.New("this fleet keeps no costs: it has no prices")

// KeepCalls keeps what the calls to AWS of this replica are, for reports, until ctx ends.
func (f *Fleet) KeepCalls(ctx context.Context) {
	if f.keeper != nil {
		f.keeper.Run(ctx)
	}
}

// Costs says what the hosts were used for, and what that cost; see costs.Costs.Report.
func (f *Fleet) Costs(ctx context.Context, q CostQuery, now time.Time) (CostReport, error) {
	if f.costs == nil {
		return CostReport{}, ErrNoPrices
	}
	return f.costs.Report(ctx, q, now)
}

// Budgets says how much of each budget is used in this month, as it was a few minutes ago; see costs.Budgets.Uses.
func (f *Fleet) Budgets(ctx context.Context, now time.Time) (uses []BudgetUse, readAt time.Time, err error) {
	if f.budgets == nil {
		return nil, now, nil
	}
	return f.budgets.Uses(ctx, now)
}

// NewDaySweep begins a sweep that sums up the last days.
func (f *Fleet) NewDaySweep() *costs.DaySweep { return f.costs.NewDaySweep() }

// NewBudgetSweep begins a sweep that reports budgets that are near their end or used up.
func (f *Fleet) NewBudgetSweep() *costs.BudgetSweep { return f.budgets.NewSweep() }

// running are the jobs that hosts run, by host key.
func (f *Fleet) running(ctx context.Context, records []lifecycle.Record, now time.Time) (map[string]lifecycle.Job, error) {
	on, err := f.explain.JobsOn(ctx, records, now)
	jobs := make(map[string]lifecycle.Job, len(on))
	for key, j := range on {
		jobs[key] = j.Job
	}
	return jobs, err
}
