package fleet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// steps is an operation that does what its function says.
type steps func(ctx context.Context, now time.Time) (fleet.Progress, error)

func (s steps) Step(ctx context.Context, now time.Time) (fleet.Progress, error) { return s(ctx, now) }

func TestDrive(t *testing.T) {
	full := &lifecycle.UnavailableError{What: "write", Err: errors.New("disk full")}
	fails := steps(func(context.Context, time.Time) (fleet.Progress, error) { return fleet.Progress{}, full })
	waits := steps(func(context.Context, time.Time) (fleet.Progress, error) {
		return fleet.Progress{Wait: time.Second}, nil
	})
	hangs := steps(func(ctx context.Context, _ time.Time) (fleet.Progress, error) {
		<-ctx.Done()
		return fleet.Progress{}, &lifecycle.UnavailableError{What: "write", Err: ctx.Err()}
	})
	// recovers is away for the first 3 s of its life.
	recovers := func() steps {
		began := time.Now()
		return func(_ context.Context, now time.Time) (fleet.Progress, error) {
			if now.Sub(began) < 3*time.Second {
				return fleet.Progress{}, full
			}
			return fleet.Progress{Wait: time.Second}, nil
		}
	}
	tests := map[string]struct {
		op       func() steps
		deadline time.Duration
		patience time.Duration
		is       error
		says     string
		early    bool // it answers before the deadline
	}{
		"away for longer than patience":   {op: func() steps { return fails }, deadline: time.Minute, patience: time.Second, is: lifecycle.ErrUnavailable, says: "disk full", early: true},
		"away until the deadline":         {op: func() steps { return fails }, deadline: time.Minute, patience: time.Hour, is: context.DeadlineExceeded, says: "disk full", early: true},
		"away until a short deadline":     {op: func() steps { return fails }, deadline: 20 * time.Millisecond, patience: time.Hour, is: context.DeadlineExceeded, says: "disk full", early: true},
		"nothing away until the deadline": {op: func() steps { return waits }, deadline: time.Minute, patience: time.Hour, is: context.DeadlineExceeded},
		"a step that hangs":               {op: func() steps { return hangs }, deadline: time.Minute, patience: time.Hour, is: context.DeadlineExceeded},
		"away at first only":              {op: recovers, deadline: time.Minute, patience: time.Hour, is: context.DeadlineExceeded},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, began := newWorld(t), time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
				defer cancel()
				err := w.fleet.Drive(ctx, tt.op(), tt.patience)
				if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("got %v, want %v that says %q", err, tt.is, tt.says)
				}
				if tt.says == "" && strings.Contains(err.Error(), "disk full") {
					t.Errorf("got %v, although nothing was away at the end", err)
				}
				if left := tt.deadline - time.Since(began); tt.early != (left > 0) {
					t.Errorf("answered %s before the deadline", left)
				}
			})
		})
	}
}

// An operation has begun when it has done something that goes on without it.
func TestBegun(t *testing.T) { synctest.Test(t, testBegun) }

func testBegun(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go w.agents(ctx)
	p, err := w.fleet.NewProvision(demand("1", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	if p.Begun() {
		t.Error("a Provision has begun before its first step")
	}
	if err := w.fleet.Drive(ctx, p, patience); err != nil || !p.Begun() {
		t.Errorf("a Provision that is done has not begun (%v)", err)
	}
	r := w.fleet.NewRelease(repository, "1", 0, false)
	if _, err := r.Step(ctx, time.Now()); err != nil || r.Begun() {
		t.Errorf("a Release that has only read has begun (%v)", err)
	}
	if _, err := r.Step(ctx, time.Now()); err != nil || !r.Begun() {
		t.Errorf("a Release that has marked its request has not begun (%v)", err)
	}
}
