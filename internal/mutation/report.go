package mutation

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"
)

// Outcome is what became of a mutant.
type Outcome string

// The outcomes.
const (
	Killed     Outcome = "killed"      // a test failed, or took far too long
	Survived   Outcome = "survived"    // tests reach it, and all passed
	NotCovered Outcome = "not covered" // no test reaches it
)

// Result is a mutant and what became of it.
type Result struct {
	Mutant
	Outcome Outcome `json:"outcome"`
	// Equivalent says why it makes no difference, if that is known.
	Equivalent string `json:"equivalent,omitempty"`
}

// Report is what a run found.
type Report struct {
	// Found is how many mutants there are. Sample is how many were to be drawn by Seed; 0 is all.
	Found  int           `json:"found"`
	Sample int           `json:"sample,omitempty"`
	Seed   uint64        `json:"seed,omitempty"`
	Took   time.Duration `json:"took_ns"`
	// Unfinished: the run was ended before all of them were tried.
	Unfinished bool `json:"unfinished,omitempty"`
	// Results are those of the mutants that were tried, in the order of the code.
	Results []Result `json:"results"`
	// LeftOut are the tests that fail without a mutant.
	LeftOut []string `json:"left_out,omitempty"`
}

// Score counts outcomes. An equivalent is one of Mutants and, if no test failed, of Equivalent, and not of Survived or NotCovered.
type Score struct{ Mutants, Killed, Survived, NotCovered, Equivalent int }

func (s *Score) count(r Result) {
	s.Mutants++
	switch {
	case r.Outcome == Killed:
		s.Killed++
	case r.Equivalent != "":
		s.Equivalent++
	case r.Outcome == Survived:
		s.Survived++
	default:
		s.NotCovered++
	}
}

// All is the share of the mutants that were killed; Real leaves out the equivalents. Without mutants both are 1.
func (s Score) All() float64  { return share(s.Killed, s.Mutants) }
func (s Score) Real() float64 { return share(s.Killed, s.Mutants-s.Equivalent) }

func share(n, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(n) / float64(of)
}

// Interval is Wilson's interval, in which the share of all mutants lies with 95 % after a sample with this score, without equivalents.
func (s Score) Interval() (low, high float64) {
	const z = 1.96
	n, p := float64(s.Mutants-s.Equivalent), s.Real()
	if n == 0 {
		return 0, 1
	}
	center, width := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return (center - width) / (1 + z*z/n), (center + width) / (1 + z*z/n)
}

// Total is the score of all packages.
func (r *Report) Total() Score {
	var total Score
	for _, result := range r.Results {
		total.count(result)
	}
	return total
}

// Print writes a table with a line for each package, and then those that survived. An equivalent that was killed is none, so it is an error.
func (r *Report) Print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "mutants\tkilled\tsurvived\tnot covered\tequivalent\tscore\twithout equivalents\t  package")
	line := func(s Score, name string) {
		fmt.Fprintf(table, "%d\t%d\t%d\t%d\t%d\t%.1f %%\t%.1f %%\t  %s\n",
			s.Mutants, s.Killed, s.Survived, s.NotCovered, s.Equivalent, 100*s.All(), 100*s.Real(), name)
	}
	for first := 0; first < len(r.Results); {
		var score Score
		name := r.Results[first].Package
		for ; first < len(r.Results) && r.Results[first].Package == name; first++ {
			score.count(r.Results[first])
		}
		line(score, name)
	}
	line(r.Total(), "all")
	if err := table.Flush(); err != nil {
		return err
	}
	low, high := r.Total().Interval()
	switch {
	case r.Unfinished && r.Sample == 0:
		fmt.Fprintf(w, "\nnot finished: these are the first %d of %d mutants\n", len(r.Results), r.Found)
	case len(r.Results) < r.Found:
		fmt.Fprintf(w, "\na sample of %d of %d mutants, seed %d: without equivalents %.1f to %.1f %% with 95 %%\n", len(r.Results), r.Found, r.Seed, 100*low, 100*high)
	}
	fmt.Fprintf(w, "\ntook %s\n", r.Took)
	if len(r.LeftOut) > 0 {
		fmt.Fprintf(w, "\ntests that fail without a mutant, which were left out:\n%s\n", strings.Join(r.LeftOut, "\n"))
	}
	return r.printSurvivors(w)
}

func (r *Report) printSurvivors(w io.Writer) error {
	var wrong []string
	for _, result := range r.Results {
		switch {
		case result.Outcome == Killed && result.Equivalent != "":
			wrong = append(wrong, result.Change())
		case result.Outcome != Killed && result.Equivalent == "":
			fmt.Fprintf(w, "\n%s: line %d: %s\n%s\n", result.Outcome, result.Line, result.Kind, result.Change())
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("a test found these equivalents, so they are none:\n%s", strings.Join(wrong, "\n"))
	}
	return nil
}
