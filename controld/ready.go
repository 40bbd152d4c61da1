package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const (
	// readyRow is the lease that readiness reads and writes. No replica holds it.
	readyRow = "ready"
	// writeEvery is how long a write counts. A write costs money, unlike the read of a row that nothing else reads.
	writeEvery = 30 * time.Second
)

// readiness is whether the store answers reads and takes writes: on a full disk reads go well.
type readiness struct {
	store fleet.Store
	now   func() time.Time // nil: time.Now
	clock func() error     // says that this machine's clock is wrong, as the last answer of the store showed
	wrote atomic.Int64     // when a write last succeeded, in Unix nanoseconds
}

// check returns what keeps controld from serving. It reads a row each time, and writes it at most once in writeEvery, but again
// each time after a write that failed.
func (r *readiness) check(ctx context.Context) error {
	now := time.Now()
	if r.now != nil {
		now = r.now()
	}
	stored, err := r.store.Lease(ctx, readyRow)
	if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
		return fmt.Errorf("store: %w", err)
	}
	if r.clock != nil {
		if err := r.clock(); err != nil {
			return err
		}
	}
	if age := now.Sub(time.Unix(0, r.wrote.Load())); age >= 0 && age < writeEvery {
		return nil
	}
	stored.Name, stored.Holder = readyRow, ""
	// The write of another replica, or of another call, shows as well that the store takes writes.
	if _, err = r.store.TakeLease(ctx, stored); err != nil && !errors.Is(err, lifecycle.ErrConflict) {
		return fmt.Errorf("store: %w", err)
	}
	r.wrote.Store(now.UnixNano())
	return nil
}
