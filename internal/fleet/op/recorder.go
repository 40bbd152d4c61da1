package op

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// Recorder collects the events of one operation and writes them together: one write where the operation
// pauses instead of one for each step. Driver.Recorder makes one.
type Recorder struct {
	driver *Driver
	events []lifecycle.Event
	// Effects counts what the operation has done: writes and remote calls.
	Effects int
	// Dry: the operation decides, but does nothing.
	Dry bool
	// Sweep is the name of the sweep whose recorder this is. A sweep records all that it decides, a decision
	// that stays the same once. An operation that was asked for has no name, and records what it does.
	Sweep string
	// Now is the time of the current step.
	Now time.Time
	// HoldsOffers: the messages of hosts that were pooled are kept in Offers until the operation has them sent together.
	HoldsOffers bool
	Offers      []lifecycle.Message
	// Decided collects every decision for a caller that wants them all.
	Decided *[]Decided
}

// Part is a recorder for one of several things that an operation does at once. What it holds is j's once it has joined it.
func (j *Recorder) Part() Recorder {
	p := Recorder{driver: j.driver, Dry: j.Dry, Sweep: j.Sweep, Now: j.Now, HoldsOffers: true}
	if j.Decided != nil {
		p.Decided = new([]Decided)
	}
	return p
}

// Join adds what a part has recorded.
func (j *Recorder) Join(p *Recorder) {
	j.events, j.Offers = append(j.events, p.events...), append(j.Offers, p.Offers...)
	j.Effects += p.Effects
	if j.Decided != nil {
		*j.Decided = append(*j.Decided, *p.Decided...)
	}
}

// Decided is a decision on one host, for people.
type Decided struct {
	InstanceID string
	Action     lifecycle.Action
	Code       lifecycle.ReasonCode
	Reason     string
	// Sweep is the name of the sweep that decided.
	Sweep string
}

// RecordMachine records a decision on a machine that has no record.
func (j *Recorder) RecordMachine(instanceID string, d lifecycle.Decision) {
	j.RecordDecision(lifecycle.Record{InstanceID: instanceID}, d)
}

// RecordDecision records a decision on a host, by a sweep if it has changed. A decision that leads to a write
// of the record is recorded by RecordEffect, once it is written.
func (j *Recorder) RecordDecision(r lifecycle.Record, d lifecycle.Decision) {
	j.Collect(r.InstanceID, d.Action, lifecycle.Reason{Code: d.Code, Text: d.Reason})
	if j.Dry || j.Sweep == "" || !j.Changed(r, d) {
		return
	}
	switch d.Action {
	case lifecycle.ActionKeep, lifecycle.ActionEndMachine, lifecycle.ActionDeleteRunner:
		j.Record(lifecycle.Event{
			At: j.Now, InstanceID: r.InstanceID, Repository: r.Repository, RunID: r.RunID, RequestID: r.RequestID,
			Assignment: r.Assignment, Action: d.Action, Reason: d.Reason, Code: d.Code,
		})
	}
}

// Changed notes a decision of the sweep and reports whether the history lacks it.
func (j *Recorder) Changed(r lifecycle.Record, d lifecycle.Decision) bool {
	return j.driver.decisions.changed(r, j.Sweep, d, j.Now)
}

// Collect gives a decision to a caller that wants them all.
func (j *Recorder) Collect(instanceID string, action lifecycle.Action, why lifecycle.Reason) {
	if j.Decided != nil {
		*j.Decided = append(*j.Decided, Decided{
			InstanceID: instanceID, Action: action, Code: codeOf(action, why.Code), Reason: why.Text, Sweep: j.Sweep,
		})
	}
}

// RecordEffect records something that was done.
func (j *Recorder) RecordEffect(e lifecycle.Event) {
	j.Effects++
	if e.Action == lifecycle.ActionForget {
		j.driver.decisions.forget(e.InstanceID)
	}
	j.Record(e)
}

// Record logs an event and adds it to those that are written next.
func (j *Recorder) Record(e lifecycle.Event) {
	e.Sweep = j.Sweep
	e.Code = codeOf(e.Action, e.Code)
	if j.driver.onEvent != nil {
		j.driver.onEvent(e.Action, e.Code)
	}
	j.driver.log.Info("decided", logkey.Action, e.Action, logkey.Instance, e.InstanceID, logkey.Run, e.RunID,
		logkey.From, e.From, logkey.To, e.To, logkey.Sweep, e.Sweep, logkey.Code, e.Code, logkey.Reason, e.Reason)
	j.events = append(j.events, e)
}

// codeOf is the code of a decision: its own, or that of an action with one reason.
func codeOf(action lifecycle.Action, code lifecycle.ReasonCode) lifecycle.ReasonCode {
	return cmp.Or(code, lifecycle.CodeOf(action))
}

