package fleet_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// slowReports takes so long for one read of two reports that the request has to say that it is still alive.
type slowReports struct {
	ports.Store
	once  atomic.Bool
	after func()
}

func (s *slowReports) Reports(ctx context.Context, keys []string) (map[string]lifecycle.Report, error) {
	got, err := s.Store.Reports(ctx, keys)
	if len(keys) == 2 && s.once.Swap(false) {
		time.Sleep(10500 * time.Millisecond)
		s.after()
	}
	return got, err
}

// Another replica writes the request, and a host is lost, after the request has found out which hosts need labels and before it sets them.
func TestAHostIsLostBeforeItsLabelsAreSet(t *testing.T) {
	slow := &slowReports{}
	inStandbyWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("1", "first", 2))
		w.release(ctx, "1", true)
		w.until("both hosts are hot", time.Minute, func() bool {
			return !slices.ContainsFunc(w.records(), func(r lifecycle.Record) bool { return !r.Hot() })
		})
		slow.after = func() {
			q, err := w.store.Request(ctx, repository, "2", "q")
			if err == nil {
				_, err = w.store.UpdateRequest(ctx, q)
			}
			lost := w.records()[1]
			lost.State, lost.RequestID, lost.RunID, lost.Standby = lifecycle.StateTerminated, "", "", nil
			if _, err2 := w.store.UpdateInstance(ctx, lost); err != nil || err2 != nil {
				t.Error(err, err2)
			}
		}
		slow.once.Store(true)
		if got := w.mustProvision(ctx, demand("2", "q", 2)); len(got) != 2 || slow.once.Load() {
			t.Errorf("%d hosts are ready, want the one that is left and another", len(got))
		}
	}, func(o *fleet.Options) { slow.Store, o.Store = o.Store, slow })
}
