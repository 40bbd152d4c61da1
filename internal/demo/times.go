package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/demo/stage"
	"github.com/remuda-ci/remuda/internal/local"
)

// realistic is how slow GitHub and its runner are unless the flags say otherwise: docs/testing.md has the sources.
var realistic = local.Times{API: 250 * time.Millisecond, Configure: 3 * time.Second, Listen: 2 * time.Second}

// hotWithin is what a hot host may take to be ready, at the median and with realistic times: a conditional write and one call of GitHub.
const hotWithin = 600 * time.Millisecond

// kinds are the rows of the table of times, by the name of their acts.
var kinds = []struct{ name, shown string }{
	{"cold", "cold"}, {"warm", "warm, standby: clean"}, {"hot", "hot, standby: listening"},
}

// row is what the acts of one kind took.
type row struct {
	runs, hosts, registered int
	ready, firstStep        time.Duration // at the median
}

func (d *demo) rowOf(name string) row {
	var r row
	var ready, first []time.Duration
	for _, a := range d.acts {
		if a.name == name {
			r.runs, r.hosts, r.registered = r.runs+1, r.hosts+len(a.hosts), r.registered+a.registered
			ready, first = append(ready, a.provision), append(first, a.firstStep)
		}
	}
	r.ready, r.firstStep = median(ready), median(first)
	return r
}

func median(list []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(list))[len(list)/2]
}

// times prints how long a run waits for its runners and for its first step.
func (d *demo) times() {
	d.Say("\nFrom the call of Provision, at the median of the runs:\n")
	w := stage.Table(d.Out)
	fmt.Fprintln(w, "HOSTS ARE\tRUNS\tHOSTS\tCONFIG.SH\tRUNNERS READY IN\tFIRST STEP IN")
	for _, kind := range kinds {
		r := d.rowOf(kind.name)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\n", kind.shown, r.runs, r.hosts, r.registered, stage.Seconds(r.ready), stage.Seconds(r.firstStep))
	}
	_ = w.Flush() // to a terminal or a pipe: an error cannot be reported
	d.Say("\nCold and warm are one run of %d hosts each, and hot is %d runs of one host each, one after another. CONFIG.SH counts the hosts that",
		d.rowOf("cold").hosts, hotHosts)
	d.Say("registered after their run had asked for them. A hot host has registered before that, and gets the labels of its run.")
	d.Say("\nThe times of GitHub and its runner are modeled: a call takes %s, config.sh %s, and a listener %s before its session. Machines boot in 3 s.",
		stage.Seconds(d.slow.API), stage.Seconds(d.slow.Configure), stage.Seconds(d.slow.Listen))
	d.Say("docs/testing.md has their sources, and docs/first-contact.md measures the real ones.")
}

// checkTimes holds the hot runs to their bar.
func (d *demo) checkTimes() error {
	if r := d.rowOf("hot"); d.slow == realistic && r.ready > hotWithin {
		return fmt.Errorf("hot hosts were ready after %s at the median, and may take %s", stage.Seconds(r.ready), stage.Seconds(hotWithin))
	}
	return nil
}

// registrations are the runners, and how often config.sh was about to register one since the stand-in began.
func (d *demo) registrations(ctx context.Context) (runners []local.Runner, configured int, err error) {
	if runners, err = d.GitHub.Runners(ctx); err != nil {
		return nil, 0, err
	}
	calls, err := d.GitHub.Calls(ctx)
	for _, c := range calls {
		if c.Route == "/_standin/runner/authorize" {
			configured = int(c.Count)
		}
	}
	return runners, configured, err
}

// registeredSince counts the registrations of the hosts that were made between two lists of runners.
func registeredSince(before, after []local.Runner, hosts []string) int {
	var last int64
	for _, r := range before {
		last = max(last, r.ID)
	}
	made := 0
	for _, r := range after {
		if r.ID > last && slices.Contains(hosts, stage.HostOf(r.Name)) {
			made++
		}
	}
	return made
}

// firstStep is when the first step of the workflow of a run began. What GitHub and the hooks do before does not count.
func (d *demo) firstStep(ctx context.Context, runID string) (time.Time, error) {
	steps, err := d.GitHub.Steps(ctx, repository, runID)
	if err != nil {
		return time.Time{}, err
	}
	steps = slices.DeleteFunc(steps, func(s local.Step) bool {
		return s.StartedAt.IsZero() || strings.HasPrefix(s.Name, "Set up ") || strings.HasPrefix(s.Name, "Complete ")
	})
	if len(steps) == 0 {
		return time.Time{}, fmt.Errorf("run %s has no step", runID)
	}
	return slices.MinFunc(steps, func(a, b local.Step) int { return a.StartedAt.Compare(b.StartedAt) }).StartedAt, nil
}
