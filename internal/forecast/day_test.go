package forecast_test

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/forecast"
	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/replay"
	"github.com/remuda-ci/remuda/internal/testrun/golden"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
	"github.com/remuda-ci/remuda/internal/testrun/recordedday"
)

var update = flag.Bool("update", false, "write examples/history/working-day.csv, docs/planned-day.svg, and the numbers in docs/planning.md")

const (
	dayHistory = "../../examples/history/working-day.csv"
	dayPage    = "../../docs/planning.md"
	dayPicture = "../../docs/planned-day.svg"
)

// monthHistory is a month of a public repository. examples/history/README.md says where it is from.
const monthHistory = "../../examples/history/bitcoin-month.csv"

var monthBlock = regexp.MustCompile(`(?s)<!-- recorded month -->\n.*?<!-- end -->\n`)

// ireeHistory are days of another public repository, which make months gets.
const ireeHistory = "../../examples/history/iree-days.csv"

var ireeBlock = regexp.MustCompile(`(?s)<!-- days of iree -->\n.*?<!-- end -->\n`)

var dayBlock = regexp.MustCompile(`(?s)<!-- recorded day -->\n.*?<!-- end -->\n`)

// recordedDay are jobs at the times of the recorded pushes, with recorded durations. internal/fleet/testdata/workday/README.md says how they
// were recorded.
func recordedDay(t *testing.T) []history.Job {
	t.Helper()
	h := history.History{}
	for i, push := range recordedday.Pushes(t, "../fleet/testdata/workday") {
		for n, took := range push.Lasted {
			h.Jobs = append(h.Jobs, history.Job{
				ID: int64(i*recordedday.Jobs + n + 1), RunID: strconv.Itoa(i + 1), Repository: push.Repository, Created: push.At, Started: push.At, Completed: push.At.Add(took),
			})
		}
	}
	h.Sort()
	return h.Jobs
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
	golden.File(t, dayHistory, *update, func(string) string { return b.String() })
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
	golden.File(t, dayPicture, *update, func(string) string { return picture.String() })
	golden.File(t, dayPage, *update, func(page string) string {
		return dayBlock.ReplaceAllLiteralString(page, "<!-- recorded day -->\n```\n"+table(t, r)+"```\n<!-- end -->\n")
	})
}

// TestTheRecordedMonth: every job of the month is played, and the page has the answer.
func TestTheRecordedMonth(t *testing.T) {
	racepass.OneGoroutine(t)
	h, err := history.Load(monthHistory, nil)
	if err != nil {
		t.Fatal(err)
	}
	if left := h.LeftOut(); len(h.Jobs) != 11_892 || len(left) > 0 {
		t.Errorf("%d jobs, want all 11,892; left out: %q", len(h.Jobs), left)
	}
	present := loadPolicy(t, "../../examples/history/kept.yaml")
	r, err := forecast.Answer(t.Context(), forecast.Question{
		History: h, Policy: loadPolicy(t, "../../examples/history/warm.yaml"), Present: &present, Times: replay.DefaultTimes(),
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, dayPage, *update, func(page string) string {
		return monthBlock.ReplaceAllLiteralString(page, "<!-- recorded month -->\n```\n"+table(t, r)+"```\n<!-- end -->\n")
	})
}

// TestTheDaysOfIREE: the page has the answer for those jobs whose machines are launched for them. Without the record, which is not part of the repository, there
// is nothing to compare.
func TestTheDaysOfIREE(t *testing.T) {
	racepass.OneGoroutine(t)
	h, err := history.Load(ireeHistory, nil)
	if errors.Is(err, fs.ErrNotExist) {
		t.Log("make months has not been run")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if left := h.LeftOut(); len(h.Jobs) != 22_818 || len(left) > 0 {
		t.Errorf("%d jobs, want all 22,818; left out: %q", len(h.Jobs), left)
	}
	h.Jobs = slices.DeleteFunc(h.Jobs, func(j history.Job) bool { return !slices.Contains(j.Labels, "azure-linux-scale") })
	present := loadPolicy(t, "../../examples/history/kept.yaml")
	r, err := forecast.Answer(t.Context(), forecast.Question{
		History: h, Policy: loadPolicy(t, "../../examples/history/warm.yaml"), Present: &present, Times: replay.DefaultTimes(),
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, dayPage, *update, func(page string) string {
		return ireeBlock.ReplaceAllLiteralString(page, "<!-- days of iree -->\n```\n"+table(t, r)+"```\n<!-- end -->\n")
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
