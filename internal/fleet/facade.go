package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/checks"
	"github.com/remuda-ci/remuda/internal/fleet/explain"
	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/jobs"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/fleet/provision"
	"github.com/remuda-ci/remuda/internal/fleet/scaledown"
	"github.com/remuda-ci/remuda/internal/fleet/sweeps"
	"github.com/remuda-ci/remuda/internal/fleet/warm"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/waiting"
)

// Callers of a fleet know this package alone. These are the names of the rooms that they need.
type (
	// Ports and settings:

	Store         = ports.Store
	Queue         = ports.Queue
	Compute       = ports.Compute
	GitHub        = ports.GitHub
	GuardStore    = ports.GuardStore
	JobStore      = ports.JobStore
	GitHubJobs    = ports.GitHubJobs
	GitHubSources = ports.GitHubSources
	Notices       = ports.Notices
	Registrations = scaledown.Registrations
	Observer      = ports.Observer
	Class         = ports.Class
	Pool          = ports.Pool
	WarmPool      = ports.WarmPool
	JobPool       = ports.JobPool
	Timing        = ports.Timing
	Rate          = ports.Rate
	JobOptions    = jobs.Options
	CheckOptions  = checks.Options
	GitHubChecks  = checks.GitHub
	ScaleDown     = scaledown.Options

	// Operations:

	Op          = op.Op
	Progress    = op.Progress
	Decided     = op.Decided
	Subject     = op.Subject
	Tracer      = op.Tracer
	Demand      = provision.Demand
	Provision   = provision.Provision
	Release     = provision.Release
	CloudSweep  = sweeps.CloudSweep
	NoticeRound = sweeps.NoticeRound
	OfRun       = explain.OfRun
	Explanation = explain.Explanation
	RunningJob  = explain.RunningJob
	Wait        = explain.Wait
	WaitAnswer  = waiting.Answer
	Counts      = explain.Counts
	DrainTarget = hosts.DrainTarget
	DropTarget  = hosts.DropTarget

	// Errors:

	CutError       = op.CutError
	InvalidError   = hosts.InvalidError
	HeldError      = hosts.HeldError
	StateError     = hosts.StateError
	FleetHeldError = hosts.FleetHeldError
	ShortError     = provision.ShortError
	ReleasedError  = provision.ReleasedError
)

// Errors of the rooms.
var (
	ErrNotOurs     = jobs.ErrNotOurs
	ErrSpecDiffers = provision.ErrSpecDiffers
)

// Defaults of a request (docs/interfaces.md#grpc-fleetservice).
const (
	DefaultPool          = provision.DefaultPool
	DefaultResourceClass = provision.DefaultResourceClass
	DefaultTimeout       = provision.DefaultTimeout
)

// DefaultInstanceTypes are the patterns of a request that names none.
var DefaultInstanceTypes = provision.DefaultInstanceTypes

// WithMachine fills in the defaults of what machine a spec asks for.
func WithMachine(s lifecycle.Spec) lifecycle.Spec { return provision.WithMachine(s) }

// OneLine is an error in one line of bounded length; see op.OneLine.
func OneLine(err error) string { return op.OneLine(err) }

// Healthy reports whether a host reports and is not about to end; see explain.Healthy.
func Healthy(r lifecycle.Record, report *lifecycle.Report, now time.Time, p lifecycle.Policy) bool {
	return explain.Healthy(r, report, now, p)
}

// Drive steps an operation until it is done, fails, or ctx ends; see op.Driver.
func (f *Fleet) Drive(ctx context.Context, o Op, patience time.Duration) error {
	return f.ops.Drive(ctx, o, patience)
}

// NewProvision begins a request, or resumes the one that has its id: *InvalidError.
func (f *Fleet) NewProvision(d Demand) (*Provision, error) { return f.provision.NewProvision(d) }

// NewRelease begins the release of a run; see provision.Provisioner.NewRelease.
func (f *Fleet) NewRelease(repository, runID string, attempt int, wait bool) *Release {
	return f.provision.NewRelease(repository, runID, attempt, wait)
}

// NewFollow begins the continuation of a release without its caller; see provision.Provisioner.NewFollow.
func (f *Fleet) NewFollow(repository, runID string, attempt int) *Release {
	return f.provision.NewFollow(repository, runID, attempt)
}