// Flush writes what was collected. The history is for people: a failure to
// write it is logged and stops nothing.
func (j *Recorder) Flush(ctx context.Context) {
	if len(j.events) == 0 {
		return
	}
	if err := j.driver.history.AddEvents(ctx, j.events); err != nil {
		j.driver.log.Warn("history not written", logkey.Count, len(j.events), logkey.Error, err)
		for _, e := range j.events {
			j.driver.decisions.forget(e.InstanceID)
		}
	}
	j.events = nil
}

// batchFor is how long an event may wait for others to be written with it.
const batchFor = time.Second

// batchOf is how many events wait for others at most. A sweep may decide on every host of a large fleet: its history is neither kept in memory as a
// whole nor written in one transaction.
const batchOf = 500

// pause flushes when the operation is done, when it comes to rest with events that have waited for batchFor, and when it has many:
// a claim that is ready at once then costs one write of history, and watchers still see a slow one.
func (j *Recorder) pause(ctx context.Context, p Progress, now time.Time) Progress {
	old := len(j.events) > 0 && now.Sub(j.events[0].At) >= batchFor
	if p.Done || (p.Wait > 0 && old) || len(j.events) >= batchOf {
		j.Flush(ctx)
	}
	return p
}

// TransitionEvent describes one write of a record. Its run is the one that the
// host has after the write, or else had before it.
func TransitionEvent(before, after lifecycle.Record, d lifecycle.Decision, now time.Time) lifecycle.Event {
	e := lifecycle.Event{
		At: now, InstanceID: after.InstanceID, Repository: after.Repository, RunID: after.RunID,
		RequestID: after.RequestID, Assignment: after.Assignment, Action: d.Action,
		From: before.Condition(), To: after.Condition(), Reason: d.Reason, Code: d.Code,
	}
	if d.Statement != "" {
		e.Statement, e.AgentKey = d.Statement, after.AgentKey
	}
	if e.RunID == "" {
		e.RunID, e.RequestID = before.RunID, before.RequestID
	}
	return e
}

// RequestEvent describes a step of a request that is no host's transition.
func RequestEvent(q lifecycle.Request, action lifecycle.Action, why lifecycle.Reason, now time.Time) lifecycle.Event {
	return lifecycle.Event{
		At: now, Repository: q.Repository, RunID: q.RunID, RequestID: q.RequestID, Pool: q.Spec.Pool, Action: action, Reason: why.Text, Code: why.Code, Since: q.CreatedAt,
	}
}

// decisionDedup remembers what each sweep last decided on each host, so that a decision is recorded when it
// changes, and not each time a sweep runs: the history then grows with what happens and not with what exists.
// It is a replica's own memory and may be lost: each decision is then recorded once more.
type decisionDedup struct {
	mu sync.Mutex
	// last is by instance id. A host has one for each sweep that has decided on it, so few that a list is smaller than a map.
	last   map[string][]recorded
	pruned time.Time
}

// recorded is the digest of a decision that a sweep has recorded, and when.
type recorded struct {
	sweep  string
	digest uint64
	at     time.Time
}

// repeatAfter is how long the history keeps an event (docs/design.md#what-is-stored). A decision that has not
// changed by then is recorded again, or the history would have no trace of it.
const repeatAfter = 24 * time.Hour

// pruneEvery is how often decisions older than repeatAfter are dropped: those on
// hosts that ended while another replica swept.
const pruneEvery = time.Hour

// changed notes a decision and reports whether the history lacks it. A decision on
// the next assignment of a host counts as another one.
func (t *decisionDedup) changed(r lifecycle.Record, sweep string, d lifecycle.Decision, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune(now)
	sum := digest(r.Assignment, d)
	of := t.last[r.InstanceID]
	i := slices.IndexFunc(of, func(d recorded) bool { return d.sweep == sweep })
	switch {
	case i < 0:
		if t.last == nil {
			t.last = map[string][]recorded{}
		}
		t.last[r.InstanceID] = append(of, recorded{sweep, sum, now})
	case of[i].digest == sum && now.Sub(of[i].at) < repeatAfter:
		return false
	default:
		of[i] = recorded{sweep, sum, now}
	}
	return true
}

// forget drops the decisions on a host that has ended, or whose events could not be written.
func (t *decisionDedup) forget(instanceID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, instanceID)
}

func (t *decisionDedup) prune(now time.Time) {
	if now.Sub(t.pruned) < pruneEvery {
		return
	}
	t.pruned = now
	for id, of := range t.last {
		of = slices.DeleteFunc(of, func(d recorded) bool { return now.Sub(d.at) >= repeatAfter })
		if t.last[id] = of; len(of) == 0 {
			delete(t.last, id)
		}
	}
}

// digest identifies a decision by its action and its reason code. Its sentence may count
// minutes, and would be another one each time.
func digest(assignment int64, d lifecycle.Decision) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, assignment, d.Action, codeOf(d.Action, d.Code))
	return h.Sum64()
}
