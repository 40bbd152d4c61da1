package server

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// costBy are the words of the fleet for what rows are.
var costBy = map[remudav1.CostBy]fleet.CostBy{
	remudav1.CostBy_COST_BY_UNSPECIFIED:   fleet.CostByRepository,
	remudav1.CostBy_COST_BY_REPOSITORY:    fleet.CostByRepository,
	remudav1.CostBy_COST_BY_OWNER:         fleet.CostByOwner,
	remudav1.CostBy_COST_BY_WORKFLOW:      fleet.CostByWorkflow,
	remudav1.CostBy_COST_BY_RUN:           fleet.CostByRun,
	remudav1.CostBy_COST_BY_JOB:           fleet.CostByJob,
	remudav1.CostBy_COST_BY_POOL:          fleet.CostByPool,
	remudav1.CostBy_COST_BY_DAY:           fleet.CostByDay,
	remudav1.CostBy_COST_BY_INSTANCE_TYPE: fleet.CostByInstanceType,
}

// defaultCostRows is how many rows a report has if the caller says nothing.
const defaultCostRows = 1000

// GetCost says what the hosts were used for on some days, and what that cost.
func (s *service) GetCost(ctx context.Context, req *remudav1.GetCostRequest) (*remudav1.GetCostResponse, error) {
	report, err := s.fleet.Costs(ctx, fleet.CostQuery{
		By: costBy[req.GetBy()], Since: req.GetSince(), Until: req.GetUntil(),
		Repository: req.GetRepository(), Pool: req.GetPool(), RunID: req.GetRunId(),
	}, s.now())
	switch {
	case errors.Is(err, fleet.ErrNoPrices):
		return nil, status.Error(codes.Unimplemented, err.Error())
	case err != nil:
		return nil, s.toStatus(ctx, err)
	}
	most := int(req.GetRowLimit())
	if most == 0 {
		most = defaultCostRows
	}
	shown := report.Rows[:min(most, len(report.Rows))]
	resp := &remudav1.GetCostResponse{
		Since: report.Since, Until: report.Until, MoreRows: bounded(len(report.Rows) - len(shown)), Total: cost(report.Total),
		UnpricedTypes: report.Unpriced, Rough: report.Rough, CallDollars: report.CallDollars,
	}
	for _, calls := range report.Calls {
		resp.Calls = append(resp.Calls, callCost(calls))
	}
	for _, row := range shown {
		resp.Rows = append(resp.Rows, cost(row))
	}
	return resp, nil
}

func cost(r fleet.CostRow) *remudav1.Cost {
	return &remudav1.Cost{
		Day: r.Day, Pool: r.Pool, InstanceType: r.InstanceType, UsageClass: r.UsageClass,
		Repository: r.Repository, Workflow: r.Workflow, RunId: r.RunID, RunAttempt: bounded(r.Attempt), Hosts: int64(r.Runs),
		JobId: r.Job.ID, JobName: r.Job.Title,
		Idle: durationpb.New(r.Idle), Boot: durationpb.New(r.Boot), Busy: durationpb.New(r.Busy), Clean: durationpb.New(r.Clean),
		Dollars: r.Dollars, Unpriced: durationpb.New(r.Unpriced),
	}
}

func callCost(r fleet.CallRow) *remudav1.CallCost {
	return &remudav1.CallCost{
		Day: r.Day, Caller: r.Caller, Service: r.Service, Requests: r.Requests, ReadUnits: r.ReadUnits, WriteUnits: r.WriteUnits,
		Dollars: r.Dollars, Estimated: r.Estimated, Rough: r.Rough,
	}
}

// budgetStates are the words of the contract for how a budget stands.
var budgetStates = map[budget.State]remudav1.BudgetState{
	budget.Within: remudav1.BudgetState_BUDGET_STATE_WITHIN,
	budget.Near:   remudav1.BudgetState_BUDGET_STATE_NEAR,
	budget.UsedUp: remudav1.BudgetState_BUDGET_STATE_USED_UP,
}

// ListBudgets says how much is used of what repositories and owners may spend in this month.
func (s *service) ListBudgets(ctx context.Context, _ *remudav1.ListBudgetsRequest) (*remudav1.ListBudgetsResponse, error) {
	uses, readAt, err := s.fleet.Budgets(ctx, s.now())
	if err != nil {
		return nil, s.toStatus(ctx, err)
	}
	resp := &remudav1.ListBudgetsResponse{Month: meter.MonthOf(meter.DayOf(readAt)), ReadTime: timestamppb.New(readAt)}
	for _, u := range uses {
		resp.Budgets = append(resp.Budgets, &remudav1.Budget{
			Repository: u.Repository, Owner: u.Owner, DollarsPerMonth: u.Dollars, DollarsSpent: u.Spent, WarnPercent: bounded(u.WarnPercent),
			State: budgetStates[u.State()],
		})
	}
	return resp, nil
}
