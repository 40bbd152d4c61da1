package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// toldOtherwise are the events of a trace that a story has other lines for.
var toldOtherwise = []string{
	"creates", "writes", "launch", "send", "reports", "log", "terminate machine", "provision",
}

// observe adds lines for the events of the world.
func (s *script) observe(event any) {
	switch e := event.(type) {
	case world.RecordWritten:
		s.record(e.Before, e.After)
	case world.RequestWritten:
		s.request(e.Before, e.After)
	case world.Reporting:
		s.report(e.Host.Actor.Name, e.Report)
	case world.Launched:
		s.launched(e.Order, e.Machines)
	case world.Described:
		s.described(e.Machines, e.Err)
	case world.Terminating:
		s.called("EC2: terminate "+e.InstanceID, nil)
	case world.Received:
		s.received(e.Deliveries, e.Err)
	case world.DeletingRunner:
		s.called("GitHub: delete runner "+e.Runner.Name, nil)
	case world.Called:
		s.called(e.What, e.Err)
	}
}

// tell adds a line to the story.
func (s *script) tell(who, line string) {
	if words := strings.Fields(who); len(words) > 2 { // "controld-0 balance of jobs"
		who = strings.Join(words[:2], " ")
	}
	at := s.l.Now.Sub(s.began).Round(10 * time.Millisecond).Seconds()
	s.lines = append(s.lines, fmt.Sprintf("%7.2fs  %-20s %s", at, s.named(who), s.named(line)))
}

// Event implements Director: it adds a line for an event of the trace.
func (s *script) Event(who, what, more string) {
	switch isAgent := strings.HasPrefix(who, "agent "); {
	case slices.Contains(toldOtherwise, what) && more != world.AnswerLost:
	case isAgent && more == "" && what != "starts":
		s.tell(who, "host: "+what)
	case more == "", strings.HasPrefix(more, what): // an error that says what failed
		s.tell(who, cmp.Or(more, what))
	default:
		s.tell(who, what+": "+more)
	}
}

// named puts the names of the story's hosts in the place of ids.
func (s *script) named(line string) string {
	for i, id := range s.machines {
		name := fmt.Sprintf("host-%d", i+1)
		line = strings.ReplaceAll(line, id, name)
		line = strings.ReplaceAll(line, "agent "+engine.Short(id), "agent "+name)
	}
	return line
}

// called adds a line for a remote call, with its error.
func (s *script) called(what string, err error) {
	if err != nil {
		what += ": " + err.Error()
	}
	s.tell(s.l.Who(), what)
}

// record adds a line for a write of a host's record: what it changes.
func (s *script) record(before, after lifecycle.Record) {
	var changes []string
	switch {
	case before.Version == 0:
		changes = append(changes, "new, "+after.Condition())
	case before.Condition() != after.Condition():
		changes = append(changes, before.Condition()+" -> "+after.Condition())
	}
	if before.Assignment != after.Assignment {
		changes = append(changes, fmt.Sprintf("assignment %d", after.Assignment))
	}
	if before.Version > 0 && before.Registration == nil && after.Registration != nil {
		changes = append(changes, "gets what it registers with")
	}
	switch {
	case after.Warming() && !before.Warming():
		changes = append(changes, "to register ahead of need")
	case after.Hot() && !before.Hot():
		changes = append(changes, fmt.Sprintf("hot: waits with runner %d", after.Standby.RunnerID))
	}
	if !before.DueAt.Equal(after.DueAt) {
		changes = append(changes, s.due(after.DueAt))
	}
	s.write("record of "+after.HostKey, changes, changed(before.Reason, after.Reason))
}

