package view

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/table"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// PlanTime reads the time of a plan: a time of day in UTC, such as 02:00, whose next one is meant, or one with its day as RFC 3339 has it.
func PlanTime(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	clock, err := time.Parse("15:04", text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%.40q is neither a time of day in UTC such as 02:00 nor one with its day such as %s", text, now.UTC().Format(time.RFC3339))
	}
	year, month, day := now.UTC().Date()
	at := time.Date(year, month, day, clock.Hour(), clock.Minute(), 0, 0, time.UTC)
	if at.Before(now) {
		at = at.AddDate(0, 0, 1)
	}
	return at, nil
}

// PoolPlans is a row for each pool, and one for the hosts that may stay idle, with what the schedules want at the time of the plan.
func PoolPlans(resp *remudav1.PlanScaleDownResponse) table.Table {
	when := resp.GetDecideTime().AsTime().UTC().Format(time.RFC3339)
	t := table.Table{Head: []string{"AT", "POOL", "WANTED", "OF"}}
	for _, p := range resp.GetPools() {
		t.Rows = append(t.Rows, table.Row(when, p.GetPool(), fmt.Sprint(p.GetWantedFreshCount()), plural.Word(p.GetWantedFreshCount(), "fresh host", "fresh hosts")))
	}
	t.Rows = append(t.Rows, table.Row(when, "", fmt.Sprint(resp.GetKeptIdleCount()), "idle hosts of each owner, at most"))
	return t
}
