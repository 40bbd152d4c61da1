package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/table"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Pools is a row for each pool. ARRIVING are the hosts that are created or claimed, and of the idle ones RELEASING are
// those that are not free to be taken yet. FRESH compares with what its warm pool wants, and STOPPED has in parentheses how many
// hosts that no run has used are stopped, of how many that are wanted.
func Pools(pools []*remudav1.Pool, now time.Time, wide bool) table.Table {
	t := table.Table{Head: []string{"POOL", "RUNNING", "ARRIVING", "RELEASING", "POOLED", "HOT", "FRESH", "STOPPED", "MAXIMUM", "PAUSED"}}
	if wide {
		t.Head = append(t.Head, "CLASSES", "USAGE", "TYPES", "REUSE", "PRIVILEGED", "MAX RUNTIME", "PAUSED BY", "WHY")
	}
	for _, p := range pools {
		count := counts(p)
		arriving := count[remudav1.State_STATE_CREATED] + count[remudav1.State_STATE_CLAIMED]
		row := table.Row(p.GetName(), fmt.Sprint(count[remudav1.State_STATE_RUNNING]), fmt.Sprint(arriving),
			fmt.Sprint(count[remudav1.State_STATE_IDLE]-p.GetPooledCount()-p.GetStoppedCount()), fmt.Sprint(p.GetPooledCount()), fmt.Sprint(p.GetHotCount()))
		row = append(row, fresh(p), stoppedOf(p))
		row = append(row, table.Cell{Text: maximum(p)}, paused(p, clock{now, wide}))
		if wide {
			row = append(row, table.Row(strings.Join(p.GetResourceClasses(), ","), usages(p), strings.Join(p.GetAllowedInstanceTypes(), ","),
				word(p.GetReuse().String(), "REUSE_"), fmt.Sprint(p.GetPrivileged()), Span(p.GetMaxRuntime().AsDuration()), p.GetPause().GetOperator(), p.GetPause().GetReason())...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func counts(p *remudav1.Pool) map[remudav1.State]int32 {
	count := map[remudav1.State]int32{}
	for _, c := range p.GetCounts() {
		count[c.GetState()] += c.GetCount()
	}
	return count
}

// fresh is "2/3" where the pool wants fresh hosts, and their number where it wants none.
func fresh(p *remudav1.Pool) table.Cell {
	if p.GetWantedFreshCount() == 0 {
		return table.Cell{Text: fmt.Sprint(p.GetFreshCount())}
	}
	c := table.Cell{Text: fmt.Sprintf("%d/%d", p.GetFreshCount(), p.GetWantedFreshCount())}
	if p.GetFreshCount() < p.GetWantedFreshCount() {
		c.Style = table.Warn
	}
	return c
}

// stoppedOf is "3 (1/2)" where the pool wants fresh hosts that are stopped, and their number where it wants none.
func stoppedOf(p *remudav1.Pool) table.Cell {
	c := table.Cell{Text: fmt.Sprint(p.GetStoppedCount())}
	if wanted, has := p.GetWantedFreshStoppedCount(), p.GetFreshStoppedCount(); wanted > 0 {
		c.Text += fmt.Sprintf(" (%d/%d)", has, wanted)
		if has < wanted {
			c.Style = table.Warn
		}
	}
	return c
}

func maximum(p *remudav1.Pool) string {
	switch {
	case p.GetRemoved():
		return "removed"
	case p.GetMaximum() == 0 && !p.GetHasMaximum():
		return "any"
	}
	return fmt.Sprint(p.GetMaximum())
}

// paused is since when the pool is paused.
func paused(p *remudav1.Pool, c clock) table.Cell {
	if p.GetPause() == nil {
		return table.Cell{Text: "no"}
	}
	return table.Cell{Text: c.age(at(p.GetPause().GetBeginTime())), Style: table.Warn}
}

func usages(p *remudav1.Pool) string {
	var all []string
	for _, u := range p.GetUsageClasses() {
		all = append(all, usage(u))
	}
	return strings.Join(all, ",")
}

// word is the name of an enum value as people write it.
func word(name, prefix string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, prefix)), "_", " ")
}
