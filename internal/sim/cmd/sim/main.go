// Command sim runs the deterministic fleet simulation: see internal/sim.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/sim"
	"github.com/remuda-ci/remuda/internal/sim/explore"
)

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	case !run(o):
		os.Exit(1)
	}
}

type options struct {
	seed, first   uint64
	seeds         int
	hosts         int
	hours         float64
	keep          int
	log, coverage bool
	fresh         bool
	explore       string
	story         string
}

// parse reads the arguments and refuses those with which nothing, or something else, would be tried.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // main prints the error
	flags.Uint64Var(&o.seed, "seed", 0, "live this one life and show its trace; left out: many")
	flags.Uint64Var(&o.first, "first", 1, "the first seed of many")
	flags.BoolVar(&o.fresh, "new", false, "take the first seed from the clock, so that the lives are others than before")
	flags.IntVar(&o.seeds, "seeds", 200, "how many lives")
	flags.IntVar(&o.hosts, "hosts", 0, "about how many machines live at once; left out: 6")
	flags.Float64Var(&o.hours, "hours", 0, "virtual hours of faults in each life; left out: a third of one")
	flags.IntVar(&o.keep, "keep", 0, "how many events of a trace to show; left out: 200")
	flags.BoolVar(&o.log, "log", false, "show the log lines of the daemons in the trace")
	flags.BoolVar(&o.coverage, "coverage", false, "say how often each fault and action occurred")
	flags.StringVar(&o.explore, "explore", "", "explore bounds instead: small, large, or those of one name")
	flags.StringVar(&o.story, "story", "", "play the story in this file instead, and print it: see internal/sim/testdata/stories")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(stderr)
			flags.Usage()
		}
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag, and there are no other arguments", flags.Arg(0))
	}
	return o, o.check(flags)
}

// maxHours is far above any use. Much more would be no time.Duration.
const maxHours = 1_000_000

// check looks only at the flags that were set: a zero that was left out is a default.
func (o options) check(flags *flag.FlagSet) error {
	valid := map[string]struct {
		ok   bool
		want string
	}{
		"seed":    {o.seed > 0, "a seed is at least 1"},
		"first":   {o.first > 0, "a seed is at least 1"},
		"seeds":   {o.seeds > 0, "without a life nothing is tried: it is at least 1"},
		"hosts":   {o.hosts > 0, "a life has at least 1 host"},
		"hours":   {o.hours <= maxHours && o.chaos() > 0, fmt.Sprintf("faults need a time above 0, of at most %d hours", maxHours)},
		"keep":    {o.keep > 0, "a trace shows at least 1 event"},
		"explore": {o.explore != "", "name bounds: small, large, or one of them"},
		"story":   {o.story != "", "name the file of a story"},
	}
	var wrong []error
	flags.Visit(func(f *flag.Flag) {
		if v, ok := valid[f.Name]; ok && !v.ok {
			wrong = append(wrong, fmt.Errorf("-%s=%s: %s", f.Name, f.Value, v.want))
		}
	})
	if o.seed != 0 && o.fresh {
		wrong = append(wrong, errors.New("-seed names one life and -new takes others: give one of them"))
	}
	if o.explore != "" && len(bounds(o.explore)) == 0 {
		wrong = append(wrong, fmt.Errorf("there are no bounds %q; there are small, large, or one of them alone:\n  %s", o.explore, strings.Join(boundNames(), "\n  ")))
	}
	return errors.Join(wrong...)
}

// chaos is how long faults strike.
func (o options) chaos() time.Duration { return time.Duration(o.hours * float64(time.Hour)) }

func (o options) config(seed uint64) sim.Config {
	return sim.Config{
		Seed: seed, Hosts: o.hosts, Chaos: o.chaos(), Log: o.log, Keep: o.keep,
	}
}

