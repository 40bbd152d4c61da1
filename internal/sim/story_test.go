package sim_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/remuda-ci/remuda/internal/sim"
)

var update = flag.Bool("update", false, "write the stories as they happen now, and the page of planted bugs")

// TestStories: the stories of testdata/stories happen as they are written. They are the
// documentation of internal/fleet by example. Write them with -update, and commit the
// changes only if you understand what caused them.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want := read(t, file)
			got, err := sim.Story(want)
			switch {
			case err != nil:
				t.Fatal(err)
			case got == want:
			case *update:
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("it happens otherwise now; see what -update writes:\n%s", got)
			}
		})
	}
}
