package view

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/table"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// costKind is a kind of rows of a report, as people write it, with the columns that name a row and what it has in them.
type costKind struct {
	name string
	by   remudav1.CostBy
	head []string
	of   func(*remudav1.Cost) []string
}

var costKinds = []costKind{
	{"repository", remudav1.CostBy_COST_BY_REPOSITORY, []string{"REPOSITORY"}, func(c *remudav1.Cost) []string { return []string{user(c.GetRepository())} }},
	{"owner", remudav1.CostBy_COST_BY_OWNER, []string{"OWNER"}, func(c *remudav1.Cost) []string { return []string{user(c.GetRepository())} }},
	{"workflow", remudav1.CostBy_COST_BY_WORKFLOW, []string{"REPOSITORY", "WORKFLOW"}, func(c *remudav1.Cost) []string {
		return []string{user(c.GetRepository()), c.GetWorkflow()}
	}},
	{"run", remudav1.CostBy_COST_BY_RUN, []string{"RUN", "ATTEMPT", "WORKFLOW"}, runNames},
	{"job", remudav1.CostBy_COST_BY_JOB, []string{"RUN", "ATTEMPT", "WORKFLOW", "JOB", "JOB ID"}, func(c *remudav1.Cost) []string {
		if c.GetJobId() == 0 {
			return append(runNames(c), "", "")
		}
		return append(runNames(c), c.GetJobName(), strconv.FormatInt(c.GetJobId(), 10))
	}},
	{"pool", remudav1.CostBy_COST_BY_POOL, []string{"POOL"}, func(c *remudav1.Cost) []string { return []string{c.GetPool()} }},
	{"day", remudav1.CostBy_COST_BY_DAY, []string{"DAY"}, func(c *remudav1.Cost) []string { return []string{c.GetDay()} }},
	{"type", remudav1.CostBy_COST_BY_INSTANCE_TYPE, []string{"TYPE", "USAGE"}, func(c *remudav1.Cost) []string {
		return []string{c.GetInstanceType(), c.GetUsageClass()}
	}},
}

func runNames(c *remudav1.Cost) []string {
	if c.GetRepository() == "" {
		return []string{user(""), "", ""}
	}
	if c.GetRunId() == "" { // of a host whose job is not known
		return []string{c.GetRepository() + "/-", "", c.GetWorkflow()}
	}
	return []string{c.GetRepository() + "/" + c.GetRunId(), strconv.Itoa(int(c.GetRunAttempt())), c.GetWorkflow()}
}

// CostKinds are the names of the kinds of rows.
func CostKinds() []string {
	var names []string
	for _, k := range costKinds {
		names = append(names, k.name)
	}
	return names
}

// CostBy is the kind of that name; false: there is none.
func CostBy(name string) (remudav1.CostBy, bool) {
	i := slices.IndexFunc(costKinds, func(k costKind) bool { return k.name == name })
	if i < 0 {
		return 0, false
	}
	return costKinds[i].by, true
}

// user is who used hosts: hosts that no run had are the pool's.
func user(repository string) string {
	if repository == "" {
		return "(the pool)"
	}
	return repository
}

// costTimes are the columns of times, in the order of a host's life.
var costTimes = []string{"BOOT", "BUSY", "CLEAN", "IDLE"}

func times(c *remudav1.Cost) []time.Duration {
	return []time.Duration{c.GetBoot().AsDuration(), c.GetBusy().AsDuration(), c.GetClean().AsDuration(), c.GetIdle().AsDuration()}
}

// Costs is a row for each of a kind, and the sum of all. HOSTS are those that runs got.
func Costs(by remudav1.CostBy, report *remudav1.GetCostResponse) table.Table {
	names := costKinds[max(0, slices.IndexFunc(costKinds, func(k costKind) bool { return k.by == by }))]
	t := costTable{calls: len(report.GetCalls()) > 0}
	t.Head = append(append(append([]string{}, names.head...), "DOLLARS", "HOSTS"), costTimes...)
	if t.calls {
		t.Head = append(t.Head, "CALLS")
	}
	if by == remudav1.CostBy_COST_BY_DAY {
		for _, d := range days(report) {
			t.add([]string{d.day}, d.hosts, amount(d.calls), table.Plain)
		}
	} else {
		for _, c := range report.GetRows() {
			t.add(names.of(c), c, "", table.Plain)
		}
	}
	named := func(name string) []string { return append([]string{name}, make([]string, len(names.head)-1)...) }
	for _, c := range callLines(report) {
		t.add(named(c.name), nil, amount(c.dollars), table.Plain)
	}
	if len(t.Rows) > 0 {
		t.add(named("total"), report.GetTotal(), amount(report.GetCallDollars()), table.Strong)
	}
	return t.Table
}

