package lifecycle_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/silence"
)

// While GitHub is away no run can be given an idle host, so its time does not
// count, up to the bound for external failures.
func TestIdleHostsOutlastAnOutageOfGitHub(t *testing.T) {
	p := lifecycle.DefaultPolicy()
	r := baseRecord()
	r.State, r.RunID, r.PooledAt = lifecycle.StateIdle, "", now
	r.Threshold = now.Add(p.IdleTime)
	at := now
	for range 100 {
		at = r.Threshold
		f := lifecycle.Facts{Record: r, GitHubUnavailable: true, Watch: silence.Watch{StoreUpSince: start}}
		d := lifecycle.Decide(f, at, p)
		if d.Action == lifecycle.ActionTerminate {
			break
		}
		if d.Action != lifecycle.ActionExtend {
			t.Fatalf("after %s: %s, %s", at.Sub(now), d.Action, d.Reason)
		}
		f.GitHubUnavailable = false
		if d := lifecycle.Decide(f, at, p); d.Action != lifecycle.ActionTerminate {
			t.Errorf("GitHub is back after %s: %s", at.Sub(now), d.Action)
		}
		next, err := lifecycle.Apply(r, d, at, p)
		if err != nil {
			t.Fatal(err)
		}
		if !next.Threshold.After(r.Threshold) || next.Threshold.After(at.Add(p.IdleTime)) || !next.DueAt.Equal(next.Threshold) {
			t.Errorf("after %s: threshold %s later, due %s later", at.Sub(now), next.Threshold.Sub(at), next.DueAt.Sub(at))
		}
		r = next
	}
	if waited := at.Sub(now); waited != 30*time.Minute {
		t.Errorf("ended after %s, want 30m", waited)
	}
}
