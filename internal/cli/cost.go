package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/subject"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// CostFlags say what a report is about.
type CostFlags struct {
	By string
	// Since is a day, or a number of days such as 30d, today among them. Until is a day.
	Since, Until          string
	Pool, Repository, Run string
	Rows                  int
	CSV                   bool
}

// Cost shows what the hosts were used for, and what that cost.
func (a *App) Cost(ctx context.Context, f CostFlags) error {
	req, err := f.request(a.Now())
	if err != nil {
		return err
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	return a.repeat(ctx, func(ctx context.Context) error {
		report, err := call(ctx, s, DefaultTimeout, "get the cost", s.fleet.GetCost, req)
		switch {
		case err != nil:
			return err
		case f.CSV:
			return view.WriteCosts(a.Stdout, report)
		case a.Output.ForPrograms():
			return output.Message(a.Stdout, a.Output, report)
		}
		nothing := fmt.Sprintf("No such host was used from %s to %s.", report.GetSince(), report.GetUntil())
		if err := a.print(view.Costs(f.By, report), nothing); err != nil {
			return err
		}
		for _, note := range view.CostNotes(report) {
			fmt.Fprintln(a.Stderr, note)
		}
		return nil
	})
}

func (f CostFlags) request(now time.Time) (*remudav1.GetCostRequest, error) {
	if !slices.Contains(view.CostKinds, f.By) {
		return nil, failure.Misused("--by: %q is not a kind of rows: write one of %s", f.By, strings.Join(view.CostKinds, ", "))
	}
	req := &remudav1.GetCostRequest{
		By: view.CostBy[f.By], Since: f.Since, Until: f.Until, Repository: f.Repository, Pool: f.Pool, RowLimit: int32(min(max(f.Rows, 0), 10_000)),
	}
	if digits, ok := strings.CutSuffix(f.Since, "d"); ok {
		n, err := strconv.Atoi(digits)
		if err != nil || n < 1 || n > 400 {
			return nil, failure.Misused("--since: %q is neither a day such as %s nor a number of days from 1d to 400d", f.Since, now.UTC().Format(time.DateOnly))
		}
		req.Since = view.Days(n, now)
	}
	if f.Run == "" {
		return req, nil
	}
	run, err := subject.Parse([]string{f.Run})
	if err != nil || run.RunID == "" {
		return nil, failure.Misused("--run: %q is not a run", f.Run)
	}
	req.RunId = run.RunID
	if run.Repository != "" {
		req.Repository = run.Repository
	}
	return req, nil
}
