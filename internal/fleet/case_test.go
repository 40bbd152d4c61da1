package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// GitHub's names are the same in any case, so a run is the same run however a caller writes its repository.
func TestARepositoryInAnotherCaseIsTheSame(t *testing.T) {
	for name, release := range map[string]func(ctx context.Context, w *world) error{
		"a release": func(ctx context.Context, w *world) error {
			return w.fleet.Drive(ctx, w.fleet.NewRelease("Acme/App", "1", 0, true), patience)
		},
		"a release of what was asked for so": func(ctx context.Context, w *world) error {
			d := demand("2", "b", 1)
			d.Repository = "ACME/App"
			w.mustProvision(ctx, d)
			if err := w.fleet.Drive(ctx, w.fleet.NewRelease(repository, "2", 0, true), patience); err != nil {
				return err
			}
			return w.fleet.Drive(ctx, w.fleet.NewRelease(repository, "1", 0, true), patience)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, t *testing.T, w *world) {
				host := w.mustProvision(ctx, demand("1", "a", 1))[0]
				if _, err := w.fleet.ExplainHost(ctx, host.InstanceID, fleet.OfRun{Repository: "acme/APP", RunID: "1"}, time.Now()); err != nil {
					t.Errorf("the host is not explained: %v", err)
				}
				if err := release(ctx, w); err != nil {
					t.Fatal(err)
				}
				if running := w.records(lifecycle.StateRunning); len(running) != 0 {
					t.Errorf("the releases were OK, and %d hosts still run", len(running))
				}
			})
		})
	}
}

func TestTheEndOfARunInAnotherCaseReleasesItsHosts(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.mustProvision(ctx, demand("5", "q", 2))
		run := ended("5", 1)
		run.Repository = "Acme/App"
		w.hub.sayRun(ctx, run)
		w.until("both hosts are released", time.Minute, func() bool {
			return len(w.records(lifecycle.StateIdle)) == 2 && len(w.serving("5")) == 0
		})
	})
}
