package world

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// AccountLine is a quota ledger in a line of the trace.
func AccountLine(a ledger.Quota) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s v%d", a.Name, a.Version)
	for _, e := range a.Reservations {
		fmt.Fprintf(&b, " %s.%d:%d", e.RequestID, e.Launch, e.Hosts)
	}
	return b.String()
}

// RequestLine is a request in a line of the trace.
func RequestLine(q lifecycle.Request) string {
	launch := "-"
	if q.Launch != nil {
		launch = fmt.Sprintf("%d of %d", q.Launch.Number, q.Launch.Count)
	}
	taken := ""
	for _, t := range q.Taken {
		taken += " " + engine.Short(t.HostKey)
	}
	return fmt.Sprintf("%s v%d outcome %q taken%s launch %s launches %d released %s due %s: %s", q.RequestID, q.Version, q.Outcome,
		taken, launch, q.Launches, engine.SinceEpoch(q.ReleasedAt), engine.SinceEpoch(q.DueAt), q.Reason)
}

// RecordLine is a host's record in a line of the trace.
func RecordLine(r lifecycle.Record) string {
	standby := ""
	if s := r.Standby; s != nil {
		standby = fmt.Sprintf(" standby a%d runner %d", s.Assignment, s.RunnerID)
	}
	return fmt.Sprintf("v%d %s a%d run %q request %q%s threshold %s due %s: %s", r.Version, r.Condition(), r.Assignment,
		r.RunID, r.RequestID, standby, engine.SinceEpoch(r.Threshold), engine.SinceEpoch(r.DueAt), r.Reason)
}

func jobLine(j model.Job) string {
	return fmt.Sprintf("job %s v%d %s of %q attempt %d", j.ID, j.Version, j.State, j.WorkerID, j.Attempt)
}

// SlotsLine is the slots of a job pool in a line of the trace.
func SlotsLine(t slots.Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "of %s v%d, %d so far:", t.Pool, t.Version, t.Assigned)
	for _, o := range t.Open {
		fmt.Fprintf(&b, " %d for job %d (%s, begun %t)", o.Number, o.JobID, engine.Short(o.HostKey), o.Started)
	}
	return b.String()
}

// LaunchedIDs are the ids of machines in a line of a story.
func LaunchedIDs(machines []lifecycle.Machine) string {
	var ids []string
	for _, m := range machines {
		ids = append(ids, m.InstanceID)
	}
	return cmp.Or(strings.Join(ids, ", "), "none")
}
