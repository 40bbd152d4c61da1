package provision

import (
	"errors"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// TestClaiming: a host is reserved once. The reservation ends by itself, so a claim that hangs starves no other request, and what ended is forgotten.
func TestClaiming(t *testing.T) {
	var c claiming
	const one, two claimer = 1, 2
	now := time.Unix(1000, 0)
	a, again := offer{"a", 2}, offer{"a", 3}
	if !c.begin(a, one, now.Add(-1)) || !c.begin(a, one, now) || c.begin(a, two, now.Add(reservedFor-1)) {
		t.Error("a host is reserved by two requests, or by none")
	}
	if !c.begin(again, one, now) {
		t.Error("the next assignment of a host is another offer")
	}
	if !c.begin(a, two, now.Add(reservedFor)) {
		t.Error("a reservation does not end")
	}
	c.end(a)
	if !c.begin(a, one, now.Add(reservedFor)) {
		t.Error("a host that was given back is still reserved")
	}
	b, later := offer{"b", 1}, now.Add(2*reservedFor)
	if !c.begin(a, one, later) || !c.begin(b, one, later) || !c.begin(a, one, later.Add(time.Second)) || !c.begin(b, two, later.Add(reservedFor)) {
		t.Error("a reservation behind one that was renewed lasts longer")
	}
	for i := range int64(1000) {
		c.begin(offer{"b", i}, one, now.Add(time.Duration(i)*time.Second))
	}
	if len(c.tries) > 20 || len(c.order) > 20 {
		t.Errorf("%d reservations and %d in their order are kept of 10 s", len(c.tries), len(c.order))
	}
}

// TestClaimers: each request has a number of its own, and keeps it.
func TestClaimers(t *testing.T) {
	env := &Provisioner{}
	one, two := &Provision{env: env}, &Provision{env: env}
	if a, b := one.claimer(), two.claimer(); a == b || a != one.claimer() || b != two.claimer() {
		t.Errorf("two requests have the numbers %d and %d, and later %d and %d", a, b, one.claimer(), two.claimer())
	}
}

// TestUnreserve: in a pool with caches, whose hosts are in no queue, a host that no claim was made of is free at once, as where GitHub is away. One that a claim
// may have taken stays reserved.
func TestUnreserve(t *testing.T) {
	now, away := time.Unix(1000, 0), errors.New("GitHub is away")
	for name, tt := range map[string]struct {
		attempt attempt
		free    bool
	}{
		"no claim was made":  {attempt{err: away}, true},
		"no answer":          {attempt{err: away, made: true}, false},
		"another has it":     {attempt{lost: true}, false},
		"the claim was made": {attempt{}, false},
	} {
		env := &Provisioner{Pools: map[string]ports.Pool{"jobs": {Caches: []cache.Spec{{Name: "go"}}}}}
		one, two := &Provision{env: env}, &Provision{env: env}
		for _, p := range []*Provision{one, two} {
			p.demand.Spec = lifecycle.Spec{Pool: "jobs", JobsOf: "jobs"}
			p.q.Spec = p.demand.Spec
		}
		tt.attempt.Message = lifecycle.Message{HostKey: "a", Assignment: 2}
		if !one.reserve(tt.attempt.Message, now) {
			t.Fatalf("%s: the host is not reserved", name)
		}
		one.unreserve(&tt.attempt)
		if free := two.reserve(tt.attempt.Message, now); free != tt.free {
			t.Errorf("%s: the host is free: %v, want %v", name, free, tt.free)
		}
	}
}
