package mutation_test

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/mutation"
	"github.com/remuda-ci/remuda/internal/testrun"
	"github.com/remuda-ci/remuda/internal/testrun/golden"
)

var update = flag.Bool("update", false, "write the golden files again")

// small are options for the package in testdata.
func small(o mutation.Options) mutation.Options {
	o.Dir, o.Patterns, o.Patience, o.Progress = "testdata/small", []string{"."}, time.Second/2, io.Discard
	return o
}

func run(t *testing.T, o mutation.Options) *mutation.Report {
	t.Helper()
	testrun.Fresh() // go list and go test read what is not in this package
	report, err := mutation.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestOutcomes has every mutant of a small package, and what became of it.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	report := run(t, small(mutation.Options{}))
	golden.File(t, "testdata/outcomes.golden", *update, func(string) string { return outcomes(report) })
	if diff := gocmp.Diff([]string{"example.com/small TestThatFailsAnyway"}, report.LeftOut); diff != "" {
		t.Errorf("tests that were left out (-want +got):\n%s", diff)
	}
}

func outcomes(report *mutation.Report) string {
	var b strings.Builder
	for _, r := range report.Results {
		fmt.Fprintf(&b, "%-11s %-10s %d: %s\n", r.Outcome, r.Kind, r.Line, cmp.Or(r.Func, "(package)")+": "+r.Before+" -> "+r.After)
	}
	return b.String()
}

// TestTestsOfAnotherPackage: they count once they are named.
func TestTestsOfAnotherPackage(t *testing.T) {
	t.Parallel()
	report := run(t, small(mutation.Options{Tests: []string{"./caller"}}))
	for _, r := range report.Results {
		if r.Func == "Unused" && r.Outcome != mutation.Killed {
			t.Errorf("%s: %s", r.Outcome, r.Change())
		}
	}
}

// TestMatch tries only what was asked for.
func TestMatch(t *testing.T) {
	t.Parallel()
	report := run(t, small(mutation.Options{Match: regexp.MustCompile(`^small.go: Grown: .*>`)}))
	if total := report.Total(); total.Mutants != 2 || total.Killed != 1 || report.Found != 2 {
		t.Errorf("%+v of %d", total, report.Found)
	}
}

// TestSkip: without its test a mutant is not covered, and a test that fails anyway is not left out when it does not run.
func TestSkip(t *testing.T) {
	t.Parallel()
	report := run(t, small(mutation.Options{Skip: regexp.MustCompile("Grown|FailsAnyway"), Match: regexp.MustCompile("Grown")}))
	if total := report.Total(); total.NotCovered != 2 || total.Mutants != 2 || len(report.LeftOut) != 0 {
		t.Errorf("%+v, without %v", total, report.LeftOut)
	}
}

// TestSample draws the same mutants by the same seed, and other ones by another.
func TestSample(t *testing.T) {
	t.Parallel()
	drawn := map[uint64]string{}
	for _, seed := range []uint64{1, 1, 2} {
		report := run(t, small(mutation.Options{Sample: 5, Seed: seed}))
		if report.Total().Mutants != 5 || report.Found <= 5 {
			t.Errorf("seed %d: %d of %d mutants, want 5 of more", seed, report.Total().Mutants, report.Found)
		}
		if before, ok := drawn[seed]; ok && before != outcomes(report) {
			t.Errorf("seed %d drew\n%s\nand then\n%s", seed, before, outcomes(report))
		}
		drawn[seed] = outcomes(report)
	}
	if drawn[1] == drawn[2] {
		t.Errorf("seeds 1 and 2 drew the same:\n%s", drawn[1])
	}
}

