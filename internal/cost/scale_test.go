package cost_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
)

const scalePath = "../../docs/scale.md"

// scaleHosts is the fleet on paper.
const scaleHosts = 1_000_000

// What others allow. Where a quota can be raised, it is the default.
const (
	partitionWrites = 1000   // write units a second of one partition of DynamoDB ("Best practices for designing and using partition keys")
	tableUnits      = 40_000 // read units, and write units, a second of one table ("Quotas in Amazon DynamoDB")
	launched        = 2      // machines a second ("Request throttling for the Amazon EC2 API")
	terminated      = 20     // likewise
	described       = 20     // calls a second, likewise
	registered      = 10_000 // an hour for one credential of GitHub; see docs/design.md#github-and-ec2-facts
	addresses       = 64_000 // of one VPC ("Network Address Usage for your VPC"); 256,000 at most
)

// callTime is how long a call to DynamoDB is taken to last where calls come one after the other.
const callTime = 8 * time.Millisecond

// bound is something that a fleet has only so much of.
type bound struct {
	what, of, unit string
	perHost        float64 // of the unit, a second
	limit          float64
	then           string
}

// hosts is the fleet that reaches the bound.
func (b bound) hosts() float64 { return b.limit / b.perHost }

// bounds are those of a fleet whose hosts work as in the example of a month.
func (m measured) bounds() []bound {
	jobs := busyPart / jobTime.Seconds() // of a host, a second
	one := m.requests[0].written
	busy, idle := m.hour(runningName).Times(1.0/3600), m.hour(idleName).Times(1.0/3600)
	agents := busy.Times(busyPart).Plus(idle.Times(1 - busyPart))
	list := []bound{
		{"registrations of runners", "a credential of GitHub", "", jobs, registered / 3600.0, "more Apps, or jobs of many owners"},
		{"launches, one job in 5", "an account and region", "machines", jobs / startedOfFive, launched, "ask AWS; pools that keep hosts for longer; more accounts"},
		{"ends, one job in 5", "an account and region", "machines", jobs / startedOfFive, terminated, "ask AWS; more accounts"},
		{"addresses", "a VPC", "", 1, addresses, "ask AWS for 256,000; more VPCs"},
		{"reads of agents", "the table of records", "units", agents.ReadUnits, tableUnits, "ask AWS; [rest](performance.md#hosts-that-rest)"},
		{"reports of agents", "the table of reports", "units", agents.WriteUnits, tableUnits, "ask AWS"},
		{"writes of records", "the table of records", "units", jobs * one["instances"].units, tableUnits, "ask AWS"},
		{"deadlines of records", "the index by-due", "units", jobs * 2 * one["instances"].rows, dynamo.Shards * partitionWrites, "another fleet"},
		{"the history", "one partition", "units", jobs * one["events"].units, partitionWrites, "another fleet"},
		{"appends to the history", "a replica, one after the other", "calls", jobs * one["events"].rows, float64(time.Second / callTime), "another fleet"},
		{"the idle hosts of one trust key", "the index by-pool", "units", jobs * 2, partitionWrites, "another pool"},
		{"the liveness sweep", "30 seconds", "calls", float64(cost.LivenessCalls(scaleHosts)) / scaleHosts / 30, float64(time.Second / callTime), "another fleet"},
		{"reads of the cloud sweep", "5 minutes", "calls", float64(cost.CloudReads(scaleHosts)) / scaleHosts / 300, float64(time.Second / callTime), "another fleet"},
		{"lists of the cloud sweep", "an account and region", "calls", float64(cost.CloudCalls(scaleHosts)) / scaleHosts / 300, described, "ask AWS"},
	}
	slices.SortStableFunc(list, func(a, b bound) int { return cmp.Compare(a.hosts(), b.hosts()) })
	return list
}

// startedOfFive: one job in five starts a machine, as in whole bills.
const startedOfFive = 5

// fleetSize is a size that a fleet should not exceed: a round number below all bounds of one fleet that no quota raises.
func fleetSize(bounds []bound) int {
	least := math.Inf(1)
	for _, b := range bounds {
		if b.then == "another fleet" {
			least = min(least, b.hosts())
		}
	}
	return int(least/10_000) * 10_000
}

