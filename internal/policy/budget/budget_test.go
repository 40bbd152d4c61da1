package budget_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy/budget"
)

var list = budget.List{
	{Repository: "acme/shop", Dollars: 10, WarnPercent: 80},
	{Owner: "acme", Dollars: 100, WarnPercent: 50},
	{Owner: "none", Dollars: 1},
}

func TestUses(t *testing.T) {
	t.Parallel()
	var got []float64
	for _, u := range list.Uses("2026-11", map[string]float64{"": 64, "acme/shop": 8, "Acme/Site": 16, "acme/": 32, "acmes/shop": 128}) {
		got = append(got, u.Spent)
	}
	if diff := cmp.Diff([]float64{8, 56, 0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		warn  int
		spent float64
		want  budget.State
		code  lifecycle.ReasonCode
	}{
		{80, 0, budget.Within, ""},
		{80, 7.99, budget.Within, ""},
		{80, 8, budget.Near, lifecycle.ReasonBudgetNear},
		{80, 9.99, budget.Near, lifecycle.ReasonBudgetNear},
		{80, 10, budget.UsedUp, lifecycle.ReasonBudgetUsedUp},
		{0, 9.99, budget.Within, ""},
		{0, 10, budget.UsedUp, lifecycle.ReasonBudgetUsedUp},
		{100, 10, budget.UsedUp, lifecycle.ReasonBudgetUsedUp},
	} {
		u := budget.Use{Budget: budget.Budget{Owner: "acme", Dollars: 10, WarnPercent: tt.warn}, Month: "2026-11", Spent: tt.spent}
		if got, why := u.State(), u.Reason(); got != tt.want || why.Code != tt.code {
			t.Errorf("%+v: %s (%s), want %s (%s)", u, got, why.Code, tt.want, tt.code)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	u := budget.Use{Budget: budget.Budget{Owner: "acme", Dollars: 1000}, Month: "2026-12", Spent: 1234.567}
	if got, want := u.Reason().Text, "limits.budgets allows owner acme $1000.00 in 2026-12, and $1234.57 are spent"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := u.Until(), "from 2027-01-01 on, or once the budget is raised"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if u.Share() != 1.234567 {
		t.Errorf("the share is %g", u.Share())
	}
	if got := budget.End("November"); got != (time.Time{}) {
		t.Errorf("no month ends at %s", got)
	}
}

func TestAgainst(t *testing.T) {
	t.Parallel()
	uses := list.Uses("2026-11", map[string]float64{"acme/shop": 10, "acme/site": 9, "none/x": 0.5})
	for repository, want := range map[string]string{"acme/shop": "repository acme/shop", "ACME/Shop": "repository acme/shop", "acme/site": "", "none/x": "", "": ""} {
		name := ""
		if u := budget.Against(repository, uses); u != nil {
			name = u.Name()
		}
		if name != want {
			t.Errorf("%s: %q, want %q", repository, name, want)
		}
	}
	uses = list.Uses("2026-11", map[string]float64{"acme/site": 100})
	if u := budget.Against("acme/shop", uses); u == nil || u.Name() != "owner acme" {
		t.Errorf("another repository of the owner has used all: %+v", u)
	}
}

func TestDefaultsOfABudget(t *testing.T) {
	t.Parallel()
	b := budget.Budget{Owner: "acme", Dollars: 10}
	b.SetDefaults()
	if want := (budget.Budget{Owner: "acme", Dollars: 10, WarnPercent: 80}); b != want {
		t.Errorf("%+v, want %+v", b, want)
	}
}
