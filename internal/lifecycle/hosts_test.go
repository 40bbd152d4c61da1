package lifecycle_test

import (
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// hosts are the conditions of a host with the smaller facts that matter in
// them. Each sets up a record whose threshold is still ahead.
var hosts = map[string]func(*lifecycle.Facts, *lifecycle.Policy){
	"created": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		serve(f, lifecycle.StateCreated, 100*time.Second)
	},
	"claimed": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		serve(f, lifecycle.StateClaimed, 100*time.Second)
	},
	"created, job-scoped": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		serve(f, lifecycle.StateCreated, 100*time.Second)
		jobScoped(f)
	},
	"claimed, job-scoped": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		serve(f, lifecycle.StateClaimed, 100*time.Second)
		jobScoped(f)
	},
	"claimed, job-scoped, had its job": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		serve(f, lifecycle.StateClaimed, 100*time.Second)
		jobScoped(f)
		f.Report = &lifecycle.Report{Jobs: 1}
	},
	"claimed, failed before": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		serve(f, lifecycle.StateClaimed, 100*time.Second)
		f.Record.ClaimFailures = 1
	},
	"running": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		run(f, 2*time.Hour)
	},
	"running, unattended 4m": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		run(f, 4*time.Hour-4*time.Minute)
		f.Request = &lifecycle.Request{Unattended: true}
	},
	"running, unattended 5m": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		run(f, 4*time.Hour-5*time.Minute)
		f.Request = &lifecycle.Request{Unattended: true}
	},
	"running, unattended 5m, had a job": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		run(f, 4*time.Hour-5*time.Minute)
		f.Request = &lifecycle.Request{Unattended: true}
		f.Report = &lifecycle.Report{Jobs: 1}
	},
	"running, job-scoped": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		run(f, 2*time.Hour)
		f.Record.JobsOf = "acme"
	},
	"running, job-scoped, had its job": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		run(f, 2*time.Hour)
		f.Record.JobsOf = "acme"
		f.Report = &lifecycle.Report{Jobs: 1}
	},
	"running, job-scoped, unattended 4m": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		run(f, 4*time.Hour-4*time.Minute)
		f.Record.JobsOf = "acme"
		f.Request = &lifecycle.Request{Unattended: true}
	},
	"running, job-scoped, unattended 5m": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		run(f, 4*time.Hour-5*time.Minute)
		f.Record.JobsOf = "acme"
		f.Request = &lifecycle.Request{Unattended: true}
	},
	"releasing": func(f *lifecycle.Facts, _ *lifecycle.Policy) { release(f) },
	"releasing, no token": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		release(f)
		f.Record.Registration = nil
	},
	"releasing, job-scoped": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		release(f)
		f.Record.JobsOf, f.Record.Registration = "acme", nil
	},
	"releasing, token expired": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		release(f)
		f.Record.Registration.ExpiresAt = now
	},
	"releasing, never registered": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		release(f)
		f.Record.RuntimeEndsAt, f.Record.RunnerName, f.Record.Registration = time.Time{}, "", nil
	},
	"releasing, extended": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		release(f)
		f.Record.ReleasedAt = now.Add(100*time.Second - 30*time.Minute)
	},
	"releasing, for 30m": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		release(f)
		f.Record.ReleasedAt = now.Add(-30 * time.Minute)
	},
	"releasing, fresh": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		release(f)
		fresh(f)
	},
	"releasing, fresh, reuse none": func(f *lifecycle.Facts, p *lifecycle.Policy) {
		release(f)
		fresh(f)
		p.Reuse = lifecycle.ReuseNone
	},
	"pooled, fresh": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		pool(f)
		fresh(f)
	},
	"releasing, retiring": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		release(f)
		f.Record.Retiring = true
	},
	"releasing, reuse none": func(f *lifecycle.Facts, p *lifecycle.Policy) {
		release(f)
		p.Reuse = lifecycle.ReuseNone
	},
	"releasing, docker not kept": func(f *lifecycle.Facts, p *lifecycle.Policy) {
		release(f)
		p.DockerCache, f.Record.RequestID, f.Record.KeepCaches = "images", "q1", []string{"others"}
	},
	"releasing, docker not judged": func(f *lifecycle.Facts, p *lifecycle.Policy) {
		release(f)
		p.DockerCache, f.Record.RequestID, f.Record.Unjudged = "images", "q1", true
	},
	"releasing, docker kept": func(f *lifecycle.Facts, p *lifecycle.Policy) {
		release(f)
		p.DockerCache, f.Record.RequestID, f.Record.KeepCaches = "images", "q1", []string{"images"}
	},
	"releasing, left standby, docker not kept": func(f *lifecycle.Facts, p *lifecycle.Policy) {
		release(f)
		p.DockerCache, f.Record.RequestID = "images", ""
	},
	"releasing, uses 3 of 3": func(f *lifecycle.Facts, p *lifecycle.Policy) {
		release(f)
		p.MaxUses = 3
	},
	"releasing, uses 3 of 4": func(f *lifecycle.Facts, p *lifecycle.Policy) {
		release(f)
		p.MaxUses = 4
	},
	"releasing, at its maximum age": func(f *lifecycle.Facts, p *lifecycle.Policy) {
		release(f)
		p.MaxAge = 3 * time.Hour
	},
	"releasing, not yet at its maximum age": func(f *lifecycle.Facts, p *lifecycle.Policy) {
		release(f)
		p.MaxAge = 3*time.Hour + 1
	},
	"releasing, drifted": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		release(f)
		drift(f)
	},
	"releasing, drifted and ignored": func(f *lifecycle.Facts, p *lifecycle.Policy) {
		release(f)
		drift(f)
		p.Drift = lifecycle.DriftIgnore
	},
	"running, drifted and at its maximum age": func(f *lifecycle.Facts, p *lifecycle.Policy) {
		run(f, 2*time.Hour)
		drift(f)
		p.MaxAge = time.Hour
	},
	"running, announced to controld": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		run(f, 2*time.Hour)
		f.Record.InterruptionAt = now.Add(time.Minute)
	},
	"running, to be replaced": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		run(f, 2*time.Hour)
		f.Request = &lifecycle.Request{Outcome: lifecycle.OutcomeReady, Spec: lifecycle.Spec{ReplaceInterrupted: true}}
	},
	"running, replaced": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		run(f, 2*time.Hour)
		f.Request = &lifecycle.Request{Outcome: lifecycle.OutcomeReady, Spec: lifecycle.Spec{ReplaceInterrupted: true}}
		f.Record.ReplacedBy = "replace-i-1-7"
	},
	"draining": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		release(f)
		f.Record.ReleasedAt = now.Add(-time.Hour)
		f.Record.Threshold = f.Record.RuntimeEndsAt
	},
	"pooled": func(f *lifecycle.Facts, _ *lifecycle.Policy) { pool(f) },
	"pooled, retiring": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		pool(f)
		f.Record.Retiring = true
	},
	"pooled, announced to controld": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		pool(f)
		f.Record.InterruptionAt = now.Add(time.Minute)
	},
	"pooled, at its maximum age": func(f *lifecycle.Facts, p *lifecycle.Policy) {
		pool(f)
		p.MaxAge = 3 * time.Hour
	},
	"pooled, soon at its maximum age": func(f *lifecycle.Facts, p *lifecycle.Policy) {
		pool(f)
		p.MaxAge = 3*time.Hour + 2*time.Minute
	},
	"pooled, drifted": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		pool(f)
		drift(f)
	},
	"pooled, drifted and retiring": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		pool(f)
		drift(f)
		f.Record.Retiring = true
	},
	"pooled, warming": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		pool(f)
		standBy(f, assignment, 0)
		f.Record.Registration = &lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: token}
	},
	"pooled, warming for 2m": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		pool(f)
		standBy(f, assignment, 0)
		f.Record.PooledAt = now.Add(-2 * time.Minute)
	},
	"pooled, hot": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		pool(f)
		standBy(f, assignment, runnerID)
	},
	"pooled, hot for a day": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		pool(f)
		standBy(f, assignment, runnerID)
		f.Record.PooledAt = now.Add(-24 * time.Hour)
	},
	"claimed, warming": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		serve(f, lifecycle.StateClaimed, 100*time.Second)
		f.Record.Standby = &lifecycle.Standby{Assignment: assignment - 1, Label: "standby"}
	},
	"claimed, discarding": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		serve(f, lifecycle.StateClaimed, 100*time.Second)
		f.Record.Standby = &lifecycle.Standby{Assignment: assignment - 1, Discarded: true}
	},
	"claimed, hot": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		serve(f, lifecycle.StateClaimed, 100*time.Second)
		standBy(f, assignment-1, runnerID)
	},
	"claimed, hot, labels set": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		serve(f, lifecycle.StateClaimed, 100*time.Second)
		standBy(f, assignment-1, runnerID)
		f.LabelsSet = true
	},
	"claimed, hot, runner gone": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		serve(f, lifecycle.StateClaimed, 100*time.Second)
		standBy(f, assignment-1, runnerID)
		f.Runner = &lifecycle.Runner{Gone: true}
	},
	"running, hot": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		run(f, 2*time.Hour)
		standBy(f, assignment-1, runnerID)
	},
	"releasing, to listen": func(f *lifecycle.Facts, p *lifecycle.Policy) {
		release(f)
		p.Standby = lifecycle.StandbyListening
	},
	"terminated": func(f *lifecycle.Facts, _ *lifecycle.Policy) { f.Record.State = lifecycle.StateTerminated },
	"terminated, 59m ago": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		f.Record.State, f.Record.UpdatedAt = lifecycle.StateTerminated, now.Add(-59*time.Minute)
	},
	"terminated, no runner on GitHub": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		f.Record.State, f.Runner = lifecycle.StateTerminated, &lifecycle.Runner{Gone: true}
	},
	"terminated, no runner name": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		f.Record.State, f.Record.RunnerName = lifecycle.StateTerminated, ""
	},
	"terminated, 24h ago": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		f.Record.State, f.Record.UpdatedAt = lifecycle.StateTerminated, now.Add(-24*time.Hour)
	},
	"terminated, forgotten": func(f *lifecycle.Facts, _ *lifecycle.Policy) {
		f.Record.State, f.Record.DueAt = lifecycle.StateTerminated, time.Time{}
	},
}

