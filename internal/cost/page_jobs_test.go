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
var jobLooks = float64(time.Hour / lifecycle.DefaultPolicy().JobPoll)

func (m measured) jobPoolsPart(line liner) {
	m.toldPart(line)
	m.besidePart(line)
	m.looksPart(line)
	m.jobSweepsPart(line)
}

func (m measured) toldPart(line liner) {
	line(`
## Job pools

One job of a job pool on a pooled host, by GitHub's webhooks. No other job waits, and no other host works for the pool. GitHub is asked
for a registration for each job, and once for each run whether it is of a fork.

| webhook | reads | writes | SQS | read units | write units | dollars | asked of GitHub |
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
A pool is reconciled at each webhook about its jobs, and when a host is ready or pooled. That reads the record and the report of every host
at work for the pool, so a job costs more in a larger pool. Coinciding runs count once.

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
While its job runs a host is looked at every %d seconds, in case the webhook is lost. This is what a due sweep adds for so many
hosts. The first look also writes an event: %s write units, %s.

| hosts due | reads | writes | read units | write units | dollars an hour of a host |
|---|---|---|---|---|---|`, int(lifecycle.DefaultPolicy().JobPoll.Seconds()),
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
A warm job of %s costs %s: as above, with %s looks (%s) and the agent (%s).`, duration(jobTime), money(job.Dollars(prices)),
		count(jobLooks*jobTime.Hours()), money(looks.Dollars(prices)), money(agent.Dollars(prices)))
}

func (m measured) jobSweepsPart(line liner) {
	line(`
With webhooks, two more sweeps run. The jobs sweep, %d times an hour, looks for webhooks and jobs that are due and reconciles each pool. The
webhooks sweep, %d times an hour, asks GitHub for lost deliveries: two requests for each App, or five for each repository with a token.
These find nothing to do. The first pool has as many hosts at work as it may have, or none.

| job pools | hosts at work | jobs waiting | jobs sweep: reads | read units | webhooks sweep: calls | asked of GitHub | dollars an hour | dollars a month |
|---|---|---|---|---|---|---|---|---|`, dueSweeps, cloudSweeps)
	for _, r := range m.jobs.rest {
		hourly := r.jobs.Times(dueSweeps).Plus(r.webhooks.Times(cloudSweeps))
		line("| %d | %s | %s | %s | %s | %s | %s | %s | %s |", r.pools, count(float64(r.atWork)), count(float64(r.waiting)),
			count(r.jobs.Reads()), count(r.jobs.ReadUnits), count(r.webhooks.Total()), askedFor(r.asked),
			money(hourly.Dollars(prices)), money(hourly.Times(monthHours).Dollars(prices)))
	}
	line(`
The pause of a pool is read beside this, at most once in 5 seconds: $0.066 a month for each job pool, and for another pool only while it is asked for hosts.
Reconciling reads waiting jobs, a unit for each, up to twice the pool's maximum and at least 100.`)
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
