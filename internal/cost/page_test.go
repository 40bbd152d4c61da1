package cost_test

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/queue/notices"
)

// measured is all that the page is made of.
type measured struct {
	hours    []hour
	requests []served
	hot      []hot
	resting  []restStep
	stopped  []stopped
	caches   []cached
	sweeps   map[int]swept // by the number of hosts
	jobs     poolJobs
	policies policies
	keeping  keeping
}

// sizes of fleets on the page. The smaller two are measured.
var sizes = []int{100, 1000, 10000, 100000}

// How often each sweep comes in an hour, by the intervals of fleet.Timing: 5 s,
// 30 s and 5 m, and the lease at a third of its 15 s.
const (
	dueSweeps      = 720
	livenessSweeps = 120
	cloudSweeps    = 12
	leaseRenewals  = 720
)

// The example of a month.
const (
	exampleHosts = 1000
	monthHours   = 730
	busyPart     = 0.6
	jobTime      = 10 * time.Minute
)

var prices = cost.Current

// notice is a receive that finds nothing.
var notice = cost.Usage{Calls: map[call]float64{{Service: "sqs", Operation: "ReceiveMessage"}: 1}}

// page renders docs/cost.md.
func (m measured) page() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	m.intro(line)
	m.jobsPart(line)
	m.wholePart(line)
	m.hoursPart(line)
	m.requestsPart(line)
	m.hotPart(line)
	m.restingPart(line)
	m.stoppedPart(line)
	m.cachesPart(line)
	m.sweepsPart(line)
	m.jobPoolsPart(line)
	m.keepingPart(line)
	m.policiesPart(line)
	return b.String()
}

type liner = func(format string, args ...any)

func (measured) intro(line liner) {
	line(`<!-- Rendered by internal/cost; update it with: go test ./internal/cost -run TestThePage -update -->

# What it costs

What Remuda's own calls to AWS cost, beside the machines. A test counts real calls to DynamoDB Local and moto, and fails when this
page differs ([internal/cost](../internal/cost)). Request units are those that DynamoDB Local reports, and DynamoDB's minimum for a read
that finds nothing.

Prices:
`)
	of := map[string]string{
		"DynamoDB": fmt.Sprintf("%s per million read units, %s per million write units", money(prices.ReadUnits), money(prices.WriteUnits)),
		"SQS":      fmt.Sprintf("%s per million requests", money(prices.QueueRequests)),
		"EC2":      fmt.Sprintf("%s an hour of %s, to compare with", money(prices.Machine), prices.MachineType),
		"VPC": fmt.Sprintf("%s an hour of a NAT gateway and %s a gigabyte through it; %s an hour of a public address",
			money(prices.NAT), money(prices.NATTraffic), money(prices.Address)),
		"ELB":        fmt.Sprintf("%s an hour of a network load balancer", money(prices.LoadBalancer)),
		"EBS":        fmt.Sprintf("%s a gigabyte and month of gp3", money(prices.VolumeGiB)),
		"CloudTrail": fmt.Sprintf("%s per million data events", money(prices.DataEvents)),
	}
	for _, s := range prices.Sources {
		line("- %s: %s ([published](%s), quoted by %s)", s.Of, of[s.Of], s.Published, s.Quoted)
	}
	line(`
Region %s, looked up on %s; change them in [prices.go](../internal/cost/prices.go). Calls to EC2, ECS, STS, IAM and the instance
metadata are free. Not counted: storage and backups of tables, the free tier, retries, and [statements](agentd.md#the-statement-of-a-reset): no call more, and about 4 write units a release. Traffic, disks and addresses are counted in [whole bills](#whole-bills) alone, and disks for [stopped hosts](#stopped-hosts) too.`, prices.Region, prices.Date)
}

func (m measured) hoursPart(line liner) {
	line(`
## A host, by its state

What the agent calls while its host is in a state. States that end by themselves were watched for as long as they may last.

| state | watched | reads | writes | read units | write units | dollars an hour |
|---|---|---|---|---|---|---|`)
	for _, h := range m.hours {
		stay := h.perHour.Times(h.time.Hours())
		line("| %s | %s | %s | %s | %s | %s | %s |", h.name, duration(h.time), count(stay.Reads()), count(stay.Writes()),
			count(stay.ReadUnits), count(stay.WriteUnits), money(h.perHour.Dollars(prices)))
	}
	idle := m.hour(idleName).Dollars(prices)
	line(`
A pooled host costs %s an hour in calls, and %s as a machine (%s): %.1f%%.`,
		money(idle), money(prices.Machine), prices.MachineType, 100*idle/prices.Machine)
}

