package process

import (
	"os"
	"slices"
	"testing"
)

// TestAnEmptiedHostKeepsItsMarks: another replica may have marked it for its end while this one replaces its root volume, and then it does not boot.
func TestAnEmptiedHostKeepsItsMarks(t *testing.T) {
	h := host{dir: t.TempDir()}
	for _, name := range []string{"machine.json", "stopped", "ending", "ended", "agent.pids"} {
		if err := os.WriteFile(h.path(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.empty(); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(h.dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"ended", "ending", "machine.json", "stopped"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("it has %v, %v; want %v", left, err, want)
	}
}
