package awsfaults_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// burst is as many hosts as one request may ask for here.
const burst = 200

// TestTwoHundredHostsInOneProvision are launched in one call, and each is
// recorded, given to the run and ended once.
func TestTwoHundredHostsInOneProvision(t *testing.T) {
	racepass.CoveredBy(t, "TestEveryCallOfALifeInTurn")
	t.Parallel()
	w := newWorld(t, 1)
	w.must("refresh", w.fleet.NewRefresh(false))
	w.made = true
	before := len(w.proxy.Calls())
	p := w.provision("201", burst)
	w.must("provision", p)
	w.wantHosts("provisioned", burst, p)
	ids := map[string]bool{}
	for _, r := range p.Instances() {
		ids[r.InstanceID] = true
	}
	if len(ids) != burst {
		t.Errorf("%d ids of %d hosts", len(ids), burst)
	}
	calls := w.callsSince(before)
	t.Logf("provision of %d: %s", burst, told(calls))
	// A record, its first event and its way to running are a few writes for each host; all else
	// is in batches.
	for call, most := range map[string]int{"ec2:CreateFleet": 1, "ec2:DescribeInstances": 2, "dynamodb:BatchGetItem": 40, "dynamodb:Query": 20} {
		if calls[call] > most {
			t.Errorf("%d calls of %s, want at most %d", calls[call], call, most)
		}
	}

	before = len(w.proxy.Calls())
	w.must("release", w.release("201"))
	w.wantPooled("released", burst)
	t.Logf("release of %d: %s", burst, told(w.callsSince(before)))
	before = len(w.proxy.Calls())
	w.pass(6 * time.Minute)
	w.wantNothing("after the idle time")
	calls = w.callsSince(before)
	t.Logf("end of %d: %s", burst, told(calls))
	if n := calls["ec2:TerminateInstances"]; n > 2 {
		t.Errorf("%d calls ended %d machines, want one for each 100", n, burst)
	}
}

// TestTwoHundredHostsAreRolledBack when none of them answers: the launch is one
// call, and nothing of it is left.
func TestTwoHundredHostsAreRolledBack(t *testing.T) {
	racepass.CoveredBy(t, "TestEveryCallOfALifeInTurn")
	t.Parallel()
	w := newWorld(t, 1)
	w.must("refresh", w.fleet.NewRefresh(false))
	w.made, w.mute = true, true
	before := len(w.proxy.Calls())
	p := w.provision("301", burst, func(s *lifecycle.Spec) { s.Timeout = 20 * time.Second })
	err := w.drive(p)[0]
	var short *fleet.ShortError
	if !errors.As(err, &short) || short.Ready != 0 || short.Wanted != burst {
		t.Fatalf("got %v, want that 0 of %d were ready", err, burst)
	}
	if n := len(w.instances()); n != burst {
		t.Errorf("%d machines were launched, want %d", n, burst)
	}
	w.pass(time.Minute)
	w.wantNothing("rolled back")
	if q := w.requests("301")[0]; q.Outcome != lifecycle.OutcomeShort || !q.DueAt.IsZero() || len(q.Taken) != 0 {
		t.Errorf("the request came out as %q with %d hosts, due at %v", q.Outcome, len(q.Taken), q.DueAt)
	}
	t.Logf("rollback of %d: %s", burst, told(w.callsSince(before)))
}

func (w *world) callsSince(n int) map[string]int {
	calls := map[string]int{}
	for _, c := range w.proxy.Calls()[n:] {
		calls[c.Action()]++
	}
	return calls
}

func told(calls map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		all = append(all, fmt.Sprintf("%d %s", calls[name], name))
	}
	return strings.Join(all, ", ")
}
