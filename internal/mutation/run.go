package mutation

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options say what is mutated and which tests run.
type Options struct {
	// Dir is in the module; empty is the working directory.
	Dir string
	// Patterns are the packages that are mutated, as go list takes them. Their own tests run.
	Patterns []string
	// Tests are patterns of more packages whose tests run.
	Tests []string
	// Skip, if it is set, are tests that do not run: those that take minutes would decide how long a run takes.
	Skip *regexp.Regexp
	// Match, if it is set, leaves out the mutants with another Change.
	Match *regexp.Regexp
	// Sample is how many mutants are tried; 0 is all. Seed decides which.
	Sample int
	Seed   uint64
	// Equivalents are mutants that make no difference: see ReadEquivalents.
	Equivalents []Equivalent
	// Patience is how long tests may take beside five times what they take without a mutant; then the mutant counts as killed. 0 is 5 s.
	Patience time.Duration
	// Progress gets lines for people.
	Progress io.Writer
}

// jobs is how many test binaries run at once.
const jobs = 2

// Run tries mutants. When its context ends, it returns the results that there are, and the context's error. It is an error if there is nothing to try.
func Run(ctx context.Context, o Options) (*Report, error) {
	begin := time.Now()
	if o.Sample < 0 {
		return nil, fmt.Errorf("a sample of %d mutants: it is at least 1, or 0 for all", o.Sample)
	}
	scratch, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	t, err := list(o.Dir, o.Patterns)
	if err != nil {
		return nil, err
	}
	over := &overlay{dir: scratch, Replace: map[string]string{}}
	all, err := t.find(over)
	if err != nil {
		return nil, err
	}
	matching := o.matching(all)
	if len(matching) == 0 {
		return nil, o.noMutant(all)
	}
	report := &Report{Found: len(matching), Sample: o.Sample, Seed: o.Seed}
	same, err := apply(o.Equivalents, t, all)
	if err != nil {
		return nil, err
	}
	tests, err := o.plain(ctx, t, over, len(all), scratch, report)
	if err != nil {
		return nil, err
	}
	if len(tests) == 0 {
		return nil, o.noTest(report.LeftOut)
	}
	tried := sample(matching, o.Sample, o.Seed)
	fmt.Fprintf(o.Progress, "%d of %d mutants, %d tests\n", len(tried), len(all), len(tests))
	results := make([]Result, len(tried))
	each(len(tried), func(i int) {
		result := o.try(ctx, tried[i], tests, scratch)
		if ctx.Err() != nil {
			return // it was not the mutant that ended the tests
		}
		result.Equivalent = same[tried[i].ID]
		results[i] = result
		if n := i + 1; n%100 == 0 {
			fmt.Fprintf(o.Progress, "%d mutants after %s\n", n, time.Since(begin).Round(time.Second))
		}
	})
	report.Results = slices.DeleteFunc(results, func(r Result) bool { return r.Outcome == "" })
	slices.SortFunc(report.Results, func(a, b Result) int { return cmp.Compare(a.ID, b.ID) })
	report.Unfinished = len(report.Results) < len(tried)
	report.Took = time.Since(begin).Round(time.Second)
	return report, ctx.Err()
}

func (o Options) matching(all []Mutant) []Mutant {
	if o.Match == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(m Mutant) bool { return !o.Match.MatchString(m.Change()) })
}

// noMutant says why there is no mutant to try. A report of none would read as if the tests had found all of them.
func (o Options) noMutant(all []Mutant) error {
	packages := strings.Join(o.Patterns, " ")
	if len(all) == 0 {
		return fmt.Errorf("%s: no mutant to try: look at PACKAGES, since their code has nothing to change", packages)
	}
	return fmt.Errorf("%s: no mutant to try: look at MATCH, since %q matches none of the %d, the first of them being\n%s",
		packages, o.Match, len(all), all[0].Change())
}

// noTest says why there is no test to try mutants with.
func (o Options) noTest(failed []string) error {
	packages := strings.Join(slices.Concat(o.Patterns, o.Tests), " ")
	switch {
	case len(failed) > 0:
		return fmt.Errorf("%s: no test to try mutants with: those that run fail without a mutant:\n%s", packages, strings.Join(failed, "\n"))
	case o.Skip != nil:
		return fmt.Errorf("%s: no test to try mutants with: look at SKIP, since %q matches all, and at PACKAGES and TESTS", packages, o.Skip)
	default:
		return fmt.Errorf("%s: no test to try mutants with: look at PACKAGES and TESTS, since none of them has one", packages)
	}
}

