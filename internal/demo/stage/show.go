package stage

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/remuda-ci/remuda/internal/local"
)

// Say prints a line for people.
func (s *Stage) Say(format string, args ...any) { fmt.Fprintf(s.Out, format+"\n", args...) }

// Table has columns as wide as their widest cell; the cells of a row are separated by tabs. It is to be flushed.
func Table(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

// Seconds is a time as "1.25 s".
func Seconds(t time.Duration) string { return strconv.FormatFloat(t.Seconds(), 'f', 2, 64) + " s" }

// HostOf is the instance id in a runner's name.
func HostOf(runner string) string {
	if i := strings.Index(runner, "-i-"); i >= 0 {
		return runner[i+1:]
	}
	return runner
}

// Logs are the logs of all jobs of a run.
func Logs(run local.Run) string {
	var b strings.Builder
	for _, j := range run.Jobs {
		fmt.Fprintf(&b, "--- %s: %s\n%s\n", j.Name, j.Conclusion, j.Log)
	}
	return b.String()
}
