package main

import (
	"fmt"
	"text/tabwriter"
)

// summary prints what happened and how long it took.
func (d *demo) summary() {
	d.say("")
	w := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tWHAT\tHOSTS\tREUSED\tCREATED\tPROVISIONED IN\tJOBS RAN IN\tPOOLED AGAIN")
	for _, a := range d.acts {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%d\n",
			a.runID, a.name, len(a.hosts), a.reused, a.created, seconds(a.provision), seconds(a.ran), a.pooled)
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "RUN\tJOB\tHOST\tTOOK\tRESULT")
	for _, a := range d.acts {
		for _, j := range a.run.Jobs {
			// GitHub tells times in whole seconds.
			took := j.CompletedAt.Sub(j.StartedAt).Seconds()
			fmt.Fprintf(w, "%s\t%s\t%s\t%.0f s\t%s\n", a.runID, j.Name, hostOf(j.Runner), took, j.Conclusion)
		}
	}
	_ = w.Flush() // to a terminal or a pipe: an error cannot be reported
	d.say("\n%d hosts expired and were ended. No process and no registration is left.", d.expired)
}
