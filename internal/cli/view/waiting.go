package view

import (
	"cmp"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/table"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Waits is a row for each request and job that waits, in the order given.
func Waits(waits []*remudav1.Wait, now time.Time, wide bool) table.Table {
	t := table.Table{Head: []string{"WAITS", "POOL", "REPOSITORY", "RUN", "JOB", "MISSING", "WHY", "REASON"}}
	if wide {
		t.Head = append(t.Head, "WHY SINCE", "LINE", "NEXT", "REQUEST")
	}
	c := clock{now, wide}
	for _, w := range waits {
		job := w.GetJobName()
		if w.GetJobId() != 0 {
			job = cmp.Or(job, fmt.Sprint(w.GetJobId()))
		}
		row := table.Row(c.age(at(w.GetBeginTime())), w.GetPool(), w.GetRepository(), w.GetRunId(), job, fmt.Sprint(w.GetMissingCount()), w.GetReasonCode(), w.GetReason())
		if wide {
			row = append(row, table.Row(c.age(at(w.GetReasonTime())), w.GetLine(), w.GetNext(), w.GetRequestId())...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
