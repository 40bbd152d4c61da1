package hosts_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// reportsAway is a store whose reports cannot be read for a while.
type reportsAway struct {
	ports.Store
	away bool
}

func (s *reportsAway) Reports(ctx context.Context, keys []string) (map[string]lifecycle.Report, error) {
	if s.away {
		return nil, lifecycle.ErrUnavailable
	}
	return s.Store.Reports(ctx, keys)
}

// TestListenedAfterAnOutage: hosts have had their time to report only once reports could be read for that long without a break.
func TestListenedAfterAnOutage(t *testing.T) {
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	s := &reportsAway{Store: memory.New(func() time.Time { return now })}
	hs := &hosts.Hosts{Store: s}
	limit := hs.Policy("default").Silence
	for i, step := range []struct {
		after          time.Duration
		away, listened bool
	}{{0, false, false}, {limit, false, true}, {time.Second, true, false}, {limit, false, false}, {limit - 1, false, false}, {1, false, true}} {
		now, s.away = now.Add(step.after), step.away
		if _, err := hs.Reports(t.Context(), []string{"a"}, now); errors.Is(err, lifecycle.ErrUnavailable) != step.away {
			t.Fatal(err)
		}
		if got := hs.Listened("default", now); got != step.listened {
			t.Errorf("step %d: hosts had their time: %t, want %t", i, got, step.listened)
		}
	}
}
