package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/table"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Run is a run with its hosts.
type Run struct {
	Repository string `json:"repository"`
	RunID      string `json:"runId"`
	Attempt    int32  `json:"attempt"`
	// Ready are its hosts that can take its jobs, and Wanted all that it has, with those that are on their way. Hosts that
	// controld still looks for are not among them: `remuda why` says so.
	Ready  int `json:"ready"`
	Wanted int `json:"wanted"`
	// Busy are its hosts with a job at work.
	Busy  int       `json:"busy"`
	Pools []string  `json:"pools"`
	Hosts []string  `json:"hosts"`
	Since time.Time `json:"since"`
	// Next is what happens to one of its hosts first; zero time: nothing is known.
	Next   string    `json:"next,omitempty"`
	NextAt time.Time `json:"nextTime,omitzero"`
}

// RunsOf groups hosts by their run, by repository and run.
func RunsOf(hosts []*remudav1.Instance, now time.Time) []Run {
	type id struct {
		repository, run string
		attempt         int32
	}
	of := map[id][]*remudav1.Instance{}
	for _, h := range hosts {
		repository, run, attempt := work(h)
		if run != "" && State(h) != ended {
			of[id{repository, run, attempt}] = append(of[id{repository, run, attempt}], h)
		}
	}
	var runs []Run
	for id, hosts := range of {
		Sort(hosts)
		r := Run{Repository: id.repository, RunID: id.run, Attempt: id.attempt, Since: since(hosts[0])}
		for _, h := range hosts {
			r.add(h, now)
		}
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(strings.Compare(a.Repository, b.Repository), strings.Compare(a.RunID, b.RunID), cmp.Compare(a.Attempt, b.Attempt))
	})
	return runs
}

func (r *Run) add(h *remudav1.Instance, now time.Time) {
	r.Hosts = append(r.Hosts, h.GetInstanceId())
	r.Wanted++
	if State(h) == running {
		r.Ready++
	}
	if h.GetBusy() {
		r.Busy++
	}
	if !slices.Contains(r.Pools, h.GetPool()) {
		r.Pools = append(r.Pools, h.GetPool())
	}
	if t := since(h); t.Before(r.Since) {
		r.Since = t
	}
	if what, t := next(h, now); what != "" && (r.Next == "" || t.Before(r.NextAt)) {
		r.Next, r.NextAt = what, t
	}
}

// Runs is a row for each run.
func Runs(runs []Run, now time.Time, wide bool) table.Table {
	t := table.Table{Head: []string{"REPOSITORY", "RUN", "ATTEMPT", "READY", "BUSY", "POOL", "SINCE", "NEXT"}}
	if wide {
		t.Head = append(t.Head, "HOSTS")
	}
	c := clock{now, wide}
	for _, r := range runs {
		ready := table.Cell{Text: fmt.Sprintf("%d/%d", r.Ready, r.Wanted), Style: table.Good}
		if r.Ready < r.Wanted {
			ready.Style = table.Warn
		}
		row := append(table.Row(r.Repository, r.RunID, fmt.Sprint(r.Attempt)), ready)
		row = append(row, table.Row(fmt.Sprint(r.Busy), strings.Join(r.Pools, ","), c.age(r.Since), c.next(r.Next, r.NextAt))...)
		if wide {
			row = append(row, table.Cell{Text: strings.Join(r.Hosts, ",")})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
