package verdict

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/remuda-ci/remuda/internal/demo/stage"
)

// Result is what scripts get.
type Result struct {
	// Mechanism is how the hosts make views: copy or overlay.
	Mechanism string `json:"mechanism"`
	Steps     []Step `json:"steps"`
	// Faster is how many times faster the second run was than the first, and FasterWithWait with the waits for their hosts.
	Faster         float64 `json:"faster"`
	FasterWithWait float64 `json:"faster_with_wait"`
	// Broken are sentences that say what did not hold.
	Broken []string `json:"broken"`
}

// NewResult judges the steps.
func NewResult(mechanism string, steps []Step) Result {
	r := Result{Mechanism: mechanism, Steps: steps, Broken: append([]string{}, Judge(steps)...)}
	if len(steps) > 1 && steps[1].Ran > 0 {
		first, second := steps[0], steps[1]
		r.Faster, r.FasterWithWait = first.Ran/second.Ran, (first.Ready+first.Ran)/(second.Ready+second.Ran)
	}
	return r
}

// WriteJSON writes the result for scripts.
func (r Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// mechanisms say how views are made.
var mechanisms = map[string]string{
	"copy":    "a view is a copy, as on every host without systemd; with systemd it is mounted in about a millisecond",
	"overlay": "a view is a mount of overlayfs",
}

// Write writes a table of the steps for people, and what is to be known of it.
func (r Result) Write(w io.Writer) error {
	if err := r.writeTable(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, `
The second run was %.1f times faster than the first, and %.1f times with the wait for its host.

READY IN is that wait: from the call of Provision until a runner listens, with its views of the caches.
Here %s.
RAN IN is from then on until the last job is over. POOLED IN is until the host is cleaned and verified, and has committed its caches. DOWNLOADED
is all that servers have sent, counted by a proxy between the jobs and the registries. Machines boot and GitHub answers at once here, so the
times are those of the work itself.
`, r.Faster, r.FasterWithWait, mechanisms[r.Mechanism])
	return err
}

// writeTable writes each step in a line.
func (r Result) writeTable(w io.Writer) error {
	t := stage.Table(w)
	fmt.Fprintln(t, "RUN\tWHAT\tHOST\tREADY IN\tGO\tNPM\tRAN IN\tDOWNLOADED\tPOOLED IN\tKEPT")
	for _, s := range r.Steps {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			s.RunID, s.What, s.Host, Seconds(s.Ready), Seconds(s.Go), Seconds(s.NPM), Seconds(s.Ran), MB(s.Downloaded), Seconds(s.Release), MB(s.Kept))
	}
	return t.Flush()
}

// Seconds is a number of seconds as "1.2 s".
func Seconds(s float64) string { return strconv.FormatFloat(s, 'f', 1, 64) + " s" }

// MB is a number of bytes in millions, as "1.2 MB".
func MB(bytes int64) string { return strconv.FormatFloat(float64(bytes)/1e6, 'f', 1, 64) + " MB" }
