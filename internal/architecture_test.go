package internal_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the picture of the rooms in docs/architecture.md")

const architecturePage = "../docs/architecture.md"

// pictureBlock is where the page has the picture.
var pictureBlock = regexp.MustCompile("(?s)<!-- rooms -->\n.*<!-- end -->\n")

// TestArchitecturePicture keeps the picture in docs/architecture.md in step with the table of rooms.
func TestArchitecturePicture(t *testing.T) {
	page, err := os.ReadFile(architecturePage)
	if err != nil {
		t.Fatal(err)
	}
	if !pictureBlock.Match(page) {
		t.Fatalf("%s has no place for the picture", architecturePage)
	}
	want := pictureBlock.ReplaceAllLiteralString(string(page), "<!-- rooms -->\n"+roomsPicture(rooms, list(t, ""))+"<!-- end -->\n")
	if *update {
		if err := os.WriteFile(architecturePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(page), want); diff != "" {
		t.Errorf("the picture is stale; go test ./internal -run TestArchitecturePicture -update (-page +rooms):\n%s", diff)
	}
}

// roomsPicture renders the product's rooms and arrows as a Mermaid flowchart. Rooms that only test are left out, and so are
// arrows that follow from others: fleet imports lifecycle, but the arrows from fleet to policy to lifecycle say so already. The mains may import anything, so their arrows are
// the imports that they have.
func roomsPicture(rooms []room, pkgs []goPackage) string {
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TD\n")
	arrows := map[string][]string{}
	for _, r := range rooms {
		if inPicture(r) {
			arrows[r.dir] = slices.DeleteFunc(slices.Clone(r.imports), func(dir string) bool { return !drawn(rooms, dir) })
		}
	}
	for _, p := range pkgs {
		if from, ok := roomOf(p.ImportPath); ok && inPicture(from) && slices.Equal(from.imports, anything) {
			for _, path := range p.Imports {
				if to, ours := roomOf(path); ours && to.dir != from.dir && drawn(rooms, to.dir) && !slices.Contains(arrows[from.dir], to.dir) {
					arrows[from.dir] = append(arrows[from.dir], to.dir)
				}
			}
		}
	}
	for _, dir := range sortedKeys(arrows) {
		if name := strings.TrimPrefix(dir, "internal/"); name != nodeOf(dir) {
			fmt.Fprintf(&b, "  %s[%q]\n", nodeOf(dir), name)
		}
	}
	for _, from := range sortedKeys(arrows) {
		for _, to := range slices.Sorted(slices.Values(arrows[from])) {
			if !follows(arrows, from, to) {
				fmt.Fprintf(&b, "  %s --> %s\n", nodeOf(from), nodeOf(to))
			}
		}
	}
	b.WriteString("```\n")
	return b.String()
}

// inPicture reports whether the room is drawn: the mains, and the product's rooms below them, except what all rooms share.
func inPicture(r room) bool {
	if r.dir == "controld" || r.dir == "agentd" {
		return true
	}
	return !slices.Equal(r.imports, anything) && !slices.Contains(testOnly, r.dir) && !slices.Contains(common, r.dir) && !slices.Contains(toolRooms, r.dir)
}

// toolRooms are beside the product: what measures, drives and packs it.
var toolRooms = []string{
	"systemd", "deploy", "packer", "internal/local", "internal/cost", "internal/bench", "internal/demo", "internal/e2e", "internal/store/storetest", "internal/testrun/racepass",
	"internal/history/published",
}

func drawn(rooms []room, dir string) bool {
	i := slices.IndexFunc(rooms, func(r room) bool { return r.dir == dir })
	return i >= 0 && inPicture(rooms[i])
}

// follows reports whether the arrow follows from a longer way between the two rooms.
func follows(arrows map[string][]string, from, to string) bool {
	for _, next := range arrows[from] {
		if next != to && reaches(arrows, next, to, nil) {
			return true
		}
	}
	return false
}

func reaches(arrows map[string][]string, from, to string, been []string) bool {
	if from == to {
		return true
	}
	if slices.Contains(been, from) {
		return false
	}
	return slices.ContainsFunc(arrows[from], func(next string) bool { return reaches(arrows, next, to, append(been, from)) })
}

func nodeOf(dir string) string { return strings.NewReplacer("/", "_", "internal/", "").Replace(dir) }

func sortedKeys(m map[string][]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
