package forecast

import (
	"cmp"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/replay"
)

// Names of the columns of a report.
const (
	ThisPolicy   = "policy"          // the policy that is asked about
	PresentOne   = "present"         // the policy that it is held against
	CheapestOne  = "cheapest"        // what the search has found
	FreshMachine = "machine per job" // a fresh machine for each job
)

// Report is the answer.
type Report struct {
	// Jobs were played, of Repositories; From and Until are when the first was created and the last was over, as recorded.
	Jobs        int       `json:"jobs"`
	From        time.Time `json:"from"`
	Until       time.Time `json:"until"`
	BootSeconds float64   `json:"bootSeconds"`
	// Recorded is how long the jobs waited in truth, with whatever ran them.
	Recorded     Waits        `json:"recordedWaits"`
	Columns      []Column     `json:"policies"`
	Repositories []Repository `json:"repositories"`
	// LeftOut says what of the history was not played, and Notes what of the policies.
	LeftOut []string `json:"leftOut,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	// Found is the policy that the search has found, as a part of a configuration; empty: none was asked for.
	Found string `json:"found,omitempty"`

	outcomes []*replay.Outcome
}

// Waits are how long jobs waited at most, in seconds: half of them, and 95 and 99 of a hundred.
type Waits struct {
	P50 float64 `json:"p50Seconds"`
	P95 float64 `json:"p95Seconds"`
	P99 float64 `json:"p99Seconds"`
}

// Column is what came of one policy.
type Column struct {
	Name  string `json:"name"`
	Waits Waits  `json:"waits"`
	// Hot, Warm, Started and Cold count the jobs by how their hosts came.
	Hot     int `json:"hot"`
	Warm    int `json:"warm"`
	Started int `json:"started"`
	Cold    int `json:"cold"`
	// Launched are the machines. Their hours are those of jobs, and of machines that booted, were idle or were cleaned.
	Launched     int     `json:"launched"`
	MachineHours float64 `json:"machineHours"`
	BusyHours    float64 `json:"busyHours"`
	IdleHours    float64 `json:"idleHours"`
	Dollars      float64 `json:"dollars"`
	// Cut are the jobs that ran for longer than their pool lets them, GaveUp those that had no host for a day.
	Cut    int `json:"cut,omitempty"`
	GaveUp int `json:"gaveUp,omitempty"`
}

// Repository is what came of the jobs of one repository, by policy in the order of Columns.
type Repository struct {
	// Name is "owner/name"; empty: the pools, which pay for hosts that no job has.
	Name  string  `json:"repository"`
	Jobs  int     `json:"jobs"`
	Under []Under `json:"policies"`
}

// Under is what came of them under one policy.
type Under struct {
	Waits        Waits   `json:"waits"`
	MachineHours float64 `json:"machineHours"`
	Dollars      float64 `json:"dollars"`
}

// newReport begins a report of a history.
func newReport(h history.History, t replay.Times) *Report {
	r := &Report{Jobs: len(h.Jobs), From: h.Jobs[0].Created.UTC(), BootSeconds: t.Boot.Seconds(), LeftOut: h.LeftOut()}
	waited := make([]time.Duration, 0, len(h.Jobs))
	jobs := map[string]int{}
	for _, j := range h.Jobs {
		waited = append(waited, j.Waited())
		jobs[lifecycle.Canonical(j.Repository)]++
		if end := j.Completed.UTC(); end.After(r.Until) {
			r.Until = end
		}
	}
	r.Recorded = waitsOf(waited)
	for name, n := range jobs {
		r.Repositories = append(r.Repositories, Repository{Name: name, Jobs: n})
	}
	slices.SortFunc(r.Repositories, func(a, b Repository) int { return cmp.Or(b.Jobs-a.Jobs, cmp.Compare(a.Name, b.Name)) })
	r.Repositories = append(r.Repositories, Repository{}) // of the pools
	return r
}

// add adds what came of a policy.
func (r *Report) add(name string, h history.History, o *replay.Outcome) {
	total := o.Total()
	r.outcomes = append(r.outcomes, o)
	r.Columns = append(r.Columns, Column{
		Name: name, Waits: waitsOf(o.Waits), Hot: o.Came[replay.CameHot], Warm: o.Came[replay.CameWarm], Started: o.Came[replay.CameStarted],
		Cold: o.Came[replay.CameCold], Launched: o.Launched, MachineHours: total.Spent.Sum().Hours(), BusyHours: total.Spent.Busy.Hours(),
		IdleHours: total.Spent.Idle.Hours(), Dollars: total.Dollars, Cut: o.Cut, GaveUp: o.GaveUp,
	})
	waits := map[string][]time.Duration{}
	for i, j := range h.Jobs {
		of := lifecycle.Canonical(j.Repository)
		waits[of] = append(waits[of], o.Waits[i])
	}
	for i := range r.Repositories {
		of := &r.Repositories[i]
		share := o.Repositories[of.Name]
		if of.Name == "" {
			share = o.Pool
		}
		of.Under = append(of.Under, Under{Waits: waitsOf(waits[of.Name]), MachineHours: share.Spent.Sum().Hours(), Dollars: share.Dollars})
	}
	r.note(o)
}

// note adds the notes of a policy, each once.
func (r *Report) note(o *replay.Outcome) {
	notes := slices.Clone(o.Notes)
	for _, name := range o.Unpriced {
		notes = append(notes, "No price is known of "+name+": it counts as free. Write it into cost.prices of the policy.")
	}
	for _, n := range notes {
		if !slices.Contains(r.Notes, n) {
			r.Notes = append(r.Notes, n)
		}
	}
}

func waitsOf(waits []time.Duration) Waits {
	of := func(percent int) float64 { return replay.Percentile(waits, percent).Seconds() }
	return Waits{P50: of(50), P95: of(95), P99: of(99)}
}
