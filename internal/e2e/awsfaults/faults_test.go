package awsfaults_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// TestEveryCallOfALifeInTurn goes through the life of a small fleet once without
// a fault, and then again and again until each call that was made then has failed.
// Whatever it is, the fleet comes through: nothing is leaked, nothing is claimed
// twice, every request is settled, and no launch is repeated with another token.
func TestEveryCallOfALifeInTurn(t *testing.T) {
	t.Parallel()
	everyCallInTurn(t, (*world).prepare, life)
}

// TestEveryCallOfARefreshInTurn: one of them fails, and in the end everything
// was still made.
func TestEveryCallOfARefreshInTurn(t *testing.T) {
	t.Parallel()
	everyCallInTurn(t, func(*world) {}, refreshes)
}

// livesUnderRace: in make test, one life of so many is lived under the race detector, and as many more as it takes to
// meet every kind of fault. Each life makes all of the calls.
const livesUnderRace = 20

// everyCallInTurn prepares and plays once to see which calls there are, and then
// again with some of them failing: in each phase of a life one call fails, so each fault
// is alone in its phase.
func everyCallInTurn(t *testing.T, prepare func(*world), phases []phase) {
	e := &everyCall{prepare: prepare, phases: phases}
	planned := e.plan(t)
	lives := together(planned, len(phases))
	chosen := choose(lives, racepass.Every(t, livesUnderRace))
	t.Run("lives", func(t *testing.T) {
		for _, n := range chosen {
			t.Run(fmt.Sprint(n+1), func(t *testing.T) { t.Parallel(); e.live(t, lives[n]) })
		}
	})
	alone := e.unmet
	t.Run("alone", func(t *testing.T) {
		for _, f := range alone {
			t.Run(f.String(), func(t *testing.T) { t.Parallel(); e.live(t, []fault{f}) })
		}
	})
	e.wantEachOnce(t, lives, chosen)
	t.Logf("%d faults in %d lives, %d of them in a life of their own", len(planned), len(lives)+len(alone), len(alone))
}

// everyCall is what the lives share.
type everyCall struct {
	prepare func(*world)
	phases  []phase

	mu    sync.Mutex
	met   map[fault]int // how many calls each fault met
	unmet []fault       // those that must be met in a life of their own
}

// fault is one call that fails.
type fault struct {
	call  aws.Call
	nth   int // of the operation's calls in a life
	kind  awstest.Kind
	tries int // by the SDK
	// Where the call is: the phase, and which of the operation's calls there.
	phase, nthThere int
}

func (f fault) String() string {
	return fmt.Sprintf("%s %d %v, %d tries", f.call.Action(), f.nth, f.kind, f.tries)
}

// plan lives once and returns the faults for every call that was made.
func (e *everyCall) plan(t *testing.T) []fault {
	t.Helper()
	w := newWorld(t, 1)
	e.prepare(w)
	made := map[aws.Call][]int{} // the phases of an operation's calls
	for n, p := range e.phases {
		before := len(w.proxy.Calls())
		p.play(w)
		for _, c := range w.proxy.Calls()[before:] {
			made[c.Call] = append(made[c.Call], n)
		}
	}
	operations := slices.SortedFunc(maps.Keys(made), func(a, b aws.Call) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Operation, b.Operation))
	})
	var planned []fault
	for n, operation := range operations {
		for _, r := range runsOf(n, len(made[operation])) {
			phase := made[operation][r.nth-1]
			nthThere := r.nth - slices.Index(made[operation], phase)
			planned = append(planned, fault{operation, r.nth, r.kind, r.tries, phase, nthThere})
		}
	}
	return planned
}

// together puts faults into as few lives as it takes: at most one in each phase, and
// the SDK tries equally often in all of them.
func together(planned []fault, phases int) [][]fault {
	var lives [][]fault
	for _, tries := range triesOf {
		first, used := len(lives), make([]int, phases)
		for _, f := range planned {
			if f.tries != tries {
				continue
			}
			n := first + used[f.phase]
			if used[f.phase]++; n == len(lives) {
				lives = append(lives, nil)
			}
			lives[n] = append(lives[n], f)
		}
	}
	return lives
}

// choose returns the numbers of every step-th life, and of those that meet a kind of fault which none before them does.
func choose(lives [][]fault, step int) []int {
	var chosen []int
	kinds := map[awstest.Kind]bool{}
	for n, faults := range lives {
		if n%step > 0 && !slices.ContainsFunc(faults, func(f fault) bool { return !kinds[f.kind] }) {
			continue
		}
		chosen = append(chosen, n)
		for _, f := range faults {
			kinds[f.kind] = true
		}
	}
	return chosen
}

// live goes through a life in which these calls fail. An earlier fault may have a later
// phase make other calls, so that a fault meets none: it then gets a life of its own.
func (e *everyCall) live(t *testing.T, faults []fault) {
	w := newWorld(t, faults[0].tries)
	e.prepare(w)
	for n, p := range e.phases {
		at := slices.IndexFunc(faults, func(f fault) bool { return f.phase == n })
		if at < 0 {
			p.play(w)
			continue
		}
		f := faults[at]
		ok := t.Run(f.String(), func(sub *testing.T) {
			w.t = sub
			defer func() { w.t = t }()
			struck := w.proxy.Inject(awstest.Fault{Service: f.call.Service, Operation: f.call.Operation, Nth: f.nthThere, Kind: f.kind})
			p.play(w)
			w.proxy.Heal()
			e.note(sub, f, len(struck), len(faults) == 1)
		})
		if !ok {
			t.Fatalf("in the phase %q", p.name)
		}
	}
}

func (e *everyCall) note(t *testing.T, f fault, struck int, alone bool) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case struck == 1:
		if e.met == nil {
			e.met = map[fault]int{}
		}
		e.met[f]++
	case struck == 0 && !alone:
		e.unmet = append(e.unmet, f)
	default:
		t.Errorf("the fault met %d calls", struck)
	}
}

// wantEachOnce: every fault of the lives that were lived met one call, once.
func (e *everyCall) wantEachOnce(t *testing.T, lives [][]fault, chosen []int) {
	t.Helper()
	for _, n := range chosen {
		for _, f := range lives[n] {
			if e.met[f] != 1 {
				t.Errorf("%v was met %d times", f, e.met[f])
			}
		}
	}
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
