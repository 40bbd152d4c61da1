package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// beside is a table of Remuda and another tool at the same work. scripts/peers measures it.
type beside struct {
	// only is the benchmark, by its name in ONLY.
	only   string
	titles []string
	cases  func(figures) []string
	cells  func(f figures, name string) []string
}

func (b beside) head() string {
	return "| " + strings.Join(b.titles, " | ") + " |\n|:--|" + strings.Repeat("--:|", len(b.titles)-1) + "\n"
}

// The units of a benchmark of peers are SIDE-WORK-s, -calls and -host-calls, and SIDE-WORK:OPERATION.
const (
	ours   = "remuda"
	theirs = "peer"
)

var (
	besideProvision = part{
		name: "beside", title: "A run gets its hosts",
		about: "Warm hosts have served a run before and wait in the pool; cold ones are launched and boot in no time. The time is that of Provision, and of the\n" +
			"action's `provision`. Calls are to AWS: of controld and of the action, and of the hosts while it lasts.",
		beside: &beside{only: "Warm|Cold", titles: comparedTitles, cases: ranBy("PeersWarm/", "PeersCold/"), cells: compared("provision")},
	}
	besideRelease = part{
		name: "beside-release", title: "A run gives its hosts back",
		about:  "Until all of them are in the pool again: Release that waits, and the action's `release`.",
		beside: &beside{only: "Warm|Cold", titles: comparedTitles, cases: ranBy("PeersWarm/"), cells: compared("release")},
	}
	besideCalls = part{
		name: "beside-calls", title: "The calls of ten hosts",
		about: "The calls of controld and of the action, with 5 ms each: Remuda's, and behind the stroke those of EC2 Runner Pool.",
		beside: &beside{
			only: "Warm|Cold", titles: []string{"operation", "warm", "cold", "release"}, cases: operations, cells: callsOfTen,
		},
	}
	besideScaleDown = part{
		name: "beside-scale-down", title: "A hundred idle runners end",
		about: "All are of one repository, registered, and idle for long enough. Remuda ends them by refreshes, which sweep everything, and\n" +
			"terraform-aws-github-runner by one call of its function. Each call to AWS takes 5 ms.",
		beside: &beside{
			only: "ScaleDown", titles: []string{"what it takes", "Remuda", "terraform-aws-github-runner"}, cases: scaleDownRows, cells: scaleDownCells,
		},
	}
)

var comparedTitles = []string{
	"work", "a call takes", "its hosts read every", "Remuda, s", "the pool, s", "times as long", "calls", "of the pool", "of hosts", "of its hosts",
}

// ranBy are the benchmarks with these beginnings.
func ranBy(beginnings ...string) func(figures) []string {
	return func(f figures) []string {
		var names []string
		for _, beginning := range beginnings {
			for _, name := range f.names {
				if strings.HasPrefix(name, beginning) {
					names = append(names, name)
				}
			}
		}
		return names
	}
}

// compared are the cells of a piece of work.
func compared(work string) func(figures, string) []string {
	return func(f figures, name string) []string {
		of := parameters(name)
		kind := "cold"
		if strings.HasPrefix(name, "PeersWarm/") {
			kind = "warm"
		}
		mine, other := ours+"-"+work, theirs+"-"+work
		return []string{
			kind + ", " + of["hosts"], of["delay"], of["poll"], cell(f, name, column{unit: mine + "-s"}), cell(f, name, column{unit: other + "-s"}), times(f, name, other+"-s", mine+"-s"),
			whole(f, name, mine+"-calls"), whole(f, name, other+"-calls"), whole(f, name, mine+"-host-calls"), whole(f, name, other+"-host-calls"),
		}
	}
}

// parameters are those in the name of a benchmark: Peers/hosts=1/delay=5ms.
func parameters(name string) map[string]string {
	all := map[string]string{}
	for _, element := range strings.Split(name, "/") {
		if key, value, ok := strings.Cut(element, "="); ok {
			all[key] = value
		}
	}
	return all
}

