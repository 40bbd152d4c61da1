package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Events of jobs name the pool, where it is known: of a refused job that which it names or means, and of a job of a run that of the run's hosts.
func TestEventsOfJobsNameThePool(t *testing.T) {
	inJobWorld(t, func(ctx context.Context, t *testing.T, w *world) {
		w.hub.say(ctx, queuedJob(1, "1", "remuda-smal"))
		w.hub.say(ctx, queuedJob(2, "2", "self-hosted", "remuda-small"))
		w.hub.say(ctx, queuedJob(3, "3", "3")) // for its run nothing was provisioned
		for run, hosts := range map[string]int{"101": 1, "102": 2} {
			serving := w.mustProvision(ctx, demand(run, "a", 1))
			if hosts == 2 {
				d := demand(run, "b", 1)
				d.Spec.Pool = "once"
				w.mustProvision(ctx, d)
			}
			j := queuedJob(map[string]int64{"101": 4, "102": 5}[run], run, run)
			w.hub.say(ctx, j)
			j.Status, j.RunnerName, j.StartedAt = lifecycle.StatusInProgress, serving[0].RunnerName, time.Now()
			w.hub.say(ctx, j)
		}
		time.Sleep(10 * time.Second)
		page, err := w.store.EventsSince(ctx, lifecycle.PageOf{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, e := range page.Items {
			if e.Action == lifecycle.ActionStartJob || e.Action == lifecycle.ActionRefuseJob {
				got[e.RunID+" "+string(e.Action)] = e.Pool
			}
		}
		want := map[string]string{
			"1 refuse_job": jobPool, "2 refuse_job": jobPool, "3 refuse_job": "",
			"101 start_job": "default", "102 start_job": "", // which of its two pools it is of is not known
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pools of events (-want +got):\n%s", diff)
		}
	})
}
