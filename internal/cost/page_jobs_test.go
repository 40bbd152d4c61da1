package cost_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// jobLooks is how often in an hour a running job-scoped host is looked at, at
// most: a due sweep finds it up to 5 s later.
var jobLooks = float64(time.Hour / lifecycle.DefaultPolicy().JobLook)

func (m measured) jobPoolsPart(line liner) {
	m.toldPart(line)
	m.besidePart(line)
	m.looksPart(line)
	m.jobSweepsPart(line)
}

func (m measured) toldPart(line liner) {
	line(`
## Job pools

One job of a job pool, on a host that waits in the pool: GitHub's webhooks are taken and worked on, and the host answers between the
first look and the second of whoever waits for it. No other job waits, and no other host of the pool is at work. The last column is what
GitHub is asked for: a registration for each job, and for each run whether it is of a fork, unless the pool takes those.

| what GitHub tells | reads | writes | SQS | read units | write units | dollars | asked of GitHub |
|---|---|---|---|---|---|---|---|`)
	for _, w := range m.jobs.told[0] {
		line("| %s | %s | %s | %s | %s | %s | %s | %s |", w.what, count(w.used.Reads()), count(w.used.Writes()), count(w.used.Of("sqs")),
			count(w.used.ReadUnits), count(w.used.WriteUnits), money(w.used.Dollars(prices)), askedFor(w.asked))
	}
	job := together(m.jobs.told[0])
	line("| together | %s | %s | %s | %s | %s | %s | |", count(job.Reads()), count(job.Writes()), count(job.Of("sqs")),
		count(job.ReadUnits), count(job.WriteUnits), money(job.Dollars(prices)))
}

// besidePart: each balance reads the hosts of its pool.
func (m measured) besidePart(line liner) {
	line(`
A pool is balanced at each webhook about a job of it, when its host is ready and when that is in the pool again. Each time the record
and the report of every host at work for the pool are read, so a job costs more in a larger one, as long as its balances do not
coincide with those of others, which are then one.

| other hosts at work for the pool | reads | writes | read units | write units | dollars a job |
|---|---|---|---|---|---|`)
	for _, others := range othersAtWork {
		job := together(m.jobs.told[others])
		line("| %s | %s | %s | %s | %s | %s |", count(float64(others)), count(job.Reads()), count(job.Writes()),
			count(job.ReadUnits), count(job.WriteUnits), money(job.Dollars(prices)))
	}
}

func (m measured) looksPart(line liner) {
	line(`
While its job runs a host is looked at every %d seconds, in case nobody tells that the job is over. These are due sweeps that find so
many such hosts due, without what a sweep that finds nothing uses: for each the record, the report and the request are read, and the
record is written with its next look. The first of them also tells the history that the host runs a job, which is not told again: %s write
units, %s.

| hosts due | reads | writes | read units | write units | dollars an hour of a host |
|---|---|---|---|---|---|`, int(lifecycle.DefaultPolicy().JobLook.Seconds()),
		count(m.jobs.news.WriteUnits), money(m.jobs.news.Dollars(prices)))
	for _, k := range lookedAt {
		u := m.jobs.looks[k]
		line("| %d | %s | %s | %s | %s | %s |", k, count(u.Reads()), count(u.Writes()), count(u.ReadUnits), count(u.WriteUnits),
			money(u.Times(jobLooks/float64(k)).Dollars(prices)))
	}
	agent := m.hour(runningName).Times(jobTime.Hours())
	looks := m.jobs.looks[1].Times(jobLooks * jobTime.Hours())
	looks = looks.Plus(m.jobs.news)
	job := together(m.jobs.told[0]).Plus(looks).Plus(agent)
	line(`
A warm job of %s then costs %s: as above, with %s looks (%s) and its host's agent (%s).`, duration(jobTime), money(job.Dollars(prices)),
		count(jobLooks*jobTime.Hours()), money(looks.Dollars(prices)), money(agent.Dollars(prices)))
}

func (m measured) jobSweepsPart(line liner) {
	line(`
Where webhooks are configured two more sweeps run beside those above. The jobs sweep, %d times an hour, looks for webhooks and jobs
that are due and balances each pool; the webhooks sweep, %d times an hour, asks GitHub what it could not deliver: one request for each
App, or with a personal access token for the waiting jobs of each repository. These find nothing to do. The first pool has as many
hosts at work as it may have, or none.

| job pools | hosts at work | jobs waiting | jobs sweep: reads | read units | webhooks sweep: calls | asked of GitHub | dollars an hour | dollars a month |
|---|---|---|---|---|---|---|---|---|`, dueSweeps, cloudSweeps)
	for _, r := range m.jobs.rest {
		hourly := r.jobs.Times(dueSweeps).Plus(r.webhooks.Times(cloudSweeps))
		line("| %d | %s | %s | %s | %s | %s | %s | %s | %s |", r.pools, count(float64(r.atWork)), count(float64(r.waiting)),
			count(r.jobs.Reads()), count(r.jobs.ReadUnits), count(r.webhooks.Total()), askedFor(r.asked),
			money(hourly.Dollars(prices)), money(hourly.Times(monthHours).Dollars(prices)))
	}
	line(`
A balance reads the jobs that wait, a unit for each, until it has twice the pool's maximum and at least 100.`)
}

func together(all []told) (sum cost.Usage) {
	for _, w := range all {
		sum = sum.Plus(w.used)
	}
	return sum
}

// askedFor says what GitHub was asked for, and how often.
func askedFor(calls map[string]int) string {
	var list []string
	for _, what := range slices.Sorted(maps.Keys(calls)) {
		list = append(list, fmt.Sprintf("%d %s", calls[what], what))
	}
	return strings.Join(list, ", ")
}
