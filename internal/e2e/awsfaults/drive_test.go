package awsfaults_test

import (
	"context"
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const (
	// pause is before a step that failed is repeated, at the most.
	pause = 100 * time.Millisecond
	// stepsAtMost is many times what any operation here needs.
	stepsAtMost = 20_000
)

// drive steps operations in turn, as a daemon does those of several callers,
// until each is done or has failed. What was unavailable is tried again. While
// all of them wait, the hosts answer and the clock goes on.
func (w *world) drive(ops ...fleet.Op) []error {
	w.t.Helper()
	errs, done := make([]error, len(ops)), make([]bool, len(ops))
	for step := 0; ; step++ {
		if step == stepsAtMost {
			w.t.Fatal("the operations do not end")
		}
		open, waits := 0, time.Duration(0)
		for i, op := range ops {
			if done[i] {
				continue
			}
			p, err := op.Step(context.Background(), w.now())
			if errors.Is(err, lifecycle.ErrUnavailable) {
				p, err = fleet.Progress{Wait: pause}, nil
			}
			if done[i], errs[i] = p.Done || err != nil, err; done[i] {
				continue
			}
			if open++; open == 1 || p.Wait < waits {
				waits = p.Wait
			}
		}
		if open == 0 {
			return errs
		}
		if waits > 0 {
			w.answer()
			w.ahead += waits
		}
	}
}

// must drives operations that have to end well.
func (w *world) must(what string, ops ...fleet.Op) {
	w.t.Helper()
	for _, err := range w.drive(ops...) {
		if err != nil {
			w.t.Fatalf("%s: %v", what, err)
		}
	}
}

func (w *world) provision(run string, count int, change ...func(*lifecycle.Spec)) *fleet.Provision {
	w.t.Helper()
	d := fleet.Demand{Repository: repository, RunID: run, RequestID: "request-" + run, Spec: lifecycle.Spec{Count: count, Timeout: 5 * time.Minute}}
	for _, c := range change {
		c(&d.Spec)
	}
	p, err := w.fleet.NewProvision(d)
	check(w.t, err)
	return p
}

func (w *world) release(run string) *fleet.Release {
	return w.fleet.NewRelease(repository, run, 0, true)
}

// sweepsInPass are as many due sweeps as it takes to end a host, even if a call fails in each.
const sweepsInPass = 3

// pass lets time pass and sweeps what is due as often as it takes: an operator sees
// only the sweeper's interval of it.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.letPass(d)
	for range sweepsInPass {
		w.sweepDue()
	}
}

// letPass lets time pass, in which the hosts live on.
func (w *world) letPass(d time.Duration) {
	w.t.Helper()
	w.ahead += d
	w.answer()
}

// sweepDue sweeps what is due, and lets enough time pass for the next sweep to look
// again at a machine whose end was ordered.
func (w *world) sweepDue() {
	w.t.Helper()
	w.must("due sweep", w.fleet.NewDueSweep())
	w.ahead += 11 * time.Second
}
