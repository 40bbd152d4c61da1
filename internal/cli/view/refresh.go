package view

import (
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/cli/table"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Resources is a row for each resource that a refresh changed.
func Resources(resources []*remudav1.Resource) table.Table {
	t := table.Table{Head: []string{"KIND", "NAME", "CHANGE", "DETAIL"}}
	for _, r := range resources {
		t.Rows = append(t.Rows, table.Row(r.GetKind(), r.GetName(), word(r.GetChange().String(), "RESOURCE_CHANGE_"), r.GetDetail()))
	}
	return t
}

// Decisions is a row for each decision of a refresh. Hosts that are kept come last.
func Decisions(decisions []*remudav1.Decision) table.Table {
	t := table.Table{Head: []string{"HOST", "ACTION", "SWEEP", "REASON"}}
	sorted := slices.Clone(decisions)
	slices.SortStableFunc(sorted, func(a, b *remudav1.Decision) int {
		if d := kept(a) - kept(b); d != 0 {
			return d
		}
		return strings.Compare(a.GetInstanceId(), b.GetInstanceId())
	})
	for _, d := range sorted {
		style := table.Plain
		if d.GetAction() == remudav1.Action_ACTION_TERMINATE {
			style = table.Warn
		}
		row := table.Row(d.GetInstanceId(), Action(d.GetAction()), d.GetSweep(), d.GetReason())
		row[1].Style = style
		t.Rows = append(t.Rows, row)
	}
	return t
}

func kept(d *remudav1.Decision) int {
	if d.GetAction() == remudav1.Action_ACTION_KEEP {
		return 1
	}
	return 0
}
