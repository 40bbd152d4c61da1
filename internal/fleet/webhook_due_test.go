package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// refusedRuns is a GitHub that refuses to say anything about a run, and counts how often it was asked.
type refusedRuns struct {
	fleet.GitHubJobs
	asked int
}

func (g *refusedRuns) WorkflowRun(context.Context, string, string) (lifecycle.WorkflowRun, error) {
	g.asked++
	return lifecycle.WorkflowRun{}, lifecycle.ErrRefused
}

// A webhook that no replica has worked on for ten seconds is worked on by a sweep. One about which GitHub refuses to answer is tried again half a minute
// later while it is young, and then after half of its age.
func TestWhenASweepWorksOnAWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		github := &refusedRuns{}
		w := jobWorld(t, 1, func(o *fleet.JobOptions) { github.GitHubJobs, o.GitHub = o.GitHub, github })
		begun := time.Now()
		w.hub.queue(t.Context(), poolJob(1, begun), time.Minute)
		for want, after := range []time.Duration{10 * time.Second, 40 * time.Second, 70 * time.Second, 105 * time.Second} {
			for i, at := range []time.Duration{after - 1, after} {
				time.Sleep(time.Until(begun.Add(at)))
				if err := w.fleet.Drive(t.Context(), w.fleet.NewJobSweep(), patience); err != nil {
					t.Fatal(err)
				}
				if github.asked != want+i {
					t.Errorf("asked %d times after %s, want %d", github.asked, at, want+i)
				}
			}
		}
	})
}
