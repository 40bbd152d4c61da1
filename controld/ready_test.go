package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/clock"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// fullStore answers reads. While it is full it takes no writes.
type fullStore struct {
	fleet.Store
	full   bool
	err    error
	writes int
}

func (s *fullStore) TakeLease(ctx context.Context, l replicas.Lease) (replicas.Lease, error) {
	s.writes++
	if s.full {
		return l, &lifecycle.UnavailableError{What: "write lease", Err: errors.New("database or disk is full: free some space")}
	}
	if s.err != nil {
		return l, s.err
	}
	return s.Store.TakeLease(ctx, l)
}

func TestReadinessWrites(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s := &fullStore{Store: memory.New(time.Now)}
	r := &readiness{store: s, now: func() time.Time { return now }}
	check := func(what string, wantWrites int, wantErr string) {
		t.Helper()
		before := s.writes
		err := r.check(t.Context())
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s: %v, want %q", what, err, wantErr)
		}
		if n := s.writes - before; n != wantWrites {
			t.Errorf("%s: %d writes, want %d", what, n, wantWrites)
		}
	}
	check("the first", 1, "")
	now = now.Add(writeEvery - time.Second)
	check("soon after", 0, "")
	s.full = true
	now = now.Add(time.Second)
	check("a full disk", 1, "disk is full")
	check("at once again", 1, "disk is full")
	s.full = false
	check("room again", 1, "")
	check("and after that", 0, "")
	now = now.Add(-time.Hour)
	check("a clock that was moved back", 1, "")
	now = now.Add(writeEvery)
	s.err = lifecycle.ErrConflict
	check("another replica wrote", 1, "")
	s.err, r.clock = nil, func() error { return clock.Check(-6 * time.Hour) }
	now = now.Add(writeEvery)
	check("a wrong clock", 0, "the clock of this machine is 6h0m0s ahead of that of AWS")
}
