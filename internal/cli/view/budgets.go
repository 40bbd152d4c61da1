package view

import (
	"cmp"
	"fmt"

	"github.com/remuda-ci/remuda/internal/cli/table"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// budgetStyles are how the states of budgets look.
var budgetStyles = map[remudav1.BudgetState]table.Style{
	remudav1.BudgetState_BUDGET_STATE_NEAR:    table.Warn,
	remudav1.BudgetState_BUDGET_STATE_USED_UP: table.Bad,
}

// Budgets is a row for each budget.
func Budgets(resp *remudav1.ListBudgetsResponse) table.Table {
	t := table.Table{Head: []string{"BUDGET OF", "A MONTH", "SPENT", "USED", "STATE"}}
	for _, b := range resp.GetBudgets() {
		row := table.Row(cmp.Or(b.GetRepository(), b.GetOwner()), fmt.Sprintf("%.2f", b.GetDollarsPerMonth()), fmt.Sprintf("%.2f", b.GetDollarsSpent()),
			fmt.Sprintf("%d%%", int(100*b.GetDollarsSpent()/b.GetDollarsPerMonth()))) // 99.9% is not all of it
		t.Rows = append(t.Rows, append(row, table.Cell{Text: word(b.GetState().String(), "BUDGET_STATE_"), Style: budgetStyles[b.GetState()]}))
	}
	return t
}
