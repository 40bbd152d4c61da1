package explore_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/sim/explore"
)

// choiceKinds are what must have been tried over all bounds: an exploration in
// which something never happens proves nothing about it.
var choiceKinds = []string{"start", "step", "lose", "crash", "report", "job", "forget", "pass", "drain", "pause", "resume"}

// TestSmall explores some of the small bounds, which are enough to try
// every kind of choice. TestPlantedBugs of the simulator explores all of them.
func TestSmall(t *testing.T) {
	choices := map[string]int{}
	hot := slices.IndexFunc(explore.Small, func(b explore.Bounds) bool { return b.Hot })
	for _, b := range slices.Concat(explore.Small[:4], explore.Small[hot:hot+2], named("a drain", "a pause", "two pauses", "a reset and a crash", "a stop and a lost answer")) {
		t.Run(b.Name, func(t *testing.T) {
			r := explore.Explore(b, 0, nil)
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

// TestLateReads: reads that are made late lose no behavior. Whatever an
// operation or an agent does to the world when each step is a move of its own,
// it also does in the same world when steps are put together, and nothing else.
func TestLateReads(t *testing.T) {
	hot := slices.IndexFunc(explore.Small, func(b explore.Bounds) bool { return b.Hot })
	lateReads(t, slices.Concat(explore.Small[:4], explore.Small[10:11], explore.Small[hot:hot+1], explore.Small[hot+3:hot+4],
		named("a drain", "a pause", "two pauses", "a reset and a crash", "a stop and a lost answer")))
}

// named are the small bounds with the names.
func named(names ...string) []explore.Bounds {
	var found []explore.Bounds
	for _, b := range explore.Small {
		if slices.Contains(names, b.Name) {
			found = append(found, b)
		}
	}
	return found
}

func lateReads(t *testing.T, bounds []explore.Bounds) {
	for _, b := range bounds {
		t.Run(b.Name, func(t *testing.T) {
			want, plainly := explore.Effects(b, true)
			got, r := explore.Effects(b, false)
			if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("effects (-plainly +with late reads):\n%s", diff)
			}
			if r.States >= plainly.States {
				t.Errorf("%d states, plainly %d: nothing is gained", r.States, plainly.States)
			}
		})
	}
}

// TestLimit: an exploration that is cut off says so.
func TestLimit(t *testing.T) {
	if r := explore.Explore(explore.Small[0], 100, nil); !r.Truncated || r.States != 100 {
		t.Errorf("with a limit of 100 states: truncated %t after %d", r.Truncated, r.States)
	}
}
