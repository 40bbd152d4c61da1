package fleet

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// journal collects the events of one operation and writes them together: one
// write where the operation pauses instead of one for each step.
type journal struct {
	f      *Fleet
	events []lifecycle.Event
	// effects counts what the operation has done: writes and remote calls.
	effects int
	// dry: decide, but do nothing.
	dry bool
	// sweep is the name of the sweep whose journal this is: all that it decides
	// is told, a decision that stays the same once. Empty: an operation that
	// somebody asked for, which tells what it does.
	sweep string
	// now is the time of the step in hand.
	now time.Time
	// decided collects every decision for a caller that wants them all.
	decided *[]Decided
}

// Decided is a decision on one host, for people.
type Decided struct {
	InstanceID string
	Action     lifecycle.Action
	Reason     string
	// Sweep is the name of the sweep that decided.
	Sweep string
}

// decide tells of a decision on a machine that has no record.
func (j *journal) decide(instanceID string, action lifecycle.Action, why string) {
	j.decideOn(lifecycle.Record{InstanceID: instanceID}, action, why)
}

// decideOn tells of a decision on a host, by a sweep if it is news. What leads
// to a write of the record is told by add, once it is written.
func (j *journal) decideOn(r lifecycle.Record, action lifecycle.Action, why string) {
	j.collect(r.InstanceID, action, why)
	if j.dry || j.sweep == "" || !j.f.told.news(r, j.sweep, action, why, j.now) {
		return
	}
	switch action {
	case lifecycle.ActionKeep, lifecycle.ActionEndMachine, lifecycle.ActionDeleteRunner:
		j.tell(lifecycle.Event{
			At: j.now, InstanceID: r.InstanceID, Repository: r.Repository, RunID: r.RunID, RequestID: r.RequestID,
			Assignment: r.Assignment, Action: action, Reason: why,
		})
	}
}

// collect gives a decision to a caller that wants them all.
func (j *journal) collect(instanceID string, action lifecycle.Action, why string) {
	if j.decided != nil {
		*j.decided = append(*j.decided, Decided{InstanceID: instanceID, Action: action, Reason: why, Sweep: j.sweep})
	}
}

// add tells of something that was done.
func (j *journal) add(e lifecycle.Event) {
	j.effects++
	if e.Action == lifecycle.ActionForget {
		j.f.told.forget(e.InstanceID)
	}
	j.tell(e)
}

func (j *journal) tell(e lifecycle.Event) {
	e.Sweep = j.sweep
	j.f.log.Info("decided", "action", e.Action, "instance", e.InstanceID, "run", e.RunID,
		"from", e.From, "to", e.To, "sweep", e.Sweep, "reason", e.Reason)
	j.events = append(j.events, e)
}

// flush writes what was collected. The history is for people: a failure to
// write it is logged and stops nothing.
func (j *journal) flush(ctx context.Context) {
	if len(j.events) == 0 {
		return
	}
	if err := j.f.store.AddEvents(ctx, j.events); err != nil {
		j.f.log.Warn("history not written", "events", len(j.events), "error", err)
		for _, e := range j.events {
			j.f.told.forget(e.InstanceID)
		}
	}
	j.events = nil
}

// journalAge is how long an event may wait for others to be written with it.
const journalAge = time.Second

// pause flushes when the operation is done, and when it comes to rest with
// events that have waited long enough: a claim that is ready at once then
// costs one write of history, and watchers still hear of a slow one.
func (j *journal) pause(ctx context.Context, p Progress, now time.Time) Progress {
	old := len(j.events) > 0 && now.Sub(j.events[0].At) >= journalAge
	if p.Done || (p.Wait > 0 && old) {
		j.flush(ctx)
	}
	return p
}

// transitionEvent tells of one write of a record. Its run is the one that the
// host had before, or has now.
func transitionEvent(before, after lifecycle.Record, d lifecycle.Decision, now time.Time) lifecycle.Event {
	e := lifecycle.Event{
		At: now, InstanceID: after.InstanceID, Repository: after.Repository, RunID: after.RunID,
		RequestID: after.RequestID, Assignment: after.Assignment, Action: d.Action,
		From: before.Condition(), To: after.Condition(), Reason: d.Why,
	}
	if e.RunID == "" {
		e.RunID, e.RequestID = before.RunID, before.RequestID
	}
	return e
}

// requestEvent tells of a step of a request that is no host's transition.
func requestEvent(q lifecycle.Request, action lifecycle.Action, why string, now time.Time) lifecycle.Event {
	return lifecycle.Event{
		At: now, Repository: q.Repository, RunID: q.RunID, RequestID: q.RequestID, Action: action, Reason: why,
	}
}