// costTable is a table of costs; with calls it has a column of what calls to AWS cost.
type costTable struct {
	table.Table
	calls bool
}

// add adds a row, of calls alone if no hosts are given.
func (t *costTable) add(name []string, c *remudav1.Cost, called string, style table.Style) {
	row := table.Row(name...)
	switch {
	case c == nil:
		row = append(row, make([]table.Cell, 2+len(costTimes))...)
	default:
		row = append(row, table.Row(dollars(c), strconv.FormatInt(c.GetHosts(), 10))...)
		for _, d := range times(c) {
			row = append(row, table.Cell{Text: Span(d)})
		}
	}
	if t.calls {
		row = append(row, table.Cell{Text: called})
	}
	for i := range row {
		row[i].Style = style
	}
	t.Rows = append(t.Rows, row)
}

// dollars is an amount, and "-" where nothing has a price.
func dollars(c *remudav1.Cost) string {
	var all time.Duration
	for _, d := range times(c) {
		all += d
	}
	if all > 0 && c.GetUnpriced().AsDuration() >= all {
		return "-"
	}
	return amount(c.GetDollars())
}

func amount(dollars float64) string {
	if dollars < 1 {
		return fmt.Sprintf("%.4f", dollars)
	}
	return fmt.Sprintf("%.2f", dollars)
}

// CostNotes says what a reader must know of a report.
func CostNotes(report *remudav1.GetCostResponse) []string {
	var notes []string
	if n := report.GetMoreRows(); n > 0 {
		notes = append(notes, plural.Of(n, "more row is", "more rows are")+" in the total; --rows shows more.")
	}
	if types := report.GetUnpricedTypes(); len(types) > 0 {
		notes = append(notes, fmt.Sprintf("No price is known of %s: set cost.prices in controld's configuration.", some(types)))
	}
	if report.GetRough() {
		notes = append(notes, "Some prices are rough: a share of on-demand for spot, or those of us-east-1. Set cost.prices in controld's configuration.")
	}
	return append(notes, callNotes(report)...)
}

// some is a list without most of its entries, if it is long.
func some(list []string) string {
	const most = 5
	text := ""
	for i, one := range list {
		switch {
		case i == most:
			return text + " and " + plural.Of(len(list)-most, "other", "others")
		case i > 0:
			text += ", "
		}
		text += table.Printable(one)
	}
	return text
}

// WriteCosts writes the rows of a report as CSV, with times in seconds. The rows of calls to AWS have columns of their own.
func WriteCosts(out io.Writer, report *remudav1.GetCostResponse) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{
		"day", "pool", "instance_type", "usage_class", "repository", "workflow", "run_id", "run_attempt", "job_id", "job_name", "hosts",
		"boot_seconds", "busy_seconds", "clean_seconds", "idle_seconds", "unpriced_seconds", "dollars",
		"caller", "service", "requests", "read_units", "write_units", "call_dollars", "estimated",
	})
	for _, c := range report.GetRows() {
		row := []string{
			c.GetDay(), c.GetPool(), c.GetInstanceType(), c.GetUsageClass(), c.GetRepository(), cell(c.GetWorkflow()), c.GetRunId(),
			strconv.Itoa(int(c.GetRunAttempt())), number(c.GetJobId()), cell(c.GetJobName()), strconv.FormatInt(c.GetHosts(), 10),
		}
		for _, d := range append(times(c), c.GetUnpriced().AsDuration()) {
			row = append(row, strconv.FormatFloat(d.Seconds(), 'f', 3, 64))
		}
		_ = w.Write(append(append(row, strconv.FormatFloat(c.GetDollars(), 'f', 6, 64)), make([]string, callColumns)...))
	}
	for _, c := range report.GetCalls() {
		_ = w.Write(callCells(c))
	}
	w.Flush()
	return w.Error()
}

// number is an id, and empty for none.
func number(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// cell is a text that an author of a workflow chose, as a spreadsheet does not take it for a formula (owasp.org, "CSV Injection").
func cell(text string) string {
	if text != "" && (text[0] == '=' || text[0] == '+' || text[0] == '-' || text[0] == '@') {
		return "'" + text
	}
	return text
}
