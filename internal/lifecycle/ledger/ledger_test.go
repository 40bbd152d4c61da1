package ledger_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
)

func entry(request string, launch, hosts int) ledger.Reservation {
	return ledger.Reservation{Repository: "acme/app", RunID: "1", RequestID: request, Launch: launch, Hosts: hosts}
}

// TestWith: a request's launch has one reservation at most, and the ledger that it was made of stays as it is.
func TestWith(t *testing.T) {
	t.Parallel()
	before := ledger.Quota{Reservations: []ledger.Reservation{entry("a", 0, 1), entry("b", 0, 2), entry("b", 1, 4)}}
	stays := slices.Clone(before.Reservations)
	for name, tt := range map[string]struct {
		with ledger.Reservation
		want []ledger.Reservation
		used int
	}{
		"another request":              {entry("c", 0, 8), append(slices.Clone(stays), entry("c", 0, 8)), 15},
		"another launch":               {entry("b", 2, 8), append(slices.Clone(stays), entry("b", 2, 8)), 15},
		"the first, with more":         {entry("a", 0, 8), []ledger.Reservation{entry("a", 0, 8), stays[1], stays[2]}, 14},
		"the last, with fewer":         {entry("b", 1, 1), []ledger.Reservation{stays[0], stays[1], entry("b", 1, 1)}, 4},
		"the first, without hosts":     {entry("a", 0, 0), []ledger.Reservation{stays[1], stays[2]}, 6},
		"one between, without hosts":   {entry("b", 0, 0), []ledger.Reservation{stays[0], stays[2]}, 5},
		"another one, without hosts":   {entry("c", 0, 0), stays, 7},
		"another run's, without any":   {ledger.Reservation{Repository: "acme/app", RunID: "2", RequestID: "a"}, stays, 7},
		"another repository's request": {ledger.Reservation{Repository: "acme/lib", RunID: "1", RequestID: "a"}, stays, 7},
	} {
		got := before.With(tt.with)
		if diff := cmp.Diff(tt.want, got.Reservations); diff != "" || got.Used() != tt.used {
			t.Errorf("%s: %d are used, want %d (-want +got):\n%s", name, got.Used(), tt.used, diff)
		}
		if diff := cmp.Diff(stays, before.Reservations); diff != "" {
			t.Fatalf("%s: the ledger before (-want +got):\n%s", name, diff)
		}
	}
}

func TestReservationOf(t *testing.T) {
	t.Parallel()
	l := ledger.Quota{Reservations: []ledger.Reservation{entry("a", 0, 1), entry("a", 1, 2)}}
	q := lifecycle.Request{Repository: "acme/app", RunID: "1", RequestID: "a"}
	for launch, want := range []int{1, 2, 0} {
		if got := l.ReservationOf(q, launch).Hosts; got != want {
			t.Errorf("launch %d has %d hosts, want %d", launch, got, want)
		}
	}
}
