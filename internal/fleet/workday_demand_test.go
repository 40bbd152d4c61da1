package fleet_test

import (
	"encoding/csv"
	"os"
	"strconv"
	"testing"
	"time"
)

// dayJobs is how many jobs a run has, each on a host of its own. How many the
// recorded ones had is not known.
const dayJobs = 4

// dayRun is a run that asks for a host for each of its jobs, which take so long.
type dayRun struct {
	id         string
	at         time.Time
	repository string
	jobs       []time.Duration
}

// recordedRuns are the runs of the recorded day (testdata/workday has how it was
// recorded): one for each push. Which of the recorded durations a job takes comes
// from its number, so that each day is the same.
func recordedRuns(t *testing.T) []dayRun {
	t.Helper()
	var durations []time.Duration
	for _, line := range recorded(t, "durations.csv") {
		seconds, err := strconv.Atoi(line[0])
		if err != nil {
			t.Fatal(err)
		}
		durations = append(durations, time.Duration(seconds)*time.Second)
	}
	var runs []dayRun
	for i, line := range recorded(t, "pushes.csv") {
		at, err := time.Parse("2006-01-02T15:04Z", line[0])
		if err != nil {
			t.Fatal(err)
		}
		run := dayRun{id: strconv.Itoa(i + 1), at: at, repository: line[1]}
		for n := range dayJobs {
			mixed := uint32(i*dayJobs+n+1) * 2654435761 >> 8 // Knuth's multiplicative hash
			run.jobs = append(run.jobs, durations[mixed%uint32(len(durations))])
		}
		runs = append(runs, run)
	}
	return runs
}

// recorded are the lines of a file below its heading.
func recorded(t *testing.T, name string) [][]string {
	t.Helper()
	file, err := os.Open("testdata/workday/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return lines[1:]
}
