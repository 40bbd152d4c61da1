package meter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// JobTime is the row of a job that is over: when it ran, and on which host. It is written once and never changes. What it says is
// GitHub's, so only the part of it counts that lies in the busy time of that host for the same run.
type JobTime struct {
	// Day is the day of its end, and Name the time of its end and its id: the same job always has the same key.
	Day  string `json:"day"`
	Name string `json:"name"`

	Job
	InstanceID string `json:"instanceId"`
	Repository string `json:"repository"`
	RunID      string `json:"runId"`
	From       Milli  `json:"from"`
	Until      Milli  `json:"until"`
	// Alone: its host, of a job pool, served no other job, so what the run used of that host is all the job's.
	Alone bool `json:"alone,omitempty"`

	Version   int64     `json:"version"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// Job is a job of a run. The zero value stands for no job, or for one that is not known.
type Job struct {
	ID int64 `json:"jobId,omitempty"`
	// Title is its name, which the author of its workflow chose.
	Title string `json:"title,omitempty"`
}

// NewJobTime is the row of a job that is over; false: it is not known when it ran.
func NewJobTime(t JobTime, from, until time.Time) (JobTime, bool) {
	if from.IsZero() || !until.After(from) || t.InstanceID == "" {
		return t, false
	}
	t.From, t.Until, t.Title = At(from), At(until), WorkflowName(t.Title)
	t.Day, t.Name = DayOf(until), fmt.Sprintf("%013d/%d", t.Until, t.ID)
	t.Version, t.ExpiresAt = 0, t.Until.Time().Add(KeepReadings)
	return t, true
}

// isOn reports whether the job ran on a host, by the key of the host's record.
func (t JobTime) isOn(hostKey string) bool {
	return hostKey == t.InstanceID || strings.HasSuffix(hostKey, ":"+t.InstanceID)
}

// JobTimes are the jobs of some runs.
type JobTimes map[jobsRun][]JobTime

type jobsRun struct{ repository, runID string }

// Add adds a job.
func (all JobTimes) Add(t JobTime) {
	run := jobsRun{t.Repository, t.RunID}
	all[run] = append(all[run], t)
}

// in are the jobs that ran on a host in a cycle of it, in their order.
func (all JobTimes) in(c Cycle, hostKey string) []JobTime {
	var found []JobTime
	for _, t := range all[jobsRun{c.Repository, c.RunID}] {
		if t.isOn(hostKey) && t.Until > c.ClaimedAt && t.From < known(c.EndedAt, t.Until) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b JobTime) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.ID, b.ID)) })
	return found
}

// Split has the entries of a cycle of a host by its jobs: their sum stays the same. Busy time in which no job is known to have run
// stays without a job, and so do boots, and the count of runs, of a host that served more than one job.
func (all JobTimes) Split(c Cycle, hostKey string, entries []Entry) []Entry {
	jobs := all.in(c, hostKey)
	if !c.Used() || c.User == (User{}) || len(jobs) == 0 {
		return entries
	}
	split := slices.Clone(entries)
	if i := slices.IndexFunc(jobs, func(t JobTime) bool { return t.Alone }); i >= 0 {
		for e := range split {
			if split[e].User == c.User {
				split[e].Job = jobs[i].Job
			}
		}
		return split
	}
	for i, from := range split {
		if from.User != c.User {
			continue
		}
		for _, part := range c.busyOn(from, jobs) {
			split[i].Busy -= part.Busy
			split = append(split, part)
		}
	}
	return slices.DeleteFunc(split, func(e Entry) bool { return e.Runs == 0 && e.Sum() == 0 })
}

// busyOn is which part of the busy time of an entry, which is of one day, each job used. A host runs one job at a time: if they overlap, the
// second counts from the end of the first.
func (c Cycle) busyOn(entry Entry, jobs []JobTime) []Entry {
	begin, err := ParseDay(entry.Day)
	if err != nil || c.ReadyAt == 0 {
		return nil
	}
	free := max(c.ReadyAt, At(begin))
	last := min(free+Milli(entry.Busy.Milliseconds()), At(begin.AddDate(0, 0, 1)))
	var parts []Entry
	for _, t := range jobs {
		from, until := max(t.From, free), min(t.Until, last)
		if until <= from {
			continue
		}
		busy := time.Duration(until-from) * time.Millisecond
		parts = append(parts, Entry{Day: entry.Day, Host: entry.Host, User: entry.User, Job: t.Job, Times: Times{Busy: busy}})
		free = until
	}
	return parts
}
