package forecast_test

import (
	"bytes"
	"encoding/csv"
	"flag"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/forecast"
	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/replay"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

var update = flag.Bool("update", false, "write examples/history/working-day.csv, docs/planned-day.svg, and the numbers in docs/planning.md")

const (
	dayHistory = "../../examples/history/working-day.csv"
	dayPage    = "../../docs/planning.md"
	dayPicture = "../../docs/planned-day.svg"
	// dayJobs is how many jobs a push has. How many there were is not known.
	dayJobs = 4
)

var dayBlock = regexp.MustCompile(`(?s)<!-- recorded day -->\n.*<!-- end -->\n`)

// recordedDay are jobs at the times of the recorded pushes, with recorded durations. internal/fleet/testdata/workday/README.md says how they
// were recorded.
func recordedDay(t *testing.T) []history.Job {
	t.Helper()
	var durations []time.Duration
	for _, line := range recorded(t, "durations.csv") {
		seconds, err := strconv.Atoi(line[0])
		if err != nil {
			t.Fatal(err)
		}
		durations = append(durations, time.Duration(seconds)*time.Second)
	}
	h := history.History{}
	for i, line := range recorded(t, "pushes.csv") {
		at, err := time.Parse("2006-01-02T15:04Z", line[0])
		if err != nil {
			t.Fatal(err)
		}
		for n := range dayJobs {
			number := i*dayJobs + n + 1
			mixed := uint32(number) * 2654435761 >> 8 // Knuth's multiplicative hash
			h.Jobs = append(h.Jobs, history.Job{
				ID: int64(number), RunID: strconv.Itoa(i + 1), Repository: line[1], Created: at, Started: at, Completed: at.Add(durations[mixed%uint32(len(durations))]),
			})
		}
	}
	h.Sort()
	return h.Jobs
}

func recorded(t *testing.T, name string) [][]string {
	t.Helper()
	file, err := os.Open("../fleet/testdata/workday/" + name)
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

// TestTheRecordedDay: the example is what was recorded, and the page has its answer.
func TestTheRecordedDay(t *testing.T) {
	racepass.OneGoroutine(t)
	var b bytes.Buffer
	if err := history.WriteHeading(&b); err != nil {
		t.Fatal(err)
	}
	if err := history.Write(&b, recordedDay(t)...); err != nil {
		t.Fatal(err)
	}
	compare(t, dayHistory, func(string) string { return b.String() })
	h, err := history.Load(dayHistory, nil)
	if err != nil {
		t.Fatal(err)
	}
	present := loadPolicy(t, "../../examples/history/kept.yaml")
	r, err := forecast.Answer(t.Context(), forecast.Question{
		History: h, Policy: loadPolicy(t, "../../examples/history/warm.yaml"), Present: &present, Times: replay.DefaultTimes(),
	})
	if err != nil {
		t.Fatal(err)
	}
	var picture strings.Builder
	if err := r.Picture(&picture); err != nil {
		t.Fatal(err)
	}
	compare(t, dayPicture, func(string) string { return picture.String() })
	compare(t, dayPage, func(page string) string {
		return dayBlock.ReplaceAllLiteralString(page, "<!-- recorded day -->\n```\n"+table(t, r)+"```\n<!-- end -->\n")
	})
}

// table is a report as people see it, without spaces at the ends of lines.
func table(t *testing.T, r *forecast.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.Table(&b, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// compare holds a file against what it should be, and with -update writes it.
func compare(t *testing.T, path string, render func(before string) string) {
	t.Helper()
	have, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	want := render(string(have))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(have), want); diff != "" {
		t.Errorf("%s differs; look at it after go test -update (-have +want):\n%s", path, diff)
	}
}