// run reports whether every rule held in every life.
func run(o options) bool {
	if o.story != "" {
		return tellStory(o.story)
	}
	if o.explore != "" {
		return exploreAll(o.explore)
	}
	if o.seed != 0 {
		o.first, o.seeds = o.seed, 1
	}
	began, told := time.Now(), time.Now()
	if o.fresh {
		o.first = uint64(began.Unix())
		fmt.Printf("lives %d to %d\n", o.first, o.first+uint64(o.seeds)-1)
	}
	coverage := sim.NewCoverage()
	var events int
	var virtual time.Duration
	for i := range o.seeds {
		r := sim.Run(o.config(o.first + uint64(i)))
		if r.Violation != nil {
			report(r)
			return false
		}
		coverage.Add(r.Coverage)
		events, virtual = events+r.Events, virtual+r.Virtual
		if time.Since(told) > 5*time.Second {
			told = time.Now()
			fmt.Printf("%d lives, %d events, %s virtual, %s\n", i+1, events, virtual.Round(time.Minute), time.Since(began).Round(time.Second))
		}
		if o.seed != 0 {
			fmt.Printf("seed %d: %d events, %d calls, %s virtual, trace %016x\n", r.Seed, r.Events, r.Calls, r.Virtual.Round(time.Second), r.Hash)
		}
	}
	if o.coverage {
		fmt.Print(coverage)
	}
	took := time.Since(began)
	fmt.Printf("all rules held: %d lives, %d events, %s virtual in %s (%.0f lives a minute, %.0f events a second)\n",
		o.seeds, events, virtual.Round(time.Minute), took.Round(time.Millisecond), float64(o.seeds)/took.Minutes(), float64(events)/took.Seconds())
	return true
}

// tellStory plays the story in a file.
func tellStory(file string) bool {
	text, err := os.ReadFile(file)
	if err != nil {
		fmt.Println(err)
		return false
	}
	told, err := sim.Story(string(text))
	if err != nil {
		fmt.Println(err)
		return false
	}
	fmt.Print(told)
	return true
}

// bounds are those that are called so, all or one.
func bounds(name string) []explore.Bounds {
	switch name {
	case "small":
		return explore.Small
	case "large":
		return explore.Large
	}
	one := slices.Concat(explore.Small, explore.Large)
	return slices.DeleteFunc(one, func(b explore.Bounds) bool { return b.Name != name })
}

// boundNames has a line for each: names have commas.
func boundNames() (names []string) {
	for _, b := range slices.Concat(explore.Small, explore.Large) {
		names = append(names, b.Name)
	}
	return names
}

// exploreAll visits every state within each of the bounds.
func exploreAll(name string) bool {
	for _, b := range bounds(name) {
		began, told := time.Now(), time.Now()
		r := explore.Explore(b, 0, func(r explore.Report) {
			if time.Since(told) > 10*time.Second {
				told = time.Now()
				fmt.Printf("%s: %d states, %d edges so far; %s\n", b.Name, r.States, r.Edges, time.Since(began).Round(time.Second))
			}
		})
		if v := r.Violation; v != nil {
			fmt.Printf("%s:\n  %s\n\nthe rule %q is broken\n%s\n", b.Name, strings.Join(v.Path, "\n  "), v.Rule, v.What)
			return false
		}
		fmt.Printf("%s: complete, %d states, %d edges; from %d worlds all settles after a crash of both replicas; %d states at the bound of assignments; %s\n",
			b.Name, r.States, r.Edges, r.Settled, r.Beyond, time.Since(began).Round(time.Millisecond))
	}
	return true
}

func report(r sim.Result) {
	for _, line := range r.Violation.Trace {
		fmt.Println(line)
	}
	fmt.Printf("\nseed %d after %s: the rule %q is broken\n%s\n", r.Seed, r.Virtual.Round(time.Millisecond), r.Violation.Rule, r.Violation.What)
	fmt.Printf("replay it with: make sim SEED=%d\n", r.Seed)
}
