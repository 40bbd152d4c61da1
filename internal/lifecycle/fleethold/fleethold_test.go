package fleethold_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
)

var until = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func TestHold(t *testing.T) {
	t.Parallel()
	for want, h := range map[string]fleethold.Hold{
		"the fleet is held until 2026-03-02T12:00:00Z":               {Until: until},
		"the fleet is held until 2026-03-02T12:00:00Z by ann":        {Until: until, By: "ann"},
		"the fleet is held until 2026-03-02T12:00:00Z (an audit)":    {Until: until.In(time.FixedZone("", 3600)), Reason: "an audit\nof all"},
		"the fleet is held until 2026-03-02T12:00:00Z by ann (test)": {Until: until, By: "ann", Reason: "test"},
	} {
		if got := h.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got, want := (&fleethold.Error{Hold: h}).Error(), want+": nothing is ended; take the hold away first"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if !h.InForce(until.Add(-1)) || h.InForce(until) {
			t.Errorf("%s: in force before it ends %t, and then %t", h, h.InForce(until.Add(-1)), h.InForce(until))
		}
	}
}

// TestMark: a host is looked at twice between the end of the hold that it knows of and that of its mark.
func TestMark(t *testing.T) {
	t.Parallel()
	if got, want := (fleethold.Hold{Until: until}).Mark(), until.Add(2*time.Minute); !got.Equal(want) {
		t.Errorf("marked until %s, want %s", got, want)
	}
}
