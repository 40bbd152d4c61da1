package statement_test

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
)

// The statement of a host with systemd, with every step and check, has room to spare. It is written twice for each release, in a report and in an
// event, and each KB of either is a write unit.
func TestSizeOfAnEnvelope(t *testing.T) {
	t.Parallel()
	r := reset()
	r.Done = []string{
		"units", "processes", "containers", "jobs", "processes again", "mounts", "ipc", "keys", "files elsewhere", "directories",
		"temporary directories", "post-release hook",
	}
	r.Checked = nil
	for _, name := range []string{
		"registration", "processes and units", "containers, jobs, ipc, keys and files elsewhere", "directories", "temporary directories",
		"mounts, listeners, startup and own files", "unaccounted processes", "disk space",
	} {
		r.Checked = append(r.Checked, statement.Check{Name: name})
	}
	size := len(sign(t, r))
	t.Logf("%d bytes", size)
	if size > statement.MaxEnvelope/2 {
		t.Errorf("%d bytes, want at most half of what is allowed", size)
	}
}
