//go:build testhost

package host_test

import (
	"strings"
	"testing"
)

// hotRunner is the unit of the runner with which a host waits after its first run.
const hotRunner = "remuda-runner-2.service"

// TestHotHost is a host that listens between its runs: the second run has the runner that was there before it.
func TestHotHost(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	h := s.provision("101", "hot")
	s.begin("101", job{"leave", leaveThings})
	s.succeeds("101", "leave")
	if got := s.release("101"); got.GetPooledCount() != 1 {
		t.Fatalf("released: %v", got)
	}
	h.says("hot: listening, waiting for a run")
	before := h.property(hotRunner, "InvocationID")
	if again := s.provision("102", "hot"); again.id != h.id {
		t.Fatalf("run 102 got %s, not the hot %s", again.id, h.id)
	}
	s.begin("102", job{"look", whatWasLeft + "\nid -un"})
	if got := s.succeeds("102", "look"); strings.Contains(got, "leftover") || !strings.Contains(got, "runner\n") {
		t.Errorf("the next run found:\n%s", got)
	}
	if after := h.property(hotRunner, "InvocationID"); after != before || before == "" {
		t.Errorf("the runner's unit was %q and is %q", before, after)
	}
	if log := h.journal("--unit=agentd"); strings.Count(log, "effect=register") != 2 {
		t.Errorf("config.sh ran more than once for run 101 and once ahead of need:\n%s", log)
	}
	if got := s.release("102"); got.GetPooledCount() != 1 {
		t.Fatalf("released: %v", got)
	}
	h.says("hot: listening, waiting for a run")
}