// TakeWebhook stores a delivery and has it handled: ErrNotOurs, lifecycle.ErrExists.
func (f *Fleet) TakeWebhook(ctx context.Context, w lifecycle.Webhook, now time.Time) error {
	if err := f.CheckClock(); err != nil {
		return err
	}
	if f.jobs == nil {
		return ErrNotOurs
	}
	return f.jobs.TakeWebhook(ctx, w, now)
}

// ServeJobs handles webhooks and job pools until ctx ends; see jobs.Jobs.ServeJobs.
func (f *Fleet) ServeJobs(ctx context.Context) {
	if f.jobs != nil {
		f.jobs.ServeJobs(ctx)
	}
}

// ServeJobsWith is ServeJobs for a simulator; see jobs.Jobs.ServeJobsWith.
func (f *Fleet) ServeJobsWith(start func(what string, o Op)) { f.jobs.ServeJobsWith(start) }

// Fork reports whether the commit of a run is a fork's; see jobs.Jobs.Fork.
func (f *Fleet) Fork(ctx context.Context, repository, runID string) (policy.Fork, error) {
	if f.jobs == nil {
		return policy.ForkUnknown, nil
	}
	return f.jobs.Fork(ctx, repository, runID)
}

// Instance reads one host and its report; see hosts.Hosts.Instance.
func (f *Fleet) Instance(ctx context.Context, instanceID string, now time.Time) (lifecycle.Record, *lifecycle.Report, error) {
	return f.hosts.Instance(ctx, instanceID, now)
}

// List pages through hosts; see explain.Explainer.List.
func (f *Fleet) List(ctx context.Context, filter lifecycle.Filter, page lifecycle.PageOf, now time.Time) (lifecycle.Page[lifecycle.Record], map[string]lifecycle.Report, error) {
	return f.explain.List(ctx, filter, page, now)
}

// ReportsOf reads the reports of records, by host key, as far as they may be believed. Those that are heard already are not read.
func (f *Fleet) ReportsOf(ctx context.Context, records []lifecycle.Record, heard map[string]lifecycle.Report, now time.Time) (map[string]lifecycle.Report, error) {
	return f.explain.ReportsOf(ctx, records, heard, now)
}

// Count counts the live hosts by pool; see explain.Explainer.Count.
func (f *Fleet) Count(ctx context.Context, now time.Time) (map[string]explain.Counts, error) {
	return f.explain.Count(ctx, now)
}

// Hold keeps a host from being claimed or ended; see hosts.Hosts.Hold.
func (f *Fleet) Hold(ctx context.Context, instanceID string, d time.Duration, reason string, now time.Time) (lifecycle.Record, error) {
	if err := f.CheckClock(); err != nil {
		return lifecycle.Record{}, err
	}
	return f.hosts.Hold(ctx, instanceID, d, reason, now)
}

// CheckClock returns a *clock.Error while the clock of this machine is too far from the store's: then nothing that writes a time or
// ends hosts by one is done here.
func (f *Fleet) CheckClock() error { return f.ops.CheckClock() }

// Drain has hosts leave once they have no run; see hosts.Hosts.Drain.
func (f *Fleet) Drain(ctx context.Context, of DrainTarget, reason, by string, now time.Time) (hosts.Drained, error) {
	if err := f.CheckClock(); err != nil {
		return hosts.Drained{}, err
	}
	if _, known := f.pools[of.Pool]; of.Pool != "" && !known {
		return hosts.Drained{}, fmt.Errorf("drain pool %s: %w", of.Pool, lifecycle.ErrNotFound)
	}
	return f.hosts.Drain(ctx, of, reason, by, now)
}

// DropCache has the hosts of a pool delete a cache; see hosts.Hosts.DropCache.
func (f *Fleet) DropCache(ctx context.Context, t DropTarget, reason, by string, now time.Time) (hosts.Dropped, error) {
	if err := f.CheckClock(); err != nil {
		return hosts.Dropped{}, err
	}
	return f.hosts.DropCache(ctx, t, reason, by, now)
}

// CacheNames are the names of the caches that a host may have of the repository that it serves, or served last, and of its owner, by their keys.
func (f *Fleet) CacheNames(r lifecycle.Record) map[string]string {
	names := map[string]string{}
	for _, spec := range f.pools[r.Pool].Caches {
		if key := spec.Key(r.Repository); key != "" {
			names[key] = spec.Name
		}
	}
	return names
}

