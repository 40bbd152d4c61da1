// Package recordedday reads the recorded day of the tests: pushes to public repositories, and durations of jobs. The directory of its files says
// how they were recorded.
package recordedday

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Jobs is how many jobs a push has, each on a host of its own. How many the recorded ones had is not known.
const Jobs = 4

// Push is a recorded push, and how long its jobs lasted.
type Push struct {
	At         time.Time
	Repository string
	Lasted     [Jobs]time.Duration
}

// Pushes are those of the day in a directory. Which of the recorded durations a job takes comes from its number, so that each day is the same.
func Pushes(t testing.TB, dir string) []Push {
	t.Helper()
	var durations []time.Duration
	for _, line := range lines(t, filepath.Join(dir, "durations.csv")) {
		seconds, err := strconv.Atoi(line[0])
		if err != nil {
			t.Fatal(err)
		}
		durations = append(durations, time.Duration(seconds)*time.Second)
	}
	var day []Push
	for i, line := range lines(t, filepath.Join(dir, "pushes.csv")) {
		at, err := time.Parse("2006-01-02T15:04Z", line[0])
		if err != nil {
			t.Fatal(err)
		}
		push := Push{At: at, Repository: line[1]}
		for n := range Jobs {
			mixed := uint32(i*Jobs+n+1) * 2654435761 >> 8 // Knuth's multiplicative hash
			push.Lasted[n] = durations[mixed%uint32(len(durations))]
		}
		day = append(day, push)
	}
	return day
}

// lines are those of a file below its heading.
func lines(t testing.TB, path string) [][]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	all, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return all[1:]
}
