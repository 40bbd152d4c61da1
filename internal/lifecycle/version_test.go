package lifecycle_test

import (
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/silence"
)

// GitHub's refusal of a runner's version has its own reason, counts against no host, and ends a host of the pool only if its pool
// launches a newer image.
func TestRefusedVersion(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tt := range map[string]struct {
		state    lifecycle.State
		template string
		want     lifecycle.Action
	}{
		"a new host":                  {lifecycle.StateCreated, "7", lifecycle.ActionTerminate},
		"a claimed host":              {lifecycle.StateClaimed, "7", lifecycle.ActionReturn},
		"a host that served":          {lifecycle.StateRunning, "7", lifecycle.ActionRelease},
		"clean, of the same image":    {lifecycle.StateIdle, "7", lifecycle.ActionPool},
		"clean, image not known":      {lifecycle.StateIdle, "", lifecycle.ActionPool},
		"clean, with a newer image":   {lifecycle.StateIdle, "8", lifecycle.ActionTerminate},
		"claimed, with a newer image": {lifecycle.StateClaimed, "8", lifecycle.ActionReturn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := lifecycle.Record{
				HostKey: "i-1", InstanceID: "i-1", Pool: "default", State: tt.state, Assignment: 3, Version: 9, Threshold: now.Add(time.Hour), TemplateVersion: "7",
				Repository: "acme/app", RunID: "7", RequestID: "q", CreatedAt: now.Add(-time.Hour), LaunchedAt: now.Add(-time.Hour), Uses: 1, ClaimFailures: 1,
			}
			p := lifecycle.Report{HostKey: "i-1", HeartbeatAt: now, Assignment: 3, Signal: lifecycle.SignalRegFailed, Cause: lifecycle.CauseVersion}
			if tt.state == lifecycle.StateIdle {
				r.RunID, r.RequestID, r.ReleasedAt, r.ReasonCode = "", "", now.Add(-time.Minute), lifecycle.ReasonVersionRefused
				p.Signal, p.Cause = lifecycle.SignalRemoveRegOK, lifecycle.CauseNone
			}
			policy := lifecycle.DefaultPolicy()
			policy.Drift = lifecycle.DriftIgnore
			d := lifecycle.Decide(lifecycle.Facts{Record: r, Report: &p, Template: tt.template, Watch: silence.Watch{StoreReadableSince: now.Add(-time.Hour), ReportsReadAt: now}}, now, policy)
			if d.Action != tt.want || d.HostFault || d.Action != lifecycle.ActionPool && d.Code != lifecycle.ReasonVersionRefused {
				t.Errorf("decided %+v, want %s", d, tt.want)
			}
		})
	}
}
