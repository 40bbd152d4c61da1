package page

import (
	"cmp"
	"fmt"
	"time"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// task is what a run waits for and has: a request for hosts, or a job. A time that is not known is zero.
type task struct {
	name string
	// since is when it began to wait.
	since time.Time
	// started is when a request had its outcome, and when a runner took a job.
	started, ended time.Time
	// refused is when a job was refused a host.
	refused time.Time
	job     bool
}

// timeline draws the life of a run, from when the first of it began to wait: its requests and its jobs, and below them its hosts. A host has its
// own life alone.
func timeline(events []*remudav1.Event, waits []*remudav1.Wait, to time.Time) *chart {
	tasks := tasksOf(events, waits)
	c := &chart{From: to, To: to, Waits: len(tasks) > 0}
	for _, e := range events {
		c.from(e.GetEventTime().AsTime())
	}
	for _, t := range tasks {
		c.from(t.since)
	}
	var lanes []lane
	for _, t := range tasks {
		lanes = append(lanes, c.task(t))
	}
	hosts, changes := changesOf(events)
	for _, id := range hosts {
		lanes = append(lanes, c.host(c.lifeOf(id, changes[id])))
	}
	c.Of = len(lanes)
	var parts []int
	for _, l := range lanes {
		parts = append(parts, len(l.Parts))
	}
	if starts := sections(parts); len(starts) > 1 {
		lanes = lanes[:starts[1]]
	}
	c.show(lanes)
	return c
}

// portion says which part of a run's lanes the chart has; nothing of a chart that has them all.
func (c *chart) portion() []string {
	if len(c.Lanes) == c.Of {
		return nil
	}
	return []string{fmt.Sprintf("The chart shows the first %d of %d requests, jobs and hosts.", len(c.Lanes), c.Of)}
}

// from has the chart begin at a time, if it began later.
func (c *chart) from(t time.Time) {
	if t.Before(c.From) {
		c.From = t
	}
}

// task is the lane of a request or a job.
func (c *chart) task(t *task) lane {
	l := lane{Name: t.name}
	began := cmp.Or(t.started, t.ended, t.refused, c.To)
	if began = c.within(began); began.After(t.since) {
		l.Parts = append(l.Parts, c.part("waiting", t.since, began))
	}
	if t.job && !t.started.IsZero() {
		if ended := c.within(cmp.Or(t.ended, c.To)); ended.After(began) {
			l.Parts = append(l.Parts, c.part("running", began, ended))
		}
	}
	if !t.ended.IsZero() {
		l.Ends = []place{c.x(c.within(t.ended))}
	}
	return l
}

// tasksOf are the requests and the jobs of events, and those that wait now, in the order in which they come.
func tasksOf(events []*remudav1.Event, waits []*remudav1.Wait) (all []*task) {
	byID := map[string]*task{}
	find := func(requestID string, jobID int64, jobName string, since time.Time) *task {
		id, name, job := "request "+requestID, "request "+short(requestID), jobID != 0
		if job {
			id, name = fmt.Sprint("job ", jobID), "job "+cmp.Or(jobName, fmt.Sprint(jobID))
		}
		t := byID[id]
		if t == nil {
			t = &task{name: name, since: since, job: job}
			byID[id], all = t, append(all, t)
		}
		if since.Before(t.since) {
			t.since = since
		}
		return t
	}
	for _, e := range events {
		if e.GetInstanceId() != "" || e.GetRequestId() == "" && e.GetJobId() == 0 {
			continue
		}
		at := e.GetEventTime().AsTime()
		since := at
		if e.GetBeginTime() != nil {
			since = e.GetBeginTime().AsTime()
		}
		find(e.GetRequestId(), e.GetJobId(), e.GetJobName(), since).happened(e.GetAction(), at)
	}
	for _, w := range waits {
		find(w.GetRequestId(), w.GetJobId(), w.GetJobName(), w.GetBeginTime().AsTime()).refused = time.Time{}
	}
	return all
}

// happened notes what an event says of a task.
func (t *task) happened(action remudav1.Action, at time.Time) {
	switch action {
	case remudav1.Action_ACTION_SETTLE, remudav1.Action_ACTION_START_JOB:
		t.started = at
	case remudav1.Action_ACTION_RELEASE, remudav1.Action_ACTION_END_JOB:
		t.ended = at
	case remudav1.Action_ACTION_REFUSE_JOB: // nothing is known of it after that, unless it starts
		t.refused = at
	}
}

// short is the begin of an id, as much as tells one from another.
func short(id string) string { return id[:min(len(id), 8)] }