// request adds a line for a write of a request: what it changes.
func (s *script) request(before, after lifecycle.Request) {
	var changes []string
	if before.Version == 0 {
		changes = append(changes, fmt.Sprintf("new, %d host for %s", after.Spec.Count, after.RunID))
	}
	switch {
	case before.Launch == nil && after.Launch != nil:
		changes = append(changes, fmt.Sprintf("launch %d of %d host begins", after.Launch.Number, after.Launch.Count))
	case before.Launch != nil && after.Launch == nil:
		changes = append(changes, fmt.Sprintf("launch %d is closed", before.Launch.Number))
	}
	for _, t := range after.Taken {
		if !before.Has(t.HostKey) {
			changes = append(changes, "has "+t.InstanceID)
		}
	}
	if !before.Released() && after.Released() {
		changes = append(changes, "released")
	}
	if before.Outcome != after.Outcome {
		changes = append(changes, "outcome "+string(after.Outcome))
	}
	if !before.DueAt.Equal(after.DueAt) {
		changes = append(changes, s.due(after.DueAt))
	}
	s.write(after.RequestID, changes, changed(before.Reason, after.Reason))
}

// report adds a line for a report of an agent, if it differs from the last one.
func (s *script) report(who string, p lifecycle.Report) {
	line := fmt.Sprintf("reports for assignment %d: %s", p.Assignment, cmp.Or(string(p.Signal), "no signal yet"))
	if p.Busy {
		line += ", busy"
	}
	if s.reported[p.HostKey] != line {
		s.reported[p.HostKey] = line
		s.tell(who, line)
	}
}

// write adds a line for a write of a row.
func (s *script) write(row string, changes []string, reason string) {
	line := "writes " + row + ": " + strings.Join(changes, "; ")
	if reason != "" {
		line += " (" + reason + ")"
	}
	s.tell(s.l.Who(), line)
}

// due says when a sweep looks at a row if nothing else happens.
func (s *script) due(at time.Time) string {
	switch {
	case at.IsZero():
		return "never due"
	case !at.After(s.l.Now):
		return "due at once"
	}
	return "due in " + at.Sub(s.l.Now).Round(time.Second).String()
}

// changed is a reason, if it is another one.
func changed(before, after string) string {
	if before == after {
		return ""
	}
	return after
}

// show adds lines for the machines, records and registrations as they are now.
func (s *script) show() {
	add := func(format string, args ...any) {
		s.lines = append(s.lines, s.named("          "+fmt.Sprintf(format, args...)))
	}
	for i, id := range s.machines {
		m := s.l.Machines[id]
		add("machine host-%d: %s", i+1, m.State)
		if r, err := s.l.Truth.Instance(engine.Background, id); err == nil {
			add("record  host-%d: %s, assignment %d, run %q, trust key %q: %s", i+1, r.Condition(), r.Assignment, r.RunID, r.TrustKey, r.Reason)
		}
	}
	for _, r := range s.l.GitHub.Runners {
		add("runner  %s of %s, online %t%s", r.Name, r.Repository, r.Online, s.labels(r))
	}
}

// labels are those of a runner, where runners are given other labels than they register with.
func (s *script) labels(r *world.Runner) string {
	if !s.l.Hot {
		return ""
	}
	return fmt.Sprintf(", labels %q", r.Labels())
}

// launched adds a line for a launch that EC2 has made, even if its answer gets lost.
func (s *script) launched(order lifecycle.LaunchOrder, machines []lifecycle.Machine) {
	for _, m := range machines {
		if !slices.Contains(s.machines, m.InstanceID) {
			s.machines = append(s.machines, m.InstanceID)
		}
	}
	s.called(fmt.Sprintf("EC2: launch %d of %s: %s", order.Number, order.RequestID, world.LaunchedIDs(machines)), nil)
}

// described adds a line for a description of machines.
func (s *script) described(machines []lifecycle.Machine, err error) {
	var states []string
	for _, m := range machines {
		states = append(states, m.InstanceID+" is "+string(m.State))
	}
	s.called("EC2: describe machines: "+strings.Join(states, ", "), err)
}

// received adds a line for what came from a queue.
func (s *script) received(got []lifecycle.Delivery, err error) {
	var keys []string
	for _, d := range got {
		keys = append(keys, d.Message.HostKey)
	}
	s.called("queue: receive: "+cmp.Or(strings.Join(keys, ", "), "nothing"), err)
}
