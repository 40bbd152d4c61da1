package replay

import (
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

// How the host of a job came.
const (
	CameHot     = "hot"     // its runner listened already
	CameWarm    = "warm"    // it waited in the pool
	CameStarted = "started" // it was stopped, and its machine was started
	CameCold    = "cold"    // it was launched for the job
)

// Came lists the ways, the fastest first.
var Came = []string{CameHot, CameWarm, CameStarted, CameCold}

// Outcome is what came of a replay.
type Outcome struct {
	// Begin and End are those of the account: a little before the first job, and the end of the last one.
	Begin, End time.Time
	// Waits are how long each job waited for its host, in the order of the history; of a job that got none, until GitHub gave it up.
	Waits []time.Duration
	// Came counts the jobs by how their hosts came.
	Came map[string]int
	// Launched are the machines that were launched.
	Launched int
	// Cut are the jobs that ran for longer than their pool lets them, and GaveUp those that waited for a day.
	Cut, GaveUp int
	// Repositories are what each repository used, by its name in small letters. Pool is what the pools used: the time of hosts that no job had.
	Repositories map[string]Share
	Pool         Share
	// Series is what there was over time.
	Series Series
	// Notes are sentences about what of the policy is not played. Unpriced are the instance types without a price: they count as free.
	Notes, Unpriced []string
}

// Share is what something used.
type Share struct {
	Jobs    int
	Spent   Spent
	Dollars float64
}

func (s Share) plus(o Share) Share {
	return Share{s.Jobs + o.Jobs, s.Spent.plus(o.Spent), s.Dollars + o.Dollars}
}

// Spent are the parts of the time of machines, as meter.Times has them.
type Spent struct{ Idle, Boot, Busy, Clean Millis }

// Millis is a time in milliseconds. A time.Duration ends at 292 years, and a million jobs of three hours have more.
type Millis int64

// Hours are as many, and parts of one.
func (m Millis) Hours() float64 {
	const hour = Millis(time.Hour / time.Millisecond)
	return float64(m/hour) + float64(m%hour)/float64(hour)
}

func spentOf(t meter.Times) Spent {
	of := func(d time.Duration) Millis { return Millis(d.Milliseconds()) }
	return Spent{Idle: of(t.Idle), Boot: of(t.Boot), Busy: of(t.Busy), Clean: of(t.Clean)}
}

func (s Spent) plus(o Spent) Spent {
	return Spent{s.Idle + o.Idle, s.Boot + o.Boot, s.Busy + o.Busy, s.Clean + o.Clean}
}

// Sum is all of it.
func (s Spent) Sum() Millis { return s.Idle + s.Boot + s.Busy + s.Clean }

// Total is all that was used.
func (o *Outcome) Total() Share {
	total := o.Pool
	for _, name := range slices.Sorted(maps.Keys(o.Repositories)) {
		total = total.plus(o.Repositories[name])
	}
	return total
}

// Percentile is how long so many of a hundred jobs waited at most: the smallest wait that at least so many did not exceed.
func Percentile(waits []time.Duration, percent int) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(waits))
	return sorted[max(1, (len(sorted)*percent+99)/100)-1]
}

// account adds up what happens.
type account struct {
	begin        time.Time
	prices       price.List
	waits        []time.Duration
	came         map[string]int
	cut, gone    int
	repositories map[string]Share
	pool         Share
	series       *Series
	notes        []string
	rough        bool // a price is only about what is paid
}

func newAccount(begin time.Time, jobs []history.Job, prices price.List) *account {
	last := begin
	for _, j := range jobs {
		if j.Completed.After(last) {
			last = j.Completed
		}
	}
	return &account{
		begin: begin, prices: prices, waits: make([]time.Duration, len(jobs)), came: map[string]int{}, repositories: map[string]Share{},
		series: newSeries(begin, last),
	}
}

func (a *account) served(s *serving, came string, now time.Time) {
	a.waits[s.index] = now.Sub(s.job.Created)
	a.came[came]++
	name := lifecycle.Canonical(s.job.Repository) // as the fleet has it
	share := a.repositories[name]
	share.Jobs++
	a.repositories[name] = share
}

func (a *account) gaveUp(s *serving) {
	a.waits[s.index] = queuedAtMost
	a.gone++
}

// metered adds a part of a host's life that has ended.
func (a *account) metered(r meter.Reading) { a.add(r.Entries()) }

// living adds what a host was used for that lives at the end.
func (a *account) living(r lifecycle.Record, now time.Time) {
	for _, c := range r.Cycles() {
		a.add(c.Entries(r.Metered(), now))
	}
}

func (a *account) add(entries []meter.Entry) {
	for _, e := range entries {
		dollars, rough, _ := a.prices.Of(e.InstanceType, e.UsageClass)
		a.rough = a.rough || rough
		used := Share{Spent: spentOf(e.Times), Dollars: dollars * e.Times.Sum().Hours()}
		if e.Repository == "" {
			a.pool = a.pool.plus(used)
			continue
		}
		a.repositories[e.Repository] = a.repositories[e.Repository].plus(used)
	}
}

// outcome closes the account at a time.
func (a *account) outcome(end time.Time, c *cloud) *Outcome {
	a.series.close(end)
	if a.rough {
		a.notes = append(a.notes, "Some prices are only about right: spot as a share of on-demand, or those of another region. Write yours into cost.prices of the policy.")
	}
	return &Outcome{
		Begin: a.begin, End: end, Waits: a.waits, Came: a.came, Launched: c.launched, Cut: a.cut, GaveUp: a.gone,
		Repositories: a.repositories, Pool: a.pool, Series: *a.series, Notes: a.notes, Unpriced: slices.Sorted(maps.Keys(c.unpriced)),
	}
}
