package cli

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Budgets shows how much is used of what repositories and owners may spend in this month.
func (a *App) Budgets(ctx context.Context) error {
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	return a.repeat(ctx, func(ctx context.Context) error {
		resp, err := call(ctx, s, DefaultTimeout, "list budgets", s.fleet.ListBudgets, &remudav1.ListBudgetsRequest{})
		if err != nil {
			return err
		}
		if a.Output.ForPrograms() {
			return output.Message(a.Stdout, a.Output, resp)
		}
		if err := a.print(view.Budgets(resp), "No budget is configured: see limits.budgets of controld's configuration."); err != nil || len(resp.GetBudgets()) == 0 {
			return err
		}
		_, err = fmt.Fprintf(a.Stderr, "Spent in %s, as of %s ago.\n", resp.GetMonth(), view.Span(a.Now().Sub(resp.GetReadTime().AsTime())))
		return err
	})
}