// HoldFleet keeps every host from being ended; see hosts.Hosts.HoldFleet.
func (f *Fleet) HoldFleet(ctx context.Context, d time.Duration, reason, by string, now time.Time) (h fleethold.Hold, stored bool, err error) {
	if err := f.CheckClock(); err != nil {
		return h, false, err
	}
	return f.hosts.HoldFleet(ctx, d, reason, by, now)
}

// FleetHold is the hold on the whole fleet, in force or not.
func (f *Fleet) FleetHold(ctx context.Context) (fleethold.Hold, error) {
	return f.hosts.FleetHold(ctx)
}

// SetPause pauses a pool or resumes it; see quota.Ledger.SetPause.
func (f *Fleet) SetPause(ctx context.Context, pool string, on bool, reason, by string, now time.Time) (pause.Pause, error) {
	if err := f.CheckClock(); err != nil {
		return pause.Pause{}, err
	}
	return f.quota.SetPause(ctx, pool, on, reason, by, now)
}

// PauseOf is the pause of a pool, on or not, as it was a few seconds ago; see quota.Ledger.PauseOf.
func (f *Fleet) PauseOf(ctx context.Context, pool string, now time.Time) (pause.Pause, error) {
	return f.quota.PauseOf(ctx, pool, now)
}

// Terminate ends a host on an operator's order, also while the clock of this machine is wrong; see hosts.Hosts.Terminate.
func (f *Fleet) Terminate(ctx context.Context, instanceID, reason string, now time.Time) (lifecycle.Record, error) {
	return f.hosts.Terminate(ctx, instanceID, reason, f.ops.StoreTime(now))
}

// Explain explains a run; see explain.Explainer.Explain.
func (f *Fleet) Explain(ctx context.Context, repository, runID string, now time.Time) (Explanation, error) {
	return f.explain.Explain(ctx, lifecycle.Canonical(repository), runID, now)
}

// ExplainHost explains a host; see explain.Explainer.ExplainHost.
func (f *Fleet) ExplainHost(ctx context.Context, instanceID string, of OfRun, now time.Time) (Explanation, error) {
	of.Repository = lifecycle.Canonical(of.Repository)
	return f.explain.ExplainHost(ctx, instanceID, of, now)
}

// ExplainJob explains a job; see explain.Explainer.ExplainJob.
func (f *Fleet) ExplainJob(ctx context.Context, id int64, of, named OfRun, now time.Time) (Explanation, error) {
	of.Repository, named.Repository = lifecycle.Canonical(of.Repository), lifecycle.Canonical(named.Repository)
	return f.explain.ExplainJob(ctx, id, of, named, now)
}

// Statements lists the signed statements of resets; see explain.Explainer.Statements.
func (f *Fleet) Statements(ctx context.Context, e Explanation, of OfRun, now time.Time) ([]lifecycle.Event, error) {
	return f.explain.Statements(ctx, e, of, now)
}

// JobsOn finds the jobs that hosts run; see explain.Explainer.JobsOn.
func (f *Fleet) JobsOn(ctx context.Context, records []lifecycle.Record, now time.Time) (map[string]RunningJob, error) {
	return f.explain.JobsOn(ctx, records, now)
}

// WhyWaits answers why a waiting job of a job pool has no host yet; see explain.Explainer.WhyWaits.
func (f *Fleet) WhyWaits(ctx context.Context, j lifecycle.Job, now time.Time) (waiting.Answer, error) {
	return f.explain.WhyWaits(ctx, j, now)
}

// Waiting lists what waits for hosts; see explain.Explainer.Waiting.
func (f *Fleet) Waiting(ctx context.Context, pool string, most int, now time.Time) (all []Wait, more bool, err error) {
	return f.explain.Waiting(ctx, pool, most, now)
}

// WaitingRequests lists the requests of runs that wait for hosts; see explain.Explainer.WaitingRequests.
func (f *Fleet) WaitingRequests(ctx context.Context, now time.Time) (all []Wait, more bool, err error) {
	return f.explain.WaitingRequests(ctx, "", now)
}

// Events lists the history; see explain.Explainer.Events.
func (f *Fleet) Events(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
	return f.explain.Events(ctx, page)
}

