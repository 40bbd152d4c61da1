//go:build months

package forecast_test

import (
	"slices"
	"testing"

	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

const ireeHistory = "../../examples/history/iree-days.csv"

// TestTheDaysOfIREE: the page has the answer for those jobs whose machines are launched for them. The record is not part of the repository, so make months
// runs this after it has downloaded it.
func TestTheDaysOfIREE(t *testing.T) {
	racepass.OneGoroutine(t)
	h, err := history.Load(ireeHistory, nil)
	if err != nil {
		t.Fatal(err)
	}
	if left := h.LeftOut(); len(h.Jobs) != 22_818 || len(left) > 0 {
		t.Errorf("%d jobs, want all 22,818; left out: %q", len(h.Jobs), left)
	}
	h.Jobs = slices.DeleteFunc(h.Jobs, func(j history.Job) bool { return !slices.Contains(j.Labels, "azure-linux-scale") })
	onThePage(t, "days of iree", answer(t, h))
}
