package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/policy"
)

// Two callers of one request that have each claimed a host within the same reservation keep one of the two hosts, as does a replica that
// takes the request over. Only the request's row and the ledger tell that one.
func TestTwoCallersKeepWhatIsReserved(t *testing.T) {
	for _, takenOver := range []bool{false, true} {
		limitedWorld(t, policy.Limits{HostsPerRepository: 2}, func(ctx context.Context, w *world) {
			w.useOnce(ctx, 2)
			small := w.newFleet("small", limited(policy.Limits{HostsPerRepository: 1}))
			d := demandOf(repository, "9", 2, 1, time.Minute)
			first, err := small.NewProvision(d)
			if err != nil {
				t.Fatal(err)
			}
			second, err := small.NewProvision(d)
			if err != nil {
				t.Fatal(err)
			}
			stepUntil(ctx, t, first, func() bool { return w.used(ofRepository) == 1 })
			stepUntil(ctx, t, second, func() bool { return len(w.serving("9")) == 1 })
			stepUntil(ctx, t, first, func() bool { return len(w.serving("9")) == 2 })
			stepUntil(ctx, t, second, func() bool { return len(first.Request().Taken)+len(second.Request().Taken) > 0 })
			if takenOver {
				if first, err = small.NewProvision(d); err != nil {
					t.Fatal(err)
				}
			}
			if err := small.Drive(ctx, first, patience); err != nil {
				t.Fatal(err)
			}
			if n := len(w.serving("9")); n != 1 || len(first.Instances()) != 1 || w.used(ofRepository) != 1 {
				t.Errorf("taken over %t: %d hosts serve the run, %d are in the answer, %d count; want 1 each", takenOver, n, len(first.Instances()), w.used(ofRepository))
			}
		})
	}
}
