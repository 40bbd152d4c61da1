package explore_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/sim/explore"
)

// choiceKinds are what must have been tried over all bounds: an exploration in
// which something never happens proves nothing about it.
var choiceKinds = []string{"start", "step", "lose", "crash", "read", "report", "job", "pass"}

// TestSmall explores the first of the small bounds, which are enough to try
// every kind of choice. All of them are explored by a program of their own
// (TestPlantedBugs of the simulator), which no race detector slows down.
func TestSmall(t *testing.T) { all(t, explore.Small[:4]) }

func all(t *testing.T, bounds []explore.Bounds) {
	choices := map[string]int{}
	for _, b := range bounds {
		t.Run(b.Name, func(t *testing.T) {
			r := explore.Explore(b, 0)
			if r.Violation != nil {
				t.Fatal(r.Violation)
			}
			t.Logf("complete: %d states, %d edges; %d worlds settle after a crash of both replicas; %d states at the bound of assignments",
				r.States, r.Edges, r.Settled, r.Beyond)
			for kind, n := range r.Choices {
				choices[kind] += n
			}
		})
	}
	for _, kind := range choiceKinds {
		if choices[kind] == 0 {
			t.Errorf("nothing was ever tried of kind %q", kind)
		}
	}
}

// TestLimit: an exploration that is cut off says so.
func TestLimit(t *testing.T) {
	if r := explore.Explore(explore.Small[0], 100); !r.Truncated || r.States < 100 || r.States > 110 {
		t.Errorf("with a limit of 100 states: truncated %t after %d", r.Truncated, r.States)
	}
}
