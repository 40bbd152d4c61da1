package outage_test

import (
	"context"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// A job that waits for an approval was made long before it is queued. It gets a host then, as any job does.
func TestAJobThatWasApprovedAfterADay(t *testing.T) {
	racepass.CoveredBy(t, "TestGitHubIsDownForTenMinutes")
	inWorld(t, func(_ context.Context, w *world) {
		w.control("POST", "/_standin/runs", map[string]any{"repository": repository, "run_id": 1001, "workflow": "on: push\njobs:\n" +
			"  deploy: {name: 1s, runs-on: remuda-small, environment: production, steps: [{run: 'true'}]}\n"}, nil)
		time.Sleep(26 * time.Hour)
		if n := len(w.records()); n != 0 {
			w.t.Errorf("%d hosts before the approval", n)
		}
		w.control("POST", "/_standin/runs/1001/approve", nil, nil)
		w.until("the job is over", 5*time.Minute, func() bool { return w.hosts.over.Load() == 1 })
	})
}