// sample are n of the mutants, in the order in which the seed draws them: the first of them are a smaller sample.
func sample(all []Mutant, n int, seed uint64) []Mutant {
	if n == 0 {
		return all
	}
	draw := rand.New(rand.NewPCG(seed, 0))
	var drawn []Mutant
	for _, i := range draw.Perm(len(all))[:min(n, len(all))] {
		drawn = append(drawn, all[i])
	}
	return drawn
}

// plain builds the test binaries and runs every test by itself, without a mutant. The tests are in order of their binary and then of their time.
func (o Options) plain(ctx context.Context, t *tree, over *overlay, mutants int, scratch string, report *Report) ([]test, error) {
	replaced, err := over.write()
	if err != nil {
		return nil, err
	}
	with := t.packages
	if len(o.Tests) > 0 {
		others, err := list(o.Dir, o.Tests)
		if err != nil {
			return nil, err
		}
		with = append(slices.Clone(with), others.packages...)
	}
	var tests []test
	built := map[string]bool{}
	for i, l := range with {
		if !l.tested() || built[l.ImportPath] {
			continue
		}
		built[l.ImportPath] = true
		fmt.Fprintf(o.Progress, "%s: building and running the tests\n", l.ImportPath)
		b, err := t.build(ctx, l, replaced, scratch, i)
		if err != nil {
			return nil, err
		}
		found, err := b.plain(ctx, o.Skip, mutants, scratch, report)
		if err != nil {
			return nil, err
		}
		tests = append(tests, found...)
	}
	return tests, nil
}

// plain runs every test of a binary. Those that fail without a mutant are left out, and the report has them.
func (b *binary) plain(ctx context.Context, skip *regexp.Regexp, mutants int, scratch string, report *Report) ([]test, error) {
	names, err := b.names(ctx)
	if err != nil {
		return nil, err
	}
	if skip != nil {
		names = slices.DeleteFunc(names, skip.MatchString)
	}
	var mu sync.Mutex
	var tests []test
	each(len(names), func(i int) {
		t, passed := b.runPlain(ctx, names[i], mutants, scratch)
		mu.Lock()
		defer mu.Unlock()
		if passed {
			tests = append(tests, t)
		} else {
			report.LeftOut = append(report.LeftOut, b.pkg+" "+names[i])
		}
	})
	slices.Sort(report.LeftOut)
	slices.SortFunc(tests, func(a, b test) int { return cmp.Or(cmp.Compare(a.took, b.took), cmp.Compare(a.name, b.name)) })
	return tests, ctx.Err()
}

// try runs the tests that reach a mutant.
func (o Options) try(ctx context.Context, m Mutant, tests []test, scratch string) Result {
	var reach []test
	for _, t := range tests {
		if t.reaches[m.ID] != 0 {
			reach = append(reach, t)
		}
	}
	switch {
	case len(reach) == 0:
		return Result{Mutant: m, Outcome: NotCovered}
	case o.survives(ctx, m, reach, scratch):
		return Result{Mutant: m, Outcome: Survived}
	default:
		return Result{Mutant: m, Outcome: Killed}
	}
}

// each calls do for every number below n, some at once.
func each(n int, do func(int)) {
	next := make(chan int)
	var running sync.WaitGroup
	for range min(jobs, runtime.NumCPU()) {
		running.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	running.Wait()
}

// Check says which equivalents are no mutants of the code in the module of a directory. It tries none.
func Check(dir string, equivalents []Equivalent) error {
	var patterns []string
	for _, e := range equivalents {
		patterns = append(patterns, "./"+path.Dir(e.file()))
	}
	if len(patterns) == 0 {
		return nil
	}
	slices.Sort(patterns)
	scratch, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	t, err := list(dir, slices.Compact(patterns))
	if err != nil {
		return err
	}
	mutants, err := t.find(&overlay{dir: scratch, Replace: map[string]string{}})
	if err != nil {
		return err
	}
	_, err = apply(equivalents, t, mutants)
	return err
}
