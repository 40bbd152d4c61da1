package explore_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/sim/explore"
)

var boundRow = regexp.MustCompile(`(?m)^\| (.+) \| [0-9,]+ \| [0-9,]+ \|$`)

// TestTheTestingPage: docs/testing.md has a row for each large bound, in their order, and says how many small ones there are. The numbers of
// states and edges take a quarter of an hour to count, so they are not compared.
func TestTheTestingPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n### The bounds\n")
	if !found {
		t.Fatal("the page has no section about the bounds")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var want, got []string
	for _, b := range explore.Large {
		want = append(want, b.Name)
	}
	for _, m := range boundRow.FindAllStringSubmatch(section, -1) {
		got = append(got, m[1])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the rows of the page (-bounds.go +page):\n%s", diff)
	}
	hot := len(slices.DeleteFunc(slices.Clone(explore.Small), func(b explore.Bounds) bool { return !b.Hot }))
	for _, sentence := range []string{
		fmt.Sprintf("The %d small bounds ", len(explore.Small)), fmt.Sprintf(" %d of them have hosts that listen ", hot),
	} {
		if !strings.Contains(strings.ReplaceAll(section, "\n", " "), sentence) {
			t.Errorf("the page does not say %q", sentence)
		}
	}
}

// TestAssignments: the page says which bounds have more than three for each host.
func TestAssignments(t *testing.T) {
	for _, b := range slices.Concat(explore.Small, explore.Large) {
		least, most := int64(3), int64(3)
		if b.Hot || b.Resets {
			least, most = 4, 5
		}
		if b.Assignments < least || b.Assignments > most {
			t.Errorf("%s: %d assignments, want %d to %d, or another sentence in docs/testing.md", b.Name, b.Assignments, least, most)
		}
	}
}
