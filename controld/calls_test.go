package main

import (
	"slices"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// TestCallsAreCountedByService: the backends of a fleet in AWS count what they call by service, with hosts and without, and what it took of
// DynamoDB, but not the calls to the machine's own metadata. A fleet on this machine calls nothing.
func TestCallsAreCountedByService(t *testing.T) {
	a := newAccount(t)
	a.addHostRole(t)
	path := a.configuration(t)
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := newServiceBackends(t.Context(), c, hclog.NewNullLogger(), false)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		backends *backends
		services []string
	}{
		"with hosts": {backendsOf(t, path), []string{"dynamodb", "ec2", "iam", "sqs"}}, "without hosts": {alone, []string{"dynamodb"}},
	} {
		if _, err := tt.backends.ensure(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		made := callsMade(tt.backends.calls)
		before := made()
		if _, err := tt.backends.store.UpdateCallsOfDay(t.Context(), meter.NewCallsOfDay("2026-11-27", name)); err != nil {
			t.Fatal(err)
		}
		var called []string
		for _, calls := range made() {
			called = append(called, calls.Service)
		}
		if !slices.Equal(called, tt.services) {
			t.Errorf("%s: %v were called, want %v", name, called, tt.services)
		}
		grown := meter.CallsOfDay{}.Grown(before, made()).Services
		if !slices.Equal(grown, []meter.Calls{{Service: "dynamodb", Requests: 1, Writes: 1}}) {
			t.Errorf("%s: one write is counted as %+v", name, grown)
		}
	}
	if callsMade(nil) != nil {
		t.Error("a fleet outside AWS counts calls")
	}
}
