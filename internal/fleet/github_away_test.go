package fleet_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// How long GitHub has been away is counted in the time of the steps, whatever a
// clock on the wall says: a simulation lives in a time of its own.
func TestAnOutageIsCountedInTheTimeOfTheSteps(t *testing.T) {
	start := time.Date(1999, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		later time.Duration
		want  lifecycle.State
	}{
		"GitHub is away":                {30 * time.Second, lifecycle.StateIdle},
		"nothing was heard of it since": {2 * time.Minute, lifecycle.StateTerminated},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			expires := start.Add(c.later)
			r := lifecycle.Record{
				HostKey: "i-1", InstanceID: "i-1", Pool: "default", State: lifecycle.StateIdle, Assignment: 3, Version: 1,
				PooledAt: expires.Add(-time.Minute), UpdatedAt: expires.Add(-time.Minute), Threshold: expires, DueAt: expires,
				Hardware: lifecycle.Hardware{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand},
			}
			if err := w.store.CreateInstance(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			w.setDown(true)
			p, err := w.fleet.NewProvision(demand("5", "q", 1))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Step(t.Context(), start); err == nil {
				t.Fatal("GitHub answered")
			}
			sweep := w.fleet.NewDueSweep()
			for range 3 {
				if _, err := sweep.Step(t.Context(), expires); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.record("i-1"); got.State != c.want {
				t.Errorf("the idle host is %s: %s", got.Condition(), got.Reason)
			}
		})
	}
}
