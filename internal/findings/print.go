package findings

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// Text writes a table of the findings, and more about those that are refuted. The title says where they were found.
func Text(out io.Writer, title string, list []Finding) error {
	fmt.Fprintf(out, "%s:\n\n", title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHECK\tASSUMPTION\tVERDICT\tWHAT WAS SEEN")
	counts := map[Verdict]int{}
	for _, f := range list {
		counts[f.Verdict]++
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.Check, f.Name, f.Verdict, f.Saw)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range RefutedOf(list) {
		fmt.Fprintf(out, "\n%s is refuted: %s\n  relied on in %s\n", f.Name, f.Text, f.ReliedOn)
	}
	_, err := fmt.Fprintf(out, "\n%d confirmed, %d refuted, %d undecided.\n", counts[Confirmed], counts[Refuted], counts[Undecided])
	return err
}

// JSON writes a report as one object.
func JSON(out io.Writer, report any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(report)
}