// TestNothingToTry: a run that tries no mutant is an error that says what to look at, and not a score.
func TestNothingToTry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options mutation.Options
		in      string // "": the package itself
		want    string
	}{
		"no mutant matches": {
			options: mutation.Options{Match: regexp.MustCompile("another.go")},
			want:    `.: no mutant to try: look at MATCH, since "another.go" matches none of the `,
		},
		"a package without code": {in: "./caller", want: "./caller: no mutant to try: look at PACKAGES, since their code has nothing to change"},
		"a package for tests":    {in: "./smalltest", want: "./smalltest: no mutant to try: look at PACKAGES, since their code has nothing to change"},
		"no test runs": {
			options: mutation.Options{Skip: regexp.MustCompile(".")},
			want:    `.: no test to try mutants with: look at SKIP, since "." matches all, and at PACKAGES and TESTS`,
		},
		"no test passes": {
			options: mutation.Options{Skip: regexp.MustCompile("^Test[^T]")},
			want:    ".: no test to try mutants with: those that run fail without a mutant:\nexample.com/small TestThatFailsAnyway",
		},
		"no tests":                {in: "./untested", want: "./untested: no test to try mutants with: look at PACKAGES and TESTS, since none of them has one"},
		"a sample of less than 0": {options: mutation.Options{Sample: -1}, want: "a sample of -1 mutants: it is at least 1, or 0 for all"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testrun.Fresh()
			o := small(c.options)
			if c.in != "" {
				o.Patterns = []string{c.in}
			}
			report, err := mutation.Run(t.Context(), o)
			if report != nil || err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("report %v, error %v; want %s", report, err, c.want)
			}
		})
	}
}

func TestEquivalents(t *testing.T) {
	t.Parallel()
	const same = "small.go: Same: s = fmt.Sprint(s) -> removed"
	const grown = "small.go: Grown: age >= 18 -> age < 18"
	for name, c := range map[string]struct {
		change, wrong string // what is wrong, in the error
		score         mutation.Score
	}{
		"one that no test finds": {change: same, score: mutation.Score{Equivalent: 1}},
		"one that a test finds":  {change: grown, wrong: "so they are none:\n" + grown},
		"one that is not there":  {change: "small.go: Same: s = s -> removed", wrong: "no mutants any more"},
		"one of another package": {change: "other/other.go: Same: s = s -> removed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testrun.Fresh()
			report, err := mutation.Run(t.Context(), small(mutation.Options{Equivalents: []mutation.Equivalent{{c.change, "it is so"}}}))
			if err == nil {
				err = report.Print(io.Discard)
			}
			if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("error %v, want %q", err, c.wrong)
			}
			if report != nil && report.Total().Equivalent != c.score.Equivalent {
				t.Errorf("%d equivalents, want %d", report.Total().Equivalent, c.score.Equivalent)
			}
		})
	}
}

func TestReadEquivalents(t *testing.T) {
	t.Parallel()
	const list = "# It is\n# so.\na.go: F: a -> b\nb.go: F: a -> b\n\n# It is otherwise.\nc.go: F: a -> b\n"
	got, err := mutation.ReadEquivalents(strings.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	want := []mutation.Equivalent{{"a.go: F: a -> b", "It is so."}, {"b.go: F: a -> b", "It is so."}, {"c.go: F: a -> b", "It is otherwise."}}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := mutation.ReadEquivalents(strings.NewReader("# It is so.\n\na.go: F: a -> b\n")); err == nil {
		t.Error("an equivalent without a reason was read")
	}
}

// TestEquivalentsAreMutants: each equivalent of the product is a mutant of its code as it is now.
func TestEquivalentsAreMutants(t *testing.T) {
	t.Parallel()
	testrun.Fresh()
	f, err := os.Open("equivalents.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	equivalents, err := mutation.ReadEquivalents(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := mutation.Check(filepath.Join("..", ".."), equivalents); err != nil {
		t.Error(err)
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	mutant := mutation.Mutant{Package: "p", File: "p/a.go", Line: 3, Func: "F", Kind: mutation.Boundary, Before: "a < b", After: "a <= b"}
	report := mutation.Report{Found: 100, Sample: 4, Seed: 7, Took: 90 * time.Second, LeftOut: []string{"p TestX"}}
	for _, outcome := range []mutation.Outcome{mutation.Killed, mutation.Survived, mutation.NotCovered} {
		report.Results = append(report.Results, mutation.Result{Mutant: mutant, Outcome: outcome})
	}
	report.Results = append(report.Results, mutation.Result{Mutant: mutant, Outcome: mutation.Survived, Equivalent: "it is so"})
	golden.File(t, "testdata/report.golden", *update, func(string) string {
		var b strings.Builder
		if err := report.Print(&b); err != nil {
			t.Error(err)
		}
		return b.String()
	})
}
