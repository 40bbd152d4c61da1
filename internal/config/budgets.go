package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy/budget"
)

// maxBudgets bounds the rows: each is a series of metrics.
const maxBudgets = 500

// maxBudget is more dollars than a month of the largest fleet costs.
const maxBudget = 100_000_000

var ownerName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,39}$`)

// BudgetList is the budgets in the words of the policy, where names are in lower case.
func (l Limits) BudgetList() budget.List {
	list := slices.Clone(l.Budgets)
	for i := range list {
		list[i].Repository, list[i].Owner = lifecycle.Canonical(list[i].Repository), lifecycle.Canonical(list[i].Owner)
	}
	return list
}

func validateBudgets(all budget.List, at strictyaml.Place) {
	if n := len(all); n > maxBudgets {
		at.Errorf("has %d rows; write at most %d", n, maxBudgets)
	}
	seen := map[string]bool{}
	for i, b := range all {
		row := at.Item(i)
		switch {
		case (b.Repository == "") == (b.Owner == ""):
			row.Errorf("write either repository or owner")
		case b.Repository != "":
			row.At("repository").Match(b.Repository, repositoryName, "a repository as owner/name")
		default:
			row.At("owner").Match(b.Owner, ownerName, "the owner of repositories")
		}
		if name := strings.ToLower(b.Name()); seen[name] {
			row.Errorf("is a second budget of %s; write one", name)
		} else {
			seen[name] = true
		}
		if b.Dollars <= 0 || b.Dollars > maxBudget {
			row.At("dollars_per_month").Errorf("is %v; write a number above 0, to %d", b.Dollars, maxBudget)
		}
		row.At("warn_percent").Number(b.WarnPercent, 0, 100)
	}
}
