package host

import (
	"fmt"
	"strconv"
	"strings"
)

// unitKind is the part of the unit names that stands for a task.
func (t task) unitKind() string {
	if t.name == taskListen {
		return "runner"
	}
	return t.name
}

// runnerUnits is the pattern of the units that jobs run in.
const runnerUnits = "remuda-runner-*.service"

// RunUnits are patterns of the units of a run.
var RunUnits = []string{runnerUnits, "remuda-register-*.service", "remuda-deregister-*.service"}

// OwnUnits are the units that may run while the host is cleaned after an assignment or,
// with assignment 0, prepared.
func OwnUnits(assignment int64) []string {
	if assignment > 0 {
		return []string{unitName(task{name: taskClean}, startRecord{Assignment: assignment})}
	}
	return []string{prepareUnit}
}

const prepareUnit = "remuda-prepare.service"

// unitOf is the name of a task's unit.
func unitName(t task, b startRecord) string {
	if t.name == taskPrepare {
		return prepareUnit
	}
	return fmt.Sprintf("remuda-%s-%d.service", t.unitKind(), b.Assignment)
}

// assignmentOf returns the assignment in the name of a runner's unit; 0 if it is not one.
func assignmentOf(unit string) int64 {
	number := strings.TrimSuffix(strings.TrimPrefix(unit, "remuda-runner-"), ".service")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func unitDescription(t task, b startRecord) string {
	if t.name == taskPrepare {
		return "Remuda: prepare this host"
	}
	return fmt.Sprintf("Remuda: %s for assignment %d", t.unitKind(), b.Assignment)
}
