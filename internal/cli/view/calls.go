package view

import (
	"fmt"
	"slices"
	"strconv"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// callLine is a line of a report for calls to AWS alone.
type callLine struct {
	name    string
	dollars float64
}

// callLines has a line for each service that was called. In a report by day it has one for each day on which no host was used, since
// the calls of the others are in their rows.
func callLines(report *remudav1.GetCostResponse) []callLine {
	var lines []callLine
	shown := map[string]bool{}
	for _, row := range report.GetRows() {
		shown[row.GetDay()] = true
	}
	for _, c := range report.GetCalls() {
		switch day := c.GetDay(); {
		case day == "":
			lines = append(lines, callLine{fmt.Sprintf("(calls of %s: %s)", c.GetCaller(), c.GetService()), c.GetDollars()})
		case shown[day] || report.GetMoreRows() > 0:
		case len(lines) > 0 && lines[len(lines)-1].name == day:
			lines[len(lines)-1].dollars += c.GetDollars()
		default:
			lines = append(lines, callLine{day, c.GetDollars()})
		}
	}
	return lines
}

// callNotes says what a reader must know of calls.
func callNotes(report *remudav1.GetCostResponse) []string {
	var notes []string
	if slices.ContainsFunc(report.GetCalls(), (*remudav1.CallCost).GetEstimated) {
		notes = append(notes, "The calls of agents are estimated from the time of the hosts. Calls are not in DOLLARS.")
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
