package arrival_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
)

// TestWith: each miss is listed once, in the order in which people read them, and a list that was handed out stays as it is.
func TestWith(t *testing.T) {
	t.Parallel()
	one := arrival.With(arrival.With(nil, arrival.MissLost), arrival.MissTrust)
	two := arrival.With(arrival.With(one, arrival.MissPool), arrival.MissLost)
	if diff := cmp.Diff([]arrival.Miss{arrival.MissTrust, arrival.MissLost}, one); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]arrival.Miss{arrival.MissPool, arrival.MissTrust, arrival.MissLost}, two); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
