// Package racepass is what tests ask that do less under the race detector in
// make test. The command behind it (package testrun) runs every package whose tests
// import this one, directly or through a conformance suite, in two passes: completely
// without the race detector, and under it as far as these functions let it. It
// checks that the first of them has every test.
//
// A test that is run in any other way, such as by go test -race or make soak,
// leaves nothing out.
package racepass

import (
	"os"
	"strings"
	"sync"
	"testing"
)

// Variable is Value in the race pass of make test, and empty everywhere else.
const (
	Variable = "REMUDA_TEST_PASS"
	Value    = "race"
)

func on() bool { return raceEnabled && os.Getenv(Variable) == Value }

// OneGoroutine skips a test in the race pass: it uses one goroutine, so that the
// race detector can find nothing.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if on() {
		t.Skip("it uses one goroutine: the pass without the race detector runs it")
	}
	single.Lock()
	defer single.Unlock()
	if single.tests == nil {
		single.tests = map[string]bool{}
	}
	single.tests[t.Name()] = true
}

// CoveredBy skips a test in the race pass: its goroutines do what those of
// another test of its package do, which is in the race pass.
func CoveredBy(t testing.TB, other string) {
	t.Helper()
	if on() {
		t.Skipf("its goroutines do what those of %s do: the pass without the race detector runs it", other)
	}
}

// Every is the step with which a test goes through a long series of similar
// cases: 1, but n in the race pass.
func Every(t testing.TB, n int) int {
	t.Helper()
	if !on() {
		return 1
	}
	t.Logf("one case of %d: the pass without the race detector runs all", n)
	return n
}

// Goroutines fails a test that starts goroutines and lies within one that called
// OneGoroutine. It does so in every run.
func Goroutines(t testing.TB) {
	t.Helper()
	single.Lock()
	defer single.Unlock()
	for name := range single.tests {
		if strings.HasPrefix(t.Name()+"/", name+"/") {
			t.Errorf("%s starts goroutines, and %s is not run under the race detector in make test", t.Name(), name)
		}
	}
}

// single are the tests that called OneGoroutine, by their names.
var single struct {
	sync.Mutex
	tests map[string]bool
}
