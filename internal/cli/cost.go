package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// CostFlags say what a report is about.
type CostFlags struct {
	By string
	// Since is a day, or a number of days such as 30d, today among them. Until is a day.
	Since, Until          string
	Pool, Repository, Run string
	// Rows is how many are shown at most; 0: 100 in a table, and else as many as there may be.
	Rows int
	CSV  bool
}

// tableRows and mostRows are how many rows a table and a report have at most.
const tableRows, mostRows = 100, 10_000

// rows is how many rows are asked for.
func (f CostFlags) rows(table bool) int32 {
	switch {
	case f.Rows > 0:
		return int32(f.Rows)
	case table:
		return tableRows
	}
	return mostRows
}

// Cost shows what the hosts were used for, and what that cost.
func (a *App) Cost(ctx context.Context, f CostFlags) error {
	req, err := f.request(a.Now())
	if err != nil {
		return err
	}
	req.RowLimit = f.rows(!f.CSV && !a.Output.ForPrograms())
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	return a.repeat(ctx, func(ctx context.Context) error {
		report, err := call(ctx, s, DefaultTimeout, "get the cost", s.fleet.GetCost, req)
		if err != nil {
			return err
		}
		if err := s.mayBeEmpty(ctx, req.GetPool(), len(report.GetRows())); err != nil {
			return err
		}
		switch {
		case a.Output.ForPrograms(): // which have the notes as fields
			return output.Message(a.Stdout, a.Output, report)
		case f.CSV:
			err = view.WriteCosts(a.Stdout, report)
		default:
			err = a.print(view.Costs(req.GetBy(), report), fmt.Sprintf("No such host was used from %s to %s.", report.GetSince(), report.GetUntil()))
		}
		if err != nil {
			return err
		}
		for _, note := range view.CostNotes(report) {
			fmt.Fprintln(a.Stderr, note)
		}
		return nil
	})
}

func (f CostFlags) request(now time.Time) (*remudav1.GetCostRequest, error) {
	by, ok := view.CostBy(f.By)
	if !ok {
		return nil, failure.Misused("--by: %q is not a kind of rows: write one of %s", f.By, strings.Join(view.CostKinds(), ", "))
	}
	req := &remudav1.GetCostRequest{
		By: by, Until: f.Until, Repository: f.Repository, Pool: f.Pool,
	}
	if f.Rows < 0 || f.Rows > mostRows {
		return nil, failure.Misused("--rows: %d is not from 1 to %d", f.Rows, mostRows)
	}
	if req.Since, ok = firstDay(f.Since, now.UTC()); !ok {
		return nil, failure.Misused("--since: %q is neither a day such as %s nor a number of days from 1d to 400d", f.Since, now.UTC().Format(time.DateOnly))
	}
	if f.Until != "" && !isDay(f.Until) {
		return nil, failure.Misused("--until: %q is not a day such as %s", f.Until, now.UTC().Format(time.DateOnly))
	}
	if f.Run == "" {
		return req, nil
	}
	run, err := runFlag(f.Run)
	if err != nil {
		return nil, err
	}
	req.RunId = run.RunID
	if run.Repository != "" {
		req.Repository = run.Repository
	}
	return req, nil
}

// firstDay is the day from which a report is: that day, or so many days before today, which is one of them. Without a text controld chooses.
func firstDay(text string, today time.Time) (day string, ok bool) {
	digits, many := strings.CutSuffix(text, "d")
	if !many {
		return text, text == "" || isDay(text)
	}
	n, err := strconv.Atoi(digits)
	return today.AddDate(0, 0, 1-n).Format(time.DateOnly), err == nil && n >= 1 && n <= 400
}

func isDay(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}
