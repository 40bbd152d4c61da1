package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// callLine is a line of a report for calls to AWS alone.
type callLine struct {
	name    string
	dollars float64
}

// callLines has a line for each service that was called. A report by day has the calls in the lines of their days.
func callLines(report *remudav1.GetCostResponse) []callLine {
	var lines []callLine
	for _, c := range report.GetCalls() {
		if c.GetDay() == "" {
			lines = append(lines, callLine{fmt.Sprintf("(calls of %s: %s)", c.GetCaller(), c.GetService()), c.GetDollars()})
		}
	}
	return lines
}

// dayCosts are the hosts of a day, nil if none was used, and what its calls cost.
type dayCosts struct {
	day   string
	hosts *remudav1.Cost
	calls float64
}

// days are the days of a report by day, in their order: those of its rows, and those on which controld called AWS for no host. The latter are left
// out if rows are, since their hosts may be among those.
func days(report *remudav1.GetCostResponse) []dayCosts {
	all := map[string]dayCosts{}
	for _, row := range report.GetRows() {
		all[row.GetDay()] = dayCosts{day: row.GetDay(), hosts: row}
	}
	for _, c := range report.GetCalls() {
		of, known := all[c.GetDay()]
		if known || report.GetMoreRows() == 0 {
			all[c.GetDay()] = dayCosts{day: c.GetDay(), hosts: of.hosts, calls: of.calls + c.GetDollars()}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b dayCosts) int { return strings.Compare(a.day, b.day) })
}

// callNotes says what a reader must know of calls.
func callNotes(report *remudav1.GetCostResponse) []string {
	var notes []string
	if len(report.GetCalls()) > 0 {
		notes = append(notes, "Calls are not in DOLLARS.")
	}
	if slices.ContainsFunc(report.GetCalls(), (*remudav1.CallCost).GetEstimated) {
		notes = append(notes, "The calls of agents are estimated from the time of the hosts.")
	}
	if slices.ContainsFunc(report.GetCalls(), (*remudav1.CallCost).GetRough) {
		notes = append(notes, "Calls are priced as in us-east-1. Set cost.call_prices in controld's configuration.")
	}
	return notes
}

// hostColumns come before the callColumns in a CSV file. The first is the day.
const hostColumns, callColumns = 17, 7

// callCells is a row of calls in a CSV file.
func callCells(c *remudav1.CallCost) []string {
	cells := make([]string, hostColumns)
	cells[0] = c.GetDay()
	decimal := func(f float64, digits int) string { return strconv.FormatFloat(f, 'f', digits, 64) }
	return append(cells, c.GetCaller(), c.GetService(), strconv.FormatInt(c.GetRequests(), 10), decimal(c.GetReadUnits(), 1), decimal(c.GetWriteUnits(), 0),
		decimal(c.GetDollars(), 6), strconv.FormatBool(c.GetEstimated()))
}
