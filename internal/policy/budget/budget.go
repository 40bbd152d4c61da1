// Package budget says how much is used of what repositories and owners may spend in a month.
package budget

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Budget is what the hosts of the runs of a repository, or of all repositories of an owner, may cost in a month of UTC.
type Budget struct {
	// Repository is "owner/name", and Owner is "owner". One of them is set, in lower case.
	Repository string `yaml:"repository"`
	Owner      string `yaml:"owner"`
	// Dollars a month. Once they are used, runs get no more hosts until the month ends.
	Dollars float64 `yaml:"dollars_per_month"`
	// WarnPercent of Dollars is when a warning is due; 0: never.
	WarnPercent int `yaml:"warn_percent"`
}

// DefaultWarnPercent leaves some days to react.
const DefaultWarnPercent = 80

// SetDefaults are those of a row that has its name and its dollars alone.
func (b *Budget) SetDefaults() { b.WarnPercent = DefaultWarnPercent }

// Name is what the budget is of: "repository acme/shop" or "owner acme".
func (b Budget) Name() string {
	if b.Repository != "" {
		return "repository " + b.Repository
	}
	return "owner " + b.Owner
}

// Covers reports whether what a repository spends counts.
func (b Budget) Covers(repository string) bool {
	repository = lifecycle.Canonical(repository)
	if b.Repository != "" {
		return repository == b.Repository
	}
	return lifecycle.Owner(repository) == b.Owner
}

// State is how a budget stands.
type State string

// The states of a budget.
const (
	Within State = "within"
	Near   State = "near" // WarnPercent of it are used
	UsedUp State = "used up"
)

// Use is how much of a budget is used in a month.
type Use struct {
	Budget
	// Month is such as "2026-11".
	Month string
	// Spent is in dollars.
	Spent float64
	// Since is since when it is used up; zero: it is not, or that is not known.
	Since time.Time
}

// State compares what is spent with what may be.
func (u Use) State() State {
	switch {
	case u.Spent >= u.Dollars:
		return UsedUp
	case u.WarnPercent > 0 && u.Spent >= u.Dollars*float64(u.WarnPercent)/100:
		return Near
	}
	return Within
}

// Share is the part of the budget that is used: 1 is all of it.
func (u Use) Share() float64 { return u.Spent / u.Dollars }

// Reason says how much is used. It has a code where that matters.
func (u Use) Reason() lifecycle.Reason {
	text := fmt.Sprintf("limits.budgets allows %s $%.2f in %s, and $%.2f are spent", u.Name(), u.Dollars, u.Month, u.Spent)
	switch u.State() {
	case UsedUp:
		return lifecycle.Reason{Code: lifecycle.ReasonBudgetUsedUp, Text: text}
	case Near:
		return lifecycle.Reason{Code: lifecycle.ReasonBudgetNear, Text: text}
	}
	return lifecycle.Reason{Text: text}
}

// Until says when there will be hosts again.
func (u Use) Until() string {
	return fmt.Sprintf("from %s on, or once the budget is raised", End(u.Month).Format(time.DateOnly))
}

const monthForm = "2006-01"

// End is when a month such as "2026-11" is over; zero for any other text.
func End(month string) time.Time {
	begin, err := time.Parse(monthForm, month)
	if err != nil {
		return time.Time{}
	}
	return begin.AddDate(0, 1, 0)
}

// List is the budgets of a fleet.
type List []Budget

// Uses are how much of each budget is used by what repositories have spent in a month, in the order of the list.
func (l List) Uses(month string, spent map[string]float64) []Use {
	uses := make([]Use, len(l))
	for i, b := range l {
		uses[i] = Use{Budget: b, Month: month}
		for _, repository := range slices.Sorted(maps.Keys(spent)) { // the last digits of a sum depend on the order
			if b.Covers(repository) {
				uses[i].Spent += spent[repository]
			}
		}
	}
	return uses
}

// Against finds the budget that keeps a repository's runs from more hosts: the first that is used up; nil: none is.
func Against(repository string, uses []Use) *Use {
	i := slices.IndexFunc(uses, func(u Use) bool { return u.Covers(repository) && u.State() == UsedUp })
	if i < 0 {
		return nil
	}
	return &uses[i]
}
