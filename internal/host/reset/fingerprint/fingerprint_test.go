package fingerprint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/host/reset/fingerprint"
)

func TestDifferences(t *testing.T) {
	t.Parallel()
	base := fingerprint.Set{"/a": "1", "/b": "2", "/c": "3"}
	now := fingerprint.Set{"/a": "1", "/b": "x", "/d\n": "4"}
	want := []string{`"/b" is [x], was [2]`, `"/c" was deleted`, `"/d\n" is new`}
	if diff := cmp.Diff(want, fingerprint.Differences(now, base)); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if got := fingerprint.Differences(base, base); got != nil {
		t.Errorf("differences of the same: %q", got)
	}
}
