package fleet_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// A request that was begun before GitHub went down launches nothing that could
// not register, and goes on once GitHub is back.
func TestNothingIsLaunchedWhileGitHubIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx := t.Context()
		p, err := w.fleet.NewProvision(demand("5", "q", 2))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Step(ctx, time.Now()); err != nil { // it is written
			t.Fatal(err)
		}
		w.setDown(true)
		if err := w.fleet.Drive(ctx, p, patience); !errors.Is(err, lifecycle.ErrUnavailable) {
			t.Errorf("with GitHub down: %v", err)
		}
		if n := w.machines(); n != 0 {
			t.Errorf("%d machines were launched while GitHub was down", n)
		}
		w.setDown(false)
		answer, stop := context.WithCancel(ctx)
		defer stop()
		go w.agents(answer)
		if err := w.fleet.Drive(ctx, p, patience); err != nil {
			t.Errorf("with GitHub back: %v", err)
		}
		if n := w.machines(); n != 2 {
			t.Errorf("%d machines, want 2", n)
		}
	})
}