func (m measured) requestsPart(line liner) {
	line(`
## Claims, releases and cold starts

One Provision or Release. Batched reads wait: every 250 ms the reports of hosts that have not answered, 100 in a call. In a warm claim the
hosts answer before the second look, in a cold start %s after the launch. A release waits until all hosts are pooled.

| | hosts | calls | batched reads | read units | write units | dollars | dollars a host |
|---|---|---|---|---|---|---|---|`, duration(boot))
	row := func(name string, hosts int, u cost.Usage) {
		line("| %s | %d | %s | %s | %s | %s | %s | %s |", name, hosts, count(u.Without(batchRead).Total()),
			count(u.Calls[batchRead]), count(u.ReadUnits), count(u.WriteUnits),
			money(u.Dollars(prices)), money(u.Dollars(prices)/float64(hosts)))
	}
	for _, s := range m.requests {
		row("warm claim", s.hosts, s.claim)
	}
	for _, s := range m.requests {
		row("release", s.hosts, s.release)
	}
	for _, s := range m.requests {
		if len(s.cold.Calls) > 0 {
			row("cold start", s.hosts, s.cold)
		}
	}
	line(`
A warm claim of n hosts may take 4 + 2n + 2⌈n/10⌉ calls, and %d batched reads a second while it waits: four for the request and its
history, two for each host, and the messages in tens.`, cost.WaitingASecond)
}

// beats is how often an hour a replica says that it lives (sweeps.Presence).
const beats = 60

func (m measured) sweepsPart(line liner) {
	line(`
## Sweeps

One replica sweeps. Each of these sweeps finds nothing to do; a due sweep then takes %s calls and %s read units in any fleet. Fleets of 100
and 1,000 hosts are measured, the others computed: a scan takes 1,000 reports a call, and a batched read 100 records.

| hosts | | liveness: calls | read units | cloud: calls | of them EC2 | read units | all sweeps, dollars an hour | a host |
|---|---|---|---|---|---|---|---|---|`, count(m.at(100).rest.Total()), count(m.at(100).rest.ReadUnits))
	for _, hosts := range sizes {
		how := "computed"
		if _, ok := m.sweeps[hosts]; ok {
			how = "measured"
		}
		s := m.at(hosts)
		dollars := s.hourly().Dollars(prices)
		line("| %s | %s | %s | %s | %s | %d | %s | %s | %s |", count(float64(hosts)), how,
			count(s.liveness.Total()), count(s.liveness.ReadUnits),
			count(s.cloud.Reads()+float64(cost.CloudCalls(hosts))), cost.CloudCalls(hosts), count(s.cloud.ReadUnits),
			money(dollars), money(dollars/float64(hosts)))
	}
	line(`
An hour has %d due sweeps, %d liveness sweeps, %d cloud sweeps and %d renewals of the lease (%s calls each). The GitHub sweep adds a
batched read for each hundred registrations. With aws.notices, receives of %s come %d times an hour: %s an hour.
Each replica, sweeping or not, says once a minute that it lives, in a read and a write: %s an hour.
For [reports](cost-report.md#the-calls-own-cost) it writes its counts of calls %d times a day, in a write unit each: %s a month.
[Keeping costs](#keeping-costs) has the sweeps that sum up what hosts were used for.

A due sweep costs what is due. Here hosts are due because their idle time is over:

| hosts due | what it does | calls | of them EC2 | read units | write units | dollars |
|---|---|---|---|---|---|---|`,
		dueSweeps, livenessSweeps, cloudSweeps, leaseRenewals, count(m.at(100).lease.Total()),
		notices.ReceiveWait, cost.NoticeReceives(notices.ReceiveWait), money(notice.Times(float64(cost.NoticeReceives(notices.ReceiveWait))).Dollars(prices)),
		money(cost.Usage{ReadUnits: beats, WriteUnits: beats}.Dollars(prices)), keptADay, money(m.keeping.calls.Times(float64(keptADay)*monthDays).Dollars(prices)))
	row := func(k int, what string, u cost.Usage) {
		line("| %d | %s | %s | %s | %s | %s | %s |", k, what, count(u.Total()), count(u.Of("ec2")),
			count(u.ReadUnits), count(u.WriteUnits), money(u.Dollars(prices)))
	}
	s := m.at(100)
	row(0, "finds nothing", s.rest)
	for _, k := range dueTogether {
		row(k, "ends them", s.ends[k])
		row(k, "forgets them after EC2's confirmation", s.ended[k])
	}
}