// History lists the newest events; see explain.Explainer.History.
func (f *Fleet) History(ctx context.Context, instanceID string, since, until time.Time, limit int) (lifecycle.HostHistory, error) {
	return f.explain.History(ctx, instanceID, since, until, limit)
}

// LastEvent is the page after the newest event; see explain.Explainer.LastEvent.
func (f *Fleet) LastEvent(ctx context.Context) (lifecycle.PageOf, error) {
	return f.explain.LastEvent(ctx)
}

// Snapshot is the fleet as the next scale-down would find it; see scaledown.Scaler.Snapshot.
func (f *Fleet) Snapshot(ctx context.Context, now time.Time) (policy.Snapshot, []Decided, error) {
	return f.scaledown.Snapshot(ctx, now)
}

// ErrNoScaleDown says that there is no plan.
var ErrNoScaleDown = scaledown.ErrNone

// ScaleDownPlan is what a scale-down would do at a time; the zero time: now. See scaledown.Scaler.Plan.
func (f *Fleet) ScaleDownPlan(ctx context.Context, at, now time.Time) (scaledown.Plan, error) {
	return f.scaledown.Plan(ctx, at, now)
}

// Pools are the configured pools, by name.
func (f *Fleet) Pools() map[string]Pool { return f.pools }

// Policy is that of a pool; see hosts.Hosts.Policy.
func (f *Fleet) Policy(pool string) lifecycle.Policy { return f.hosts.Policy(pool) }

// WarmWanted is how many unused hosts a pool is to have ready.
func (f *Fleet) WarmWanted(pool string, now time.Time) int {
	return f.warm.WarmWanted(lifecycle.RequestWarm, pool, now)
}

// NewSweeper returns a sweeper that does not hold the lease yet.
func (f *Fleet) NewSweeper() *sweeps.Sweeper { return f.sweeps.NewSweeper(f.sweepTable()) }

// Sweep runs the sweeper until ctx ends. A sweep that fails is tried again.
func (f *Fleet) Sweep(ctx context.Context) { f.sweeps.Sweep(ctx, f.sweepTable()) }

// HearNotices handles what EC2 announces, until ctx ends; see sweeps.Sweeps.HearNotices.
func (f *Fleet) HearNotices(ctx context.Context) { f.sweeps.HearNotices(ctx) }

// NewNoticeRound begins a round over the notices that there are.
func (f *Fleet) NewNoticeRound() *sweeps.NoticeRound { return f.sweeps.NewNoticeRound() }

// NewDueSweep begins a sweep over due hosts and requests.
func (f *Fleet) NewDueSweep() *sweeps.DueSweep { return f.sweeps.NewDueSweep() }

// NewLivenessSweep begins a sweep over silent and failed hosts.
func (f *Fleet) NewLivenessSweep() *sweeps.LivenessSweep { return f.sweeps.NewLivenessSweep() }

// NewCloudSweep begins a sweep that compares the cloud with the store.
func (f *Fleet) NewCloudSweep() *sweeps.CloudSweep { return f.sweeps.NewCloudSweep() }

// NewGitHubSweep begins a sweep over registrations that no host stands behind.
func (f *Fleet) NewGitHubSweep() *sweeps.GitHubSweep { return f.sweeps.NewGitHubSweep() }

// NewJobSweep begins a sweep over due webhooks and jobs, and the job pools.
func (f *Fleet) NewJobSweep() *jobs.Sweep { return f.jobs.NewSweep() }

// NewMissedSweep begins a sweep over deliveries that were missed.
func (f *Fleet) NewMissedSweep() *jobs.MissedSweep { return f.jobs.NewMissedSweep() }

// NewScaleDownSweep begins a sweep of scale-down.
func (f *Fleet) NewScaleDownSweep() *scaledown.Sweep { return f.scaledown.NewSweep() }

// StoppedWanted is how many unused hosts a pool is to have stopped.
func (f *Fleet) StoppedWanted(pool string, now time.Time) int {
	return f.warm.WarmWanted(lifecycle.RequestStopped, pool, now)
}

// NewWarmSweep begins a sweep that tops up the warm pools.
func (f *Fleet) NewWarmSweep() *warm.Sweep { return f.warm.NewSweep() }

// NewRunnerSweep begins a sweep over the versions of actions/runner.
func (f *Fleet) NewRunnerSweep() *sweeps.RunnerSweep { return f.sweeps.NewRunnerSweep() }
