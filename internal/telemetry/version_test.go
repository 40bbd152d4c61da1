package telemetry_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/telemetry"
)

func TestVersionLine(t *testing.T) {
	telemetry.Version, telemetry.Commit = "v1.2.3", "abc123"
	t.Cleanup(func() { telemetry.Version, telemetry.Commit = "dev", "" })
	got := telemetry.VersionLine("controld")
	want := "controld v1.2.3 (commit abc123, " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestVersionLineWithoutALinker(t *testing.T) {
	got := telemetry.VersionLine("agentd")
	if !strings.HasPrefix(got, "agentd dev (commit ") || strings.Contains(got, "commit ,") {
		t.Errorf("got %q", got)
	}
}
