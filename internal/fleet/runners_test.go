package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy/runnerage"
)

// endings notes what a fleet reports about the versions of runners.
type endings struct {
	silent
	at map[string]time.Time
}

type silent = ports.SilentObserver

func (e *endings) RunnersEnd(at map[string]time.Time) { e.at = at }

func TestOldRunnersAreReportedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		published := now.Add(-21 * 24 * time.Hour)
		var logs bytes.Buffer
		heard := &endings{}
		err := error(nil)
		w := newWorld(t, func(o *fleet.Options) {
			o.Log = hclog.New(&hclog.LoggerOptions{Output: &logs})
			o.Observer = heard
			o.Releases = func(context.Context) ([]runnerage.Release, error) {
				return []runnerage.Release{{Version: "2.330.0", PublishedAt: published.Add(-24 * time.Hour)}, {Version: "2.331.0", PublishedAt: published}}, err
			}
		})
		for host, version := range map[string]string{"i-1": "2.330.0", "i-2": "2.331.0", "i-3": "", "i-4": "2.330.0"} {
			report := lifecycle.Report{HostKey: host, HeartbeatAt: now, RunnerVersion: version}
			if err := w.store.ForHost(host).PutReport(t.Context(), report); err != nil {
				t.Fatal(err)
			}
		}
		sweep := func() error {
			for _, op := range []fleet.Op{w.fleet.NewLivenessSweep(), w.fleet.NewRunnerSweep()} {
				if err := w.fleet.Drive(t.Context(), op, 0); err != nil {
					return err
				}
			}
			return nil
		}
		if err := sweep(); err != nil {
			t.Fatal(err)
		}
		if got := logs.String(); !strings.Contains(got, "2.330.0") || !strings.Contains(got, "hosts=2") || strings.Contains(got, "runner 2.331.0 gets") || !strings.Contains(got, "9 days") {
			t.Errorf("log: %s", got)
		}
		if at := heard.at["2.330.0"]; len(heard.at) != 1 || !at.Equal(published.Add(30*24*time.Hour)) {
			t.Errorf("ends: %v", heard.at)
		}
		err = lifecycle.ErrNotFound // a server without releases says nothing of ages
		if err := sweep(); err != nil {
			t.Errorf("without releases: %v", err)
		}
		err = errors.New("away")
		if sweep() == nil {
			t.Error("an outage was not told")
		}
	})
}
