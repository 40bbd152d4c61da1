package sim_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/sim"
)

// coveredSeeds are the lives over which the coverage of all kinds of fault and
// action is measured: the first ones of all that are lived.
const coveredSeeds = 120

// firstLives has the results of the first lives, once they were lived.
var firstLives = map[uint64]sim.Result{}

// firstLife is one of the first lives.
func firstLife(seed uint64) sim.Result {
	r, ok := firstLives[seed]
	if !ok {
		r = sim.Run(sim.Config{Seed: seed})
		firstLives[seed] = r
	}
	return r
}

// TestLives: in all lives in which planted bugs are looked for, no rule is broken
// without one.
func TestLives(t *testing.T) {
	coverage := sim.NewCoverage()
	for seed := range uint64(bugSeeds) {
		r := firstLife(seed + 1)
		if r.Violation != nil {
			t.Fatalf("seed %d: %v\n%s\nreplay it with: make sim SEED=%d",
				r.Seed, r.Violation, strings.Join(r.Violation.Trace, "\n"), r.Seed)
		}
		if seed < coveredSeeds {
			coverage.Add(r.Coverage)
		}
	}
	for _, m := range coverage.Missing() {
		t.Errorf("over %d seeds this never happened: %s", coveredSeeds, m)
	}
	if t.Failed() {
		t.Log(coverage)
	}
}

// TestLivesThatBrokeARule: what once broke a rule in these lives is mended.
func TestLivesThatBrokeARule(t *testing.T) {
	for _, line := range strings.Split(strings.TrimSpace(read(t, "testdata/lives.txt")), "\n") {
		number, _, _ := strings.Cut(line, " ")
		if number == "#" {
			continue
		}
		seed, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if r := sim.Run(sim.Config{Seed: seed}); r.Violation != nil {
			t.Errorf("seed %d: %v", seed, r.Violation)
		}
	}
}

// TestReplay: the same seed gives the same life, event for event, and another
// seed another.
func TestReplay(t *testing.T) {
	hashes := map[uint64]uint64{}
	for seed := range uint64(8) {
		first, second := firstLife(seed), sim.Run(sim.Config{Seed: seed})
		if first.Hash != second.Hash || first.Events != second.Events || first.Calls != second.Calls {
			t.Errorf("seed %d: trace %016x of %d events, then %016x of %d", seed, first.Hash, first.Events, second.Hash, second.Events)
		}
		if other, ok := hashes[first.Hash]; ok {
			t.Errorf("seeds %d and %d live the same life", seed, other)
		}
		hashes[first.Hash] = seed
	}
}

// TestLogChangesNothing: looking closer must not change what is looked at.
func TestLogChangesNothing(t *testing.T) {
	quiet, loud := sim.Run(sim.Config{Seed: 5}), sim.Run(sim.Config{Seed: 5, Log: true})
	if quiet.Events != loud.Events || quiet.Calls != loud.Calls || quiet.Virtual != loud.Virtual {
		t.Errorf("with logs the life differs: %d events and %d calls, without %d and %d",
			loud.Events, loud.Calls, quiet.Events, quiet.Calls)
	}
}

// TestSizes: more hosts and longer lives work too.
func TestSizes(t *testing.T) {
	r := sim.Run(sim.Config{Seed: 3, Hosts: 40, Chaos: 30 * time.Minute})
	if r.Violation != nil {
		t.Fatalf("%v\n%s", r.Violation, strings.Join(r.Violation.Trace, "\n"))
	}
}
