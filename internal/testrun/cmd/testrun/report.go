package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"
)

// slowest is how many packages are listed at the end.
const slowest = 10

// report prints what ran and how long it took. It fails if a test did, or if one was left out.
func report(all []testPackage, passes []*pass, took time.Duration) error {
	race, plain := passes[0], passes[1]
	fmt.Println()
	for _, p := range passes {
		ran, skipped := p.count()
		fmt.Printf("pass %-5s  %5d tests in %2d packages ran, %d were left to the other pass\n", p.name, ran, len(p.packages), skipped)
	}
	printShares(race, plain)
	wrong := leftOut(all, race, plain)
	printSlowest(passes)
	fmt.Printf("%6.0fs in all, of them %.0fs of processor time for all processes but the emulators\n", took.Seconds(), processorTime().Seconds())
	for _, w := range wrong {
		fmt.Println("LEFT OUT:", w)
	}
	for _, p := range passes {
		if p.err != nil {
			fmt.Printf("pass %s: FAILED: %v\n", p.name, p.err)
			wrong = append(wrong, p.name)
		}
	}
	if len(wrong) > 0 {
		return errFailed
	}
	return nil
}

func (p *pass) count() (ran, skipped int) {
	for _, r := range p.results {
		for _, outcome := range r.tests {
			if outcome == "skip" {
				skipped++
			} else {
				ran++
			}
		}
	}
	return ran, skipped
}

// printShares says for each package that is in both passes what ran in the race pass.
func printShares(race, plain *pass) {
	for _, pkg := range slices.Sorted(maps.Keys(race.results)) {
		complete := plain.results[pkg]
		if complete == nil || len(complete.tests) == 0 {
			continue
		}
		ran, left := 0, []string{}
		for _, name := range slices.Sorted(maps.Keys(race.results[pkg].tests)) {
			if race.results[pkg].tests[name] != "skip" {
				ran++
			} else if !strings.Contains(name, "/") {
				left = append(left, name)
			}
		}
		if len(complete.tests) == ran && len(left) == 0 {
			continue
		}
		fmt.Printf("%s: all %d tests in pass %s, %d of them in pass %s too", strings.TrimPrefix(pkg, module), len(complete.tests), plain.name, ran, race.name)
		if len(left) > 0 {
			fmt.Printf(", but not %s", strings.Join(left, " "))
		}
		fmt.Println()
	}
}

// leftOut says what did not run completely. A package is complete in the plain
// pass if it is there, and else in the race pass: there it leaves out nothing, and
// what the other pass has of it is part of that.
func leftOut(all []testPackage, race, plain *pass) []string {
	var wrong []string
	for _, p := range all {
		complete, other := plain.results[p.ImportPath], race.results[p.ImportPath]
		if complete == nil {
			complete, other = other, nil
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		if complete == nil {
			wrong = append(wrong, name+" ran in no pass")
			continue
		}
		for _, test := range slices.Sorted(maps.Keys(complete.tests)) {
			if complete.tests[test] == "skip" {
				wrong = append(wrong, name+": "+test+" was skipped in the pass that has to be complete")
			}
		}
		if other == nil || complete.outcome == "fail" || other.outcome == "fail" {
			continue
		}
		for _, test := range slices.Sorted(maps.Keys(other.tests)) {
			_, ran := complete.tests[test]
			// A subtest that did run may be one more of a series, whose end one
			// step of several went beyond.
			if !ran && (other.tests[test] == "skip" || !strings.Contains(test, "/")) {
				wrong = append(wrong, name+": "+test+" is missing in the pass that has to be complete")
			}
		}
	}
	return wrong
}

func printSlowest(passes []*pass) {
	type line struct {
		pkg, pass string
		elapsed   float64
	}
	var lines []line
	for _, p := range passes {
		for pkg, r := range p.results {
			if !r.cached {
				lines = append(lines, line{strings.TrimPrefix(pkg, module), p.name, r.elapsed})
			}
		}
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(b.elapsed, a.elapsed) })
	fmt.Printf("\nthe slowest packages of %d that ran:\n", len(lines))
	for _, l := range lines[:min(slowest, len(lines))] {
		fmt.Printf("%6.1fs  %-5s  %s\n", l.elapsed, l.pass, l.pkg)
	}
}

// processorTime is that of this process and of those it has waited for.
func processorTime() time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}
