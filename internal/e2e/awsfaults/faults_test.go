package awsfaults_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
)

// TestEveryCallOfALifeInTurn goes through the life of a small fleet once without
// a fault, and then once for each call that was made then, which fails. Whatever
// it is, the fleet comes through: nothing is leaked, nothing is claimed twice,
// every request is settled, and no launch is repeated with another token.
func TestEveryCallOfALifeInTurn(t *testing.T) {
	everyCallInTurn(t, func(w *world) { w.must("refresh", w.fleet.NewRefresh(false)); w.made = true }, (*world).life)
}

// TestEveryCallOfARefreshInTurn: one of them fails, and in the end everything
// was made all the same.
func TestEveryCallOfARefreshInTurn(t *testing.T) {
	everyCallInTurn(t, func(*world) {}, (*world).refreshes)
}

// everyCallInTurn prepares and plays once to see which calls there are, and then
// again with one of them failing.
func everyCallInTurn(t *testing.T, prepare, play func(*world)) {
	made := map[aws.Call]int{}
	w := newWorld(t, 1)
	prepare(w)
	before := len(w.proxy.Calls())
	play(w)
	for _, c := range w.proxy.Calls()[before:] {
		made[c.Call]++
	}
	operations := slices.SortedFunc(maps.Keys(made), func(a, b aws.Call) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Operation, b.Operation))
	})
	runs := 0
	for n, operation := range operations {
		for _, r := range runsOf(n, made[operation]) {
			runs++
			f := awstest.Fault{Service: operation.Service, Operation: operation.Operation, Nth: r.nth, Kind: r.kind}
			t.Run(fmt.Sprintf("%s %d %v, %d tries", operation.Action(), r.nth, r.kind, r.tries), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, r.tries)
				prepare(w)
				struck := w.proxy.Inject(f)
				play(w)
				if len(struck) != 1 {
					t.Errorf("the fault met %d calls", len(struck))
				}
			})
		}
	}
	t.Logf("%d operations, %d calls, %d runs", len(operations), len(w.proxy.Calls())-before, runs)
}

// run is one time through.
type run struct {
	nth   int // of the operation's calls, the one that fails
	kind  awstest.Kind
	tries int // by the SDK
}

// triesOf are the SDK's: with one, a fault comes to the use-cases; with two, the
// SDK sends again what may have taken effect.
var triesOf = []int{1, 2}