func hostNames() []string { return slices.Sorted(maps.Keys(hosts)) }

func serve(f *lifecycle.Facts, s lifecycle.State, left time.Duration) {
	r := &f.Record
	r.State, r.RunID, r.RequestID, r.Threshold = s, "101", "q1", now.Add(left)
	if s == lifecycle.StateCreated {
		r.Assignment = 1
	}
	r.RunnerName = lifecycle.RunnerName(r.Assignment, hostKey)
	r.Registration = &lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: token}
}

// jobScoped makes the host one that registers by a JIT configuration.
func jobScoped(f *lifecycle.Facts) {
	f.Record.JobsOf, f.Record.Registration.Kind = "acme", lifecycle.RegistrationJIT
}

// run makes the host a running one that has left of its runtime of 4 h.
func run(f *lifecycle.Facts, left time.Duration) {
	serve(f, lifecycle.StateRunning, left)
	f.Record.Registration = nil
	f.Record.RuntimeEndsAt = f.Record.Threshold
}

func release(f *lifecycle.Facts) {
	r := &f.Record
	r.State, r.ReleasedAt = lifecycle.StateIdle, now.Add(-20*time.Second)
	r.Threshold, r.RuntimeEndsAt = now.Add(100*time.Second), now.Add(2*time.Hour)
	r.Registration = &lifecycle.Registration{Kind: lifecycle.RegistrationRemove, Secret: token, ExpiresAt: now.Add(time.Hour)}
}

// fresh makes the host one that was launched for the warm pool.
func fresh(f *lifecycle.Facts) {
	r := &f.Record
	r.Assignment = 1
	r.Repository, r.TrustKey, r.Uses, r.RunnerName, r.Registration, r.RuntimeEndsAt = "", "", 0, "", nil, time.Time{}
}

// drift makes the host one of an older launch template.
func drift(f *lifecycle.Facts) { f.Record.TemplateVersion, f.Template = "7", "8" }

// runnerID is the runner with which the hot hosts wait.
const runnerID = 99

// standBy gives the host a registration ahead of need.
func standBy(f *lifecycle.Facts, assignment, runner int64) {
	f.Record.RunnerName = lifecycle.RunnerName(assignment, hostKey)
	f.Record.Standby = &lifecycle.Standby{Assignment: assignment, Label: "standby", RunnerID: runner}
}

func pool(f *lifecycle.Facts) {
	r := &f.Record
	r.State, r.PooledAt, r.Threshold = lifecycle.StateIdle, now.Add(-time.Minute), now.Add(4*time.Minute)
	r.RunnerName = ""
}
