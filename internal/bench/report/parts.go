package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// part is one table of the page.
type part struct {
	// name is that of PARTS, title the heading, and about what is measured, in sentences.
	name, title, about string
	runs               []bench
	columns            []column
	// limit says what a case could reach at most, and how much of that it does; nil: there is no limit to compare with.
	limit func(f figures, name string) (limit, reached string)
	// other measures what no benchmark does; nil: runs do.
	other func(ctx context.Context, p part) (figures, error)
	// beside is a table of another shape, of benchmarks that ran already; nil: it has that of columns.
	beside *beside
}

// column is one unit of the benchmarks.
type column struct {
	title, unit string
	// scale is by what values are multiplied; 0: by one.
	scale float64
}

func (c column) times() float64 {
	if c.scale == 0 {
		return 1
	}
	return c.scale
}

// limits reports whether a benchmark is only there for the others to be compared with.
func (p part) limits(name string) bool { return strings.HasPrefix(name, "Limit") && p.name != "limits" }

func (p part) measure(ctx context.Context) (figures, error) {
	if p.beside != nil {
		return figures{}, errors.New("`make peers` measures it")
	}
	if p.other != nil {
		return p.other(ctx, p)
	}
	var all figures
	var errs []error
	for _, b := range p.runs {
		found, err := b.run(ctx)
		all.add(found)
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

const (
	limitCommit = "LimitCommits/writes=13"
	limitEcho   = "LimitEcho/callers="
	limitDynamo = "LimitDynamoDB/callers="
)

// ofCycle is the processor time of a cycle's 13 writes in a bare transaction of the driver and of two bare calls of gRPC, and how much of its own
// time a cycle needs for that.
func ofCycle(f figures, name string) (limit, reached string) {
	own, ok := f.median(name, "cpu-ms/op")
	_, callers, found := strings.Cut(name, "callers=")
	if !found {
		callers = "8"
	}
	commit, hasCommit := f.median(limitCommit, "cpu-ms/op")
	echo, hasEcho := f.median(limitEcho+callers, "cpu-ms/op")
	if !ok || !hasCommit || !hasEcho || own == 0 {
		return "-", "-"
	}
	least := commit + 2*echo
	return number(least) + " ms", fmt.Sprintf("%.0f %%", 100*least/own)
}

// ofCalls is how many cycles a second bare calls of DynamoDB Local would give, and how many of them a cycle of Remuda reaches.
func ofCalls(f figures, name string) (limit, reached string) {
	_, callers, _ := strings.Cut(name, "callers=")
	own, ok := f.median(name, "claims/s")
	calls, hasCalls := f.median(name, "calls/op")
	bare, hasBare := f.median(limitDynamo+callers, "calls/s")
	if !ok || !hasCalls || !hasBare || calls == 0 || bare == 0 {
		return "-", "-"
	}
	return number(bare/calls) + " cycles a second", fmt.Sprintf("%.0f %%", 100*own/(bare/calls))
}

// said is a limit that was published, or that follows from a setting.
func said(text string) func(figures, string) (string, string) {
	return func(figures, string) (string, string) { return text, "-" }
}

var (
	latencies = []column{{title: "p50, ms", unit: "p50-ms"}, {title: "p99, ms", unit: "p99-ms"}}
	cycles    = append([]column{{title: "cycles a second", unit: "claims/s"}, {title: "processor time, ms", unit: "cpu-ms/op"}}, latencies...)
	bareLimit = bench{pattern: "Limit(Commits|Echo)", time: "4000x", count: 3}
)

var parts = []part{
	{
		name: "limits", title: "What the parts below are made of",
		about:   "Transactions of the driver of SQLite, with the settings of the store and rows as long as a record, and calls of gRPC that do nothing.",
		runs:    []bench{bareLimit},
		columns: []column{{title: "commits a second", unit: "commits/s"}, {title: "calls a second", unit: "calls/s"}, {title: "processor time, ms", unit: "cpu-ms/op"}},
	},
	{
		name: "callers", title: "Claims and releases, by callers",
		about: "A cycle is a Provision of one waiting host and its Release, over gRPC, with hosts that answer at once. The limit is the processor time of its 13 writes\n" +
			"in one bare transaction and of two bare calls.",
		runs:    []bench{bareLimit, {pattern: "Callers/store=sqlite", time: "3000x", count: 3}},
		columns: cycles, limit: ofCycle,
	},
	{
		name: "dynamodb", title: "The same on DynamoDB Local",
		about: "DynamoDB Local is one process in Java on the same cores, so this says what Remuda waits for and not what AWS does. The limit is what as many callers\n" +
			"reach with bare calls of PutItem, divided by the calls of a cycle. AWS publishes 1,000 write units and 3,000 read units a second for a partition:\n" +
			"see [scale](scale.md).",
		runs:    []bench{{pattern: "LimitDynamoDB", time: "3000x", count: 3}, {pattern: "Callers/store=dynamodb", time: "300x", count: 3}},
		columns: append(slices.Clone(cycles), column{title: "calls", unit: "calls/op"}), limit: ofCalls,
	},
	{
		name: "growth", title: "Growth of a pool, a fleet and its history",
		about:   "Cycles of 8 callers while so many hosts wait in the pool, and with a million events in the history.",
		runs:    []bench{bareLimit, {pattern: "Pool|History", time: "2000x", count: 3}},
		columns: cycles, limit: ofCycle,
	},
	{
		name: "provision", title: "Provision with real agents",
		about: "`controld dev` with an agentd and a stand-in runner for each host: of hosts that have served a run, and of machines that are launched for it and boot in no time.\n" +
			"A clean host reads its record every 500 ms, so a claim waits for 250 ms on average, and registers. A host that listens has its labels set. Cold is a launch, and\n" +
			"Release the time until the host is in the pool.",
		runs:    []bench{{pattern: "WarmProvision", time: "1x", count: 2}, {pattern: "Cold", time: "10x", count: 3}, {pattern: "Release$", time: "1x", count: 1}},
		columns: latencies,
	},
	{
		name: "request", title: "One request for many hosts",
		about: "A Provision of so many waiting hosts, and its Release. They write several rows for each host, in a few commits: see\n" +
			"[where the time goes](#where-the-time-goes).",
		runs:    []bench{{pattern: "Request", time: "20x", count: 3}},
		columns: append([]column{{title: "commits", unit: "commits/op"}, {title: "processor time of both, ms", unit: "cpu-ms/op"}}, latencies...),
	},
	{
		name: "webhooks", title: "Webhooks",
		about: "So many signed deliveries of queued jobs within one second, and 2,000 idle hosts in a job pool. Sender and receiver share the cores. Times of claims are\n" +
			"from the first delivery on.",
		runs: []bench{{pattern: "Webhooks", time: "1x", count: 3}},
		columns: append([]column{
			{title: "taken", unit: "202s"}, {title: "no place", unit: "503s-busy"}, {title: "not written", unit: "503s-unavailable"},
			{title: "first claim, ms", unit: "first-claim-ms"}, {title: "half, ms", unit: "half-claimed-ms"}, {title: "last, ms", unit: "last-claim-ms"},
		}, latencies...),
		limit: said("all are taken"),
	},
	{
		name: "fleet", title: "Memory and processor time of controld",
		about:   "The process on a file of so many hosts whose machines are not there: see [a large fleet at once](#a-large-fleet-at-once). Its first 30 s, or until all have ended.",
		runs:    []bench{{pattern: "Fleet", time: "1x", count: 1}},
		columns: []column{{title: "most memory, MiB", unit: "peak-MiB"}, {title: "in the end, MiB", unit: "after-MiB"}, {title: "processor time, s", unit: "cpu-s"}},
		limit:   said("300 MiB"),
	},
	{
		name: "agent", title: "Agents, by state",
		about: "An agentd on DynamoDB Local in each state, watched for two minutes: the process itself, and its calls to DynamoDB with their bytes of HTTP, without TLS.\n" +
			"Clean hosts wait without a registration, resting ones read seldom, hot ones have a runner that listens. The run of a running host has no job at the moment.",
		runs: []bench{{pattern: "^BenchmarkAgent$", time: "1x", count: 1, in: "./internal/e2e/aws"}},
		columns: []column{
			{title: "memory, MiB", unit: "MiB"}, {title: "of a core, %", unit: "%core"}, {title: "calls an hour", unit: "calls/hour"}, {title: "MB an hour", unit: "MB/hour"},
		},
	},
	{
		name: "start", title: "Start and length of the programs",
		about: "From the start of `controld dev` until it is ready, its stand-in of GitHub included. Programs are without symbols, as packages have them.",
		runs:  []bench{{pattern: "Start", time: "5x", count: 3}},
		columns: append([]column{{title: "controld, MB", unit: "controld-MB"}, {title: "agentd, MB", unit: "agentd-MB"}},
			latencies...),
	},
	{
		name: "profile", title: "The five largest costs of a cycle",
		about:   "Parts of the processor time of 64 callers on SQLite, by the functions in which it is spent.",
		other:   profile,
		columns: []column{{title: "of all, %", unit: "%"}},
		limit:   explained,
	},
	{
		name: "areas", title: "Where the time goes",
		about: "Parts of the processor time of 64 callers and of requests for 200 hosts with their releases, on SQLite, each with all that it calls. They overlap: a row\n" +
			"comes from JSON within a read.",
		other:   spentBy,
		columns: []column{{title: "64 callers, %", unit: "callers-%"}, {title: "200 hosts, %", unit: "hosts-%"}},
		limit:   reason,
	},
	besideProvision, besideRelease, besideCalls, besideScaleDown,
}