// scalePage renders docs/scale.md.
func (m measured) scalePage() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	bounds := m.bounds()
	size := fleetSize(bounds)
	fleets := (scaleHosts + size - 1) / size
	line(`<!-- Rendered by internal/cost; update it with: go test ./internal/cost -run TestThePage -update -->

# A million hosts on paper

What breaks first when a fleet grows, at which size, and what to do before. None of it was run: the sums are computed from the calls and units
that a test counts on DynamoDB Local and moto, as in [what it costs](cost.md), and from the limits that AWS and GitHub publish.

%s%% of the hosts run jobs of %d minutes each, the others wait: %s jobs a second in a fleet of %s. One job in %d starts a machine.

## What breaks, in order

| at so many hosts | what | of | a second, at %s | limit a second | then |
|--:|---|---|--:|--:|---|`, count(100*busyPart), int(jobTime.Minutes()), count(scaleHosts*busyPart/jobTime.Seconds()), count(scaleHosts), startedOfFive, count(scaleHosts))
	for _, x := range bounds {
		perSecond, limit := count(math.Round(x.perHost*scaleHosts)), count(math.Round(100*x.limit)/100)
		if x.what == "addresses" {
			perSecond, limit = perSecond+" in all", limit+" in all"
		}
		line("| %s | %s | %s | %s | %s | %s |", count(math.Floor(x.hosts()/100)*100), x.what, x.of, strings.TrimSpace(perSecond+" "+x.unit), limit, x.then)
	}
	line(`
- **GitHub comes first.** A host registers for each run, whatever the runner pool. One credential lasts for %s hosts at this pace. Jobs of ten times the
  length last for ten times the hosts. [Hot hosts](../docs/design.md#hot-hosts) register as often, only earlier.
- **EC2 comes next**, with what it launches. A pool that keeps its hosts for longer launches less.
- **Quotas of tables** are defaults, and AWS raises them.
- **What no quota raises** is one partition of DynamoDB, %s write units a second ([source](https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html)), and
  what one replica does one after the other, at %s a call. The index by-due has %d partitions. A write of a record moves it there: 2 units.
- **A claim and its release** of one host write %s rows of records with %s units, and %s items of history with %s.

Other sources: [quotas of DynamoDB](https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html),
[throttling of EC2](https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html),
[addresses of a VPC](https://docs.aws.amazon.com/vpc/latest/userguide/network-address-usage.html).

## More fleets

A fleet of at most %s hosts is below all bounds that no quota raises. A million hosts are then %d fleets. A fleet is a
[`+"`aws.prefix`"+`](configuration.md#aws): it has tables, queues, launch templates and controlds of its own, and does not wait for another one. Split by the owners of
repositories, so that a run finds its hosts in one fleet, and give each fleet:

1. a prefix of its own, such as `+"`remuda-03`"+`, that does not begin with another one and a `+"`-`"+`;
2. a GitHub App, or more, for its owners;
3. an account or a region, so that launches have buckets of their own, and VPCs of at most %s addresses;
4. controlds in at least two zones.

Do this when the fleet has half as many hosts. Pools move one by one: add them to the new fleet, change the workflows, and [drain](operations.md) the old ones.

## What it costs
`, count(math.Floor(bounds[0].hosts()/100)*100), count(partitionWrites), callTime, dynamo.Shards,
		count(m.requests[0].written["instances"].rows), count(m.requests[0].written["instances"].units),
		count(m.requests[0].written["events"].rows), count(m.requests[0].written["events"].units), count(float64(size)), fleets, count(addresses))
	m.scaleBill(line, fleets)
	return b.String()
}

// scaleBill is the month of all fleets.
func (m measured) scaleBill(line liner, fleets int) {
	hosts, hours := float64(scaleHosts), float64(monthHours)
	busy := m.hour(runningName).Times(busyPart * hosts * hours).Dollars(prices)
	idle := m.hour(idleName).Times((1 - busyPart) * hosts * hours).Dollars(prices)
	one := m.requests[0]
	served := hosts * busyPart * hours * float64(time.Hour/jobTime)
	claims := one.claim.Plus(one.release).Times(served).Dollars(prices)
	sweeps := m.at(scaleHosts / fleets).hourly().Times(hours * float64(fleets)).Dollars(prices)
	machines := prices.Machine * hosts * hours
	line("| a month of %d fleets | dollars |\n|---|--:|", fleets)
	for _, row := range []struct {
		what    string
		dollars float64
	}{
		{"the agents of running hosts", busy}, {"the agents of idle hosts", idle},
		{count(served) + " warm claims and releases", claims}, {"the sweeps", sweeps},
		{"together", busy + idle + claims + sweeps}, {"the machines (" + prices.MachineType + ")", machines},
	} {
		line("| %s | %s |", row.what, money(row.dollars))
	}
	line("\nThat is %.1f%% of what the machines cost, as in a fleet of a thousand.", 100*(busy+idle+claims+sweeps)/machines)
}