// whole is the median of a count.
func whole(f figures, name, unit string) string {
	v, ok := f.median(name, unit)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.0f", v)
}

func times(f figures, name, unit, by string) string {
	a, hasA := f.median(name, unit)
	b, hasB := f.median(name, by)
	if !hasA || !hasB || b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", a/b)
}

// ofTen are the columns of the calls of ten hosts: the benchmark, and its work.
var ofTen = [][2]string{
	{"PeersWarm/hosts=10/delay=5ms/poll=1s", "provision"}, {"PeersCold/hosts=10/delay=5ms/poll=1s", "provision"}, {"PeersWarm/hosts=10/delay=5ms/poll=1s", "release"},
}

// operations are those that either side called in one of the columns.
func operations(f figures) []string {
	found := map[string]bool{}
	for _, column := range ofTen {
		for unit := range f.values[column[0]] {
			work, operation, ok := strings.Cut(unit, ":")
			if ok && (work == ours+"-"+column[1] || work == theirs+"-"+column[1]) {
				found[operation] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(found)), func(operation string) bool {
		return !slices.ContainsFunc(callsOfTen(f, operation)[1:], func(cell string) bool { return cell != "0 / 0" })
	})
}

func callsOfTen(f figures, operation string) []string {
	cells := []string{"`" + strings.ReplaceAll(operation, ":", " ") + "`"}
	for _, column := range ofTen {
		count := func(side string) string { return calls(f, column[0], side+"-"+column[1], operation) }
		cells = append(cells, count(ours)+" / "+count(theirs))
	}
	return cells
}

// calls is the median of an operation's calls. A run without any has not printed it.
func calls(f figures, name, work, operation string) string {
	counts := slices.Clone(f.values[name][work+":"+operation])
	for len(counts) < len(f.values[name][work+"-calls"]) {
		counts = append(counts, 0)
	}
	if len(counts) == 0 {
		return "0"
	}
	slices.Sort(counts)
	return fmt.Sprintf("%.0f", counts[len(counts)/2])
}

const scaleDown = "scale-down"

// scaleDownRows are the time, the sums, and each operation that either side called.
func scaleDownRows(f figures) []string {
	name := scaleDownCase(f)
	if name == "" {
		return nil
	}
	found := map[string]bool{}
	for unit := range f.values[name] {
		if work, operation, ok := strings.Cut(unit, ":"); ok && (work == ours+"-"+scaleDown || work == theirs+"-"+scaleDown) {
			found[operation] = true
		}
	}
	return append([]string{"-s", "-github-calls", "-calls"}, slices.Sorted(maps.Keys(found))...)
}

func scaleDownCase(f figures) string {
	for _, name := range ranBy("PeersScaleDown/")(f) {
		return name
	}
	return ""
}

var scaleDownTitles = map[string]string{"-s": "time, s", "-github-calls": "calls to GitHub", "-calls": "calls to AWS"}

func scaleDownCells(f figures, row string) []string {
	name := scaleDownCase(f)
	mine, other := ours+"-"+scaleDown, theirs+"-"+scaleDown
	title, isSum := scaleDownTitles[row]
	switch {
	case row == "-s":
		return []string{title, cell(f, name, column{unit: mine + row}), cell(f, name, column{unit: other + row})}
	case isSum:
		return []string{title, whole(f, name, mine+row), whole(f, name, other+row)}
	}
	return []string{"`" + strings.ReplaceAll(row, ":", " ") + "`", calls(f, name, mine, row), calls(f, name, other, row)}
}

// aligned is the table of a part, for a terminal.
func aligned(text string) string {
	var s strings.Builder
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', tabwriter.AlignRight)
	for line := range strings.Lines(text) {
		row, ok := strings.CutPrefix(strings.TrimSpace(line), "| ")
		if ok {
			fmt.Fprintln(w, strings.ReplaceAll(strings.TrimSuffix(row, "|"), " | ", "\t")+"\t")
		}
	}
	_ = w.Flush() // a builder takes everything
	return s.String()
}
