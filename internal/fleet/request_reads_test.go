package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// readRequests counts how often requests are read. They may be gone.
type readRequests struct {
	fleet.Store
	gone  bool
	reads int
}

func (s *readRequests) Request(ctx context.Context, repository, run, id string) (lifecycle.Request, error) {
	if s.reads++; s.gone {
		return lifecycle.Request{}, lifecycle.ErrNotFound
	}
	return s.Store.Request(ctx, repository, run, id)
}

// A look at many hosts of one request reads it once, also if it is gone.
func TestARequestIsReadOnceForItsHosts(t *testing.T) {
	for name, gone := range map[string]bool{"it is there": false, "it is gone": true} {
		t.Run(name, func(t *testing.T) {
			requests := &readRequests{}
			inBubbleOf(t, func(o *fleet.Options) { requests.Store, o.Store = o.Store, requests }, func(ctx context.Context, t *testing.T, w *world) {
				w.mustProvision(ctx, demand("1", "a", 5))
				requests.gone, requests.reads = gone, 0
				refresh := w.fleet.NewRefresh(true)
				for requests.reads == 0 {
					if p, err := refresh.Step(ctx, time.Now()); err != nil || p.Done {
						t.Fatalf("no request was read: %v", err)
					}
				}
				if requests.reads != 1 {
					t.Errorf("the request of 5 hosts was read %d times", requests.reads)
				}
			})
		})
	}
}
