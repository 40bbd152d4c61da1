//go:build months

package forecast_test

import (
	"slices"
	"testing"

	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// TestThePublishedRecords: every job of each record is there, and the page has the answers. The records are not part of the repository, so make months runs
// this after it has downloaded them.
func TestThePublishedRecords(t *testing.T) {
	racepass.OneGoroutine(t)
	for _, record := range []struct {
		name string
		jobs int
		// label, if it is set, is one that the jobs of the answer have. The others have runners of another kind.
		label string
	}{
		{name: "bitcoin-month", jobs: 11_892}, {name: "openstates-month", jobs: 400}, {name: "iree-days", jobs: 22_818, label: "azure-linux-scale"},
	} {
		t.Run(record.name, func(t *testing.T) {
			h, err := history.Load("../../examples/history/"+record.name+".csv", nil)
			if err != nil {
				t.Fatal(err)
			}
			if left := h.LeftOut(); len(h.Jobs) != record.jobs || len(left) > 0 {
				t.Errorf("%d jobs, want all %d; left out: %q", len(h.Jobs), record.jobs, left)
			}
			if record.label != "" {
				h.Jobs = slices.DeleteFunc(h.Jobs, func(j history.Job) bool { return !slices.Contains(j.Labels, record.label) })
			}
			onThePage(t, record.name, answer(t, h))
		})
	}
}
