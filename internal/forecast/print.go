package forecast

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// mostRows is how many repositories a table has at most: those with the most jobs.
const mostRows = 30

// title says how many jobs of how many repositories there are.
func (r *Report) title() string {
	return plural.Of(r.Jobs, "job", "jobs") + " of " + plural.Of(len(r.Repositories)-1, "repository", "repositories")
}

// Table prints a report for people: all jobs, then by repository. A wide one has all waits of repositories.
func (r *Report) Table(w io.Writer, wide bool) error {
	fmt.Fprintf(w, "%s, created from %s on, the last over at %s. A boot takes %s.\n\n",
		r.title(), minute(r.From), minute(r.Until), seconds(r.BootSeconds))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(what string, of func(c Column) string, more ...string) {
		cells := []string{what}
		for _, c := range r.Columns {
			cells = append(cells, of(c))
		}
		fmt.Fprintln(t, strings.Join(append(cells, more...), "\t"))
	}
	count := func(n func(Column) int) func(Column) string {
		return func(c Column) string { return fmt.Sprint(n(c)) }
	}
	hours := func(h func(Column) float64) func(Column) string {
		return func(c Column) string { return fmt.Sprintf("%.1f", h(c)) }
	}
	line("ALL JOBS", func(c Column) string { return strings.ToUpper(c.Name) }, "RECORDED")
	line("half of them waited at most", func(c Column) string { return seconds(c.Waits.P50) }, seconds(r.Recorded.P50))
	line("95 of a hundred", func(c Column) string { return seconds(c.Waits.P95) }, seconds(r.Recorded.P95))
	line("99 of a hundred", func(c Column) string { return seconds(c.Waits.P99) }, seconds(r.Recorded.P99))
	line("had a hot host", count(func(c Column) int { return c.Hot }))
	line("had a warm one", count(func(c Column) int { return c.Warm }))
	line("had a stopped one, started", count(func(c Column) int { return c.Started }))
	line("had a cold one, launched", count(func(c Column) int { return c.Cold }))
	if r.any(func(c Column) int { return c.Cut }) {
		line("were cut off by max_runtime", count(func(c Column) int { return c.Cut }))
	}
	if r.any(func(c Column) int { return c.GaveUp }) {
		line("had no host for a day", count(func(c Column) int { return c.GaveUp }))
	}
	line("machines launched", count(func(c Column) int { return c.Launched }))
	line("machine-hours", hours(func(c Column) float64 { return c.MachineHours }))
	line("of these at jobs", hours(func(c Column) float64 { return c.BusyHours }))
	line("of these idle", hours(func(c Column) float64 { return c.IdleHours }))
	line("dollars", func(c Column) string { return fmt.Sprintf("%.2f", c.Dollars) })
	if err := t.Flush(); err != nil {
		return err
	}
	return r.byRepository(w, wide)
}

func (r *Report) any(n func(Column) int) bool {
	for _, c := range r.Columns {
		if n(c) > 0 {
			return true
		}
	}
	return false
}

// byRepository prints a row for each repository, and one for the pools.
func (r *Report) byRepository(w io.Writer, wide bool) error {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	heading := []string{"REPOSITORY", "JOBS"}
	for _, c := range r.Columns {
		name := strings.ToUpper(c.Name)
		if wide {
			heading = append(heading, name+": P50", "P95", "P99", "DOLLARS")
		} else {
			heading = append(heading, name+": P95", "DOLLARS")
		}
	}
	fmt.Fprintln(t, strings.Join(heading, "\t"))
	rows := r.Repositories
	if len(rows) > mostRows+1 {
		rows = append(rows[:mostRows:mostRows], rows[len(rows)-1])
	}
	for _, of := range rows {
		cells := []string{of.Name, fmt.Sprint(of.Jobs)}
		if of.Name == "" {
			cells = []string{"the pools, waiting", ""}
		}
		for _, u := range of.Under {
			waits := []string{seconds(u.Waits.P95)}
			if wide {
				waits = []string{seconds(u.Waits.P50), seconds(u.Waits.P95), seconds(u.Waits.P99)}
			}
			if of.Name == "" {
				waits = make([]string, len(waits))
			}
			cells = append(append(cells, waits...), fmt.Sprintf("%.2f", u.Dollars))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if left := len(r.Repositories) - len(rows); left > 0 {
		fmt.Fprintf(w, "%d more repositories; --output json has them all.\n", left)
	}
	if r.Found != "" {
		fmt.Fprintf(w, "\nThe cheapest policy that was found, for controld's configuration:\n\n%s", r.Found)
	}
	return nil
}

// seconds is a time in seconds for people, to a tenth.
func seconds(s float64) string {
	return (time.Duration(s * float64(time.Second))).Round(100 * time.Millisecond).String()
}

func minute(t time.Time) string { return t.Format("2006-01-02 15:04 MST") }
