package view

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/table"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Services is a row for each service, as it was last looked at. RUNNERS are those that ECS runs, of those that it should run.
func Services(services []*remudav1.Service, now time.Time, wide bool) table.Table {
	t := table.Table{Head: []string{"SERVICE", "RUNNERS", "QUEUED", "BUSY", "CHECKED", "REASON"}}
	if wide {
		t.Head = append(t.Head, "CLUSTER", "ECS SERVICE", "REGION", "IDLE CHECKS", "WORKERS")
	}
	c := clock{now, wide}
	for _, s := range services {
		row := []table.Cell{{Text: s.GetName()}, runners(s)}
		row = append(row, table.Row(atLeast(s.GetQueuedCount(), s.GetMoreQueued()), fmt.Sprint(s.GetBusyCount()), c.age(at(s.GetCheckTime())), s.GetReason())...)
		if wide {
			row = append(row, table.Row(s.GetCluster(), s.GetEcsService(), s.GetRegion(), fmt.Sprint(s.GetIdleChecks()), workers(s))...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// runners is "1/2", and a warning while ECS runs fewer than it should.
func runners(s *remudav1.Service) table.Cell {
	c := table.Cell{Text: fmt.Sprintf("%d/%d", s.GetRunningCount(), s.GetDesiredCount())}
	if s.GetRunningCount() < s.GetDesiredCount() {
		c.Style = table.Warn
	}
	return c
}

// workers is "2/3": the workers of the service's queue that are online, of those that reported in the last 24 hours.
func workers(s *remudav1.Service) string {
	var online, all int32
	for _, w := range s.GetWorkers() {
		online += w.GetOnlineCount()
		all += w.GetOnlineCount() + w.GetOfflineCount()
	}
	return fmt.Sprintf("%d/%s", online, atLeast(all, s.GetMoreWorkers()))
}

// atLeast is a number, with a plus where there may be more.
func atLeast(n int32, more bool) string {
	if more {
		return fmt.Sprintf("%d+", n)
	}
	return fmt.Sprint(n)
}
