package fleet_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/testrun/recordedday"
)

const dayJobs = recordedday.Jobs

// dayRun is a run that asks for a host for each of its jobs, which take so long.
type dayRun struct {
	id         string
	at         time.Time
	repository string
	jobs       []time.Duration
}

// recordedRuns are the runs of the recorded day: one for each push.
func recordedRuns(t *testing.T) []dayRun {
	t.Helper()
	var runs []dayRun
	for i, push := range recordedday.Pushes(t, "testdata/workday") {
		runs = append(runs, dayRun{id: strconv.Itoa(i + 1), at: push.At, repository: push.Repository, jobs: push.Lasted[:]})
	}
	return runs
}
