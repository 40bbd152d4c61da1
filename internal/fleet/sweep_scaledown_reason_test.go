package fleet_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// A dry run in a held fleet says what would become of each host without the hold: it would be ended, or only marked.
func TestADryRunOfAHeldFleetSaysWhatWouldBe(t *testing.T) {
	for done, p := range map[string]policy.ScaleDown{"ended": {}, "marked": {IdleConfirmation: 10 * time.Minute}} {
		t.Run(done, func(t *testing.T) {
			inScaleDown(t, p, 2, func(t *testing.T, s *scaleDownScene) {
				s.hold(t.Context(), s.fleet, time.Hour)
				refresh := s.fleet.NewRefresh(true)
				if err := s.fleet.Drive(t.Context(), refresh, patience); err != nil {
					t.Fatal(err)
				}
				said := 0
				for _, d := range refresh.Decisions() {
					if d.Sweep == "scale_down" && d.Action == lifecycle.ActionKeep && strings.Contains(d.Reason, "; else it would be "+done+": ") {
						said++
					}
				}
				if said != 2 {
					t.Errorf("said of %d hosts, want 2: %+v", said, refresh.Decisions())
				}
			})
		})
	}
}

// A snapshot says whether the runners of a host are those of a repository or of an organization.
func TestASnapshotSaysWhoseTheRunnersAre(t *testing.T) {
	for want, scope := range map[string]func(string) string{
		"repo acme/app": nil,
		"org acme":      func(repository string) string { return strings.Split(repository, "/")[0] },
	} {
		t.Run(want, func(t *testing.T) {
			inScaleDown(t, policy.ScaleDown{}, 1, func(t *testing.T, s *scaleDownScene) {
				s.fleet = s.newFleet("b", scalingDown(policy.ScaleDown{}), func(o *fleet.Options) { o.ScaleDown.Scope = scope })
				snapshot, _ := s.snapshot()
				if len(snapshot.Instances) != 1 || snapshot.Instances[0].Scope+" "+snapshot.Instances[0].Owner != want {
					t.Errorf("hosts: %+v", snapshot.Instances)
				}
			})
		})
	}
}

// lostReports is a store whose reports are lost once gone is set.
type lostReports struct {
	fleet.Store
	gone atomic.Bool
}

func (s *lostReports) Reports(ctx context.Context, keys []string) (map[string]lifecycle.Report, error) {
	if s.gone.Load() {
		return map[string]lifecycle.Report{}, nil
	}
	return s.Store.Reports(ctx, keys)
}

// A host whose report is lost in the middle of its end keeps its registration, and its mark is taken back: its agent could not say whether it
// works, unless it had time to report again.
func TestAHostIsNotEndedOnceItsReportIsLost(t *testing.T) {
	for name, listened := range map[string]bool{"it could not report yet": false, "it had time to report": true} {
		t.Run(name, func(t *testing.T) {
			inScaleDown(t, policy.ScaleDown{}, 1, func(t *testing.T, s *scaleDownScene) {
				rows, h := &lostReports{Store: s.store}, s.hosts[0]
				s.fleet = s.newFleet("b", scalingDown(policy.ScaleDown{}), func(o *fleet.Options) { o.Store = rows })
				if listened {
					s.sweepOnce(t.Context(), s.fleet.NewLivenessSweep())
					time.Sleep(10 * time.Minute)
				}
				op := s.fleet.NewScaleDownSweep()
				stepUntil(t.Context(), t, op, func() bool { return s.record(h.HostKey).Retiring })
				rows.gone.Store(true)
				s.sweepOnce(t.Context(), op)
				r := s.record(h.HostKey)
				if ended := r.State == lifecycle.StateTerminated; ended != listened || r.Retiring != listened || slices.Contains(s.github.names(), h.RunnerName) == listened {
					t.Errorf("it is %s, retiring %t, and GitHub has %q", r.State, r.Retiring, s.github.names())
				}
			})
		})
	}
}
