// Package runnername reads the names of our runners, which lifecycle.RunnerName makes.
package runnername

import (
	"strconv"
	"strings"
)

// InstanceOf is the instance id in the name of one of our runners, or "".
func InstanceOf(runnerName string) string {
	rest, ok := strings.CutPrefix(runnerName, "remuda-")
	if !ok {
		return ""
	}
	_, id, ok := strings.Cut(rest, "-")
	if !ok {
		return ""
	}
	return id
}

// AssignmentOf is the assignment in the name of one of our runners; false where the name has none.
func AssignmentOf(runnerName string) (assignment int64, ok bool) {
	rest, ours := strings.CutPrefix(runnerName, "remuda-")
	number, _, cut := strings.Cut(rest, "-")
	assignment, err := strconv.ParseInt(number, 10, 64)
	return assignment, ours && cut && err == nil
}
