package fleet_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A run whose jobs a pool serves has no request of its own: it is explained by
// its jobs.
func TestExplainTellsOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := jobWorld(t, 1)
		w.live(t, func(ctx context.Context) {
			w.hub.queue(ctx, poolJob(1, time.Now()), time.Hour)
			w.until("the first job runs", time.Minute, w.ran(1))
			w.hub.queue(ctx, poolJob(2, time.Now()), time.Hour)
			time.Sleep(time.Second)
			e, err := w.fleet.Explain(ctx, repository, "1", time.Now())
			if err != nil || len(e.Sentences) != 2 {
				t.Fatalf("%v: %q", err, e.Sentences)
			}
			runner := w.records()[0].RunnerName
			if want := fmt.Sprintf("Job 1 runs on %s since ", runner); e.Sentences[0][:len(want)] != want {
				t.Errorf("running: %q", e.Sentences[0])
			}
			if want := "Job 2 waits for job pool jobs since "; e.Sentences[1][:len(want)] != want {
				t.Errorf("waiting: %q", e.Sentences[1])
			}
		})
	})
}
