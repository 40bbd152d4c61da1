package forecast_test

import (
	"bytes"
	"flag"
	"regexp"
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
	r := answer(t, h)
	var picture strings.Builder
	if err := r.Picture(&picture); err != nil {
		t.Fatal(err)
	}
	golden.File(t, dayPicture, *update, func(string) string { return picture.String() })
	onThePage(t, "recorded day", r)
}

// answer is what the planner says of a history under the policies of the page.
func answer(t *testing.T, h history.History) *forecast.Report {
	t.Helper()
	present := loadPolicy(t, "../../examples/history/kept.yaml")
	r, err := forecast.Answer(t.Context(), forecast.Question{
		History: h, Policy: loadPolicy(t, "../../examples/history/warm.yaml"), Present: &present, Times: replay.DefaultTimes(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// onThePage compares the block of a name on the page with a report, or writes it with -update.
func onThePage(t *testing.T, name string, r *forecast.Report) {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- end -->\n"
	block := regexp.MustCompile("(?s)" + begin + ".*?" + end)
	golden.File(t, dayPage, *update, func(page string) string {
		if !block.MatchString(page) {
			t.Errorf("%s has no block that begins with %q", dayPage, begin)
		}
		return block.ReplaceAllLiteralString(page, begin+"```\n"+table(t, r)+"```\n"+end)
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