func (m measured) jobsPart(line liner) {
	one := m.requests[0]
	job := m.hour(runningName).Times(jobTime.Hours())
	idle := m.hour(idleName).Times((5 * time.Minute).Hours())
	warm := one.claim.Plus(job).Plus(one.release)
	cold := one.cold.Plus(m.hour(createdName).Times(boot.Hours())).Plus(job).Plus(one.release)
	line(`
## A job and a month

| one host for a job of %s | dollars |
|---|---|
| warm: claim, run, release | %s |
| cold: launch, %s of boot, run, release | %s |
| 5 unused minutes in the pool | %s |
| the machine for that time (%s) | %s |`, duration(jobTime), money(warm.Dollars(prices)), duration(boot), money(cold.Dollars(prices)),
		money(idle.Dollars(prices)), prices.MachineType, money(prices.Machine*jobTime.Hours()))

	const hostHours = exampleHosts * monthHours
	jobs := hostHours * busyPart / jobTime.Hours()
	parts := []struct {
		name string
		used cost.Usage
	}{
		{"the agents of running hosts", m.hour(runningName).Times(hostHours * busyPart)},
		{"the agents of idle hosts", m.hour(idleName).Times(hostHours * (1 - busyPart))},
		{fmt.Sprintf("%s warm claims and releases", count(jobs)), one.claim.Plus(one.release).Times(jobs)},
		{"the sweeps", m.at(exampleHosts).hourly().Times(monthHours)},
	}
	line(`
A month (%d hours) of %s hosts, where %.0f%% run jobs of %s each and the others wait:

| | dollars a month |
|---|---|`, monthHours, count(exampleHosts), 100*busyPart, duration(jobTime))
	var sum cost.Usage
	for _, p := range parts {
		sum = sum.Plus(p.used)
		line("| %s | %s |", p.name, money(p.used.Dollars(prices)))
	}
	total := sum.Dollars(prices)
	machines := prices.Machine * hostHours
	line("| together | %s |", money(total))
	line("| the machines (%s) | %s |", prices.MachineType, money(machines))
	line(`
That is %s a job, and %.1f%% of what the machines cost.`, money(total/jobs), 100*total/machines)
}

// hour is what an hour of a state uses.
func (m measured) hour(name string) cost.Usage {
	for _, h := range m.hours {
		if h.name == name {
			return h.perHour
		}
	}
	panic("no state " + name)
}

// at are the sweeps of a fleet of so many hosts: as measured, or computed from
// the largest that was.
func (m measured) at(hosts int) swept {
	if s, ok := m.sweeps[hosts]; ok {
		return s
	}
	const largest = 1000
	s := m.sweeps[largest]
	times := float64(hosts) / largest
	grown := func(u cost.Usage, calls int) cost.Usage {
		return cost.Usage{ReadUnits: u.ReadUnits * times, Calls: map[call]float64{batchRead: float64(calls)}}
	}
	s.hosts = hosts
	s.liveness = grown(s.liveness, cost.LivenessCalls(hosts))
	s.cloud = grown(s.cloud, cost.CloudReads(hosts))
	return s
}

// hourly is what all sweeps use in an hour.
func (s swept) hourly() cost.Usage {
	return s.rest.Times(dueSweeps).Plus(s.liveness.Times(livenessSweeps)).Plus(s.cloud.Times(cloudSweeps)).Plus(s.lease.Times(leaseRenewals))
}

// count is a number with its thousands apart, and a half if it has one.
func count(n float64) string {
	whole := fmt.Sprint(int64(n))
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if n != math.Trunc(n) {
		whole += strings.TrimPrefix(fmt.Sprintf("%.1f", n-math.Trunc(n)), "0")
	}
	return whole
}

// money is dollars, in cents from one dollar on, and with three digits below.
func money(dollars float64) string {
	if dollars == 0 {
		return "$0"
	}
	if dollars >= 1 {
		cents := math.Round(dollars * 100)
		return fmt.Sprintf("$%s.%02d", count(math.Trunc(cents/100)), int64(cents)%100)
	}
	digits := 2 - int(math.Floor(math.Log10(dollars)))
	return fmt.Sprintf("$%.*f", digits, dollars)
}

// duration is what a person says.
func duration(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d seconds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d minutes", int(d.Minutes()))
	}
	return "an hour"
}
