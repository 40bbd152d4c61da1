// Package ports holds the interfaces by which a fleet reaches its store, its queue, the cloud and GitHub, and
// the settings that its rooms share: pools, resource classes and intervals.
package ports

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/breaker"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/lifecycle/delivery"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/lifecycle/notice"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Store is the truth. Every write is conditional. Methods return lifecycle.ErrNotFound, ErrExists, ErrLost
// (the condition did not hold) or ErrUnavailable (it may or may not have taken effect), wrapped.
type Store interface {
	// CreateInstance writes a new record: ErrExists if the host key is taken.
	CreateInstance(ctx context.Context, r lifecycle.Record) error
	// UpdateInstance replaces the record whose stored version is r.Version and
	// returns it as stored, with the next version. Else: ErrLost.
	UpdateInstance(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error)
	// ClaimInstance takes a pooled host in one write without a read, if
	// c.Holds for it (the store checks exactly that). Else: ErrLost.
	ClaimInstance(ctx context.Context, c lifecycle.Claim) (lifecycle.Record, error)
	// Instance reads one record, consistently: ErrNotFound.
	Instance(ctx context.Context, hostKey string) (lifecycle.Record, error)
	// Instances reads many records, consistently and in any order; missing ones
	// are left out. A host that an old read leaves out would be taken for lost.
	Instances(ctx context.Context, hostKeys []string) ([]lifecycle.Record, error)
	// InstancesOfRun lists by-run: the records that name the run. The index may lag.
	InstancesOfRun(ctx context.Context, runID string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error)
	// PooledInstances lists by-pool, the longest pooled first: the idle hosts of a
	// pool that are bound to the trust key, or with "" its fresh ones. The index may lag.
	PooledInstances(ctx context.Context, pool string, q lifecycle.QueueName, trustKey string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error)
	// NewestPooled lists the last of what PooledInstances lists, at most limit,
	// the shortest pooled first. The index may lag.
	NewestPooled(ctx context.Context, pool string, q lifecycle.QueueName, trustKey string, limit int) ([]lifecycle.Record, error)
	// ClaimablePooled lists what NewestPooled lists, as it was a moment ago. A claim's condition decides about each.
	ClaimablePooled(ctx context.Context, pool string, q lifecycle.QueueName, trustKey string, limit int) ([]lifecycle.Record, error)
	// StoppedInstances lists by-pool: the stopped hosts of a pool and queue, of whatever
	// trust key, at most limit, the shortest pooled first. The index may lag.
	StoppedInstances(ctx context.Context, pool string, q lifecycle.QueueName, limit int) ([]lifecycle.Record, error)
	// DueInstances lists by-due: records with dueAt at or before now, the
	// longest due first. Its cost grows with what is due. The index may lag.
	DueInstances(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error)
	// ListInstances is for people: it may scan. In order of host key.
	ListInstances(ctx context.Context, f lifecycle.Filter, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error)

	// Reports reads the reports of the hosts that have one, by host key.
	Reports(ctx context.Context, hostKeys []string) (map[string]lifecycle.Report, error)
	// AllReports lists every report: the liveness sweep's one scan.
	AllReports(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Report], error)
	// DeleteReport removes the report of an ended host; none is no error.
	DeleteReport(ctx context.Context, hostKey string) error

	// CreateRequest writes a new request: ErrExists if its id is taken in the run.
	CreateRequest(ctx context.Context, q lifecycle.Request) error
	// UpdateRequest replaces the request whose stored version is q.Version and
	// returns it as stored, with the next version. Else: ErrLost.
	UpdateRequest(ctx context.Context, q lifecycle.Request) (lifecycle.Request, error)
	// Request reads one request, consistently: ErrNotFound.
	Request(ctx context.Context, repository, runID, requestID string) (lifecycle.Request, error)
	// RequestsOfRun lists the requests of a run, consistently, by request id.
	RequestsOfRun(ctx context.Context, repository, runID string) ([]lifecycle.Request, error)
	// DueRequests is DueInstances for requests.
	DueRequests(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Request], error)

	// AddEvents appends to the history; the store gives ids. Kept for 24 h.
	AddEvents(ctx context.Context, events []lifecycle.Event) error
	// EventsOfRun lists the history of a run, oldest first.
	EventsOfRun(ctx context.Context, repository, runID string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error)
	// EventsOfInstance lists the newest events of a host, at most limit, none from before since
	// and, if until is not zero, only those before it, oldest first. It may leave off sooner, and says where.
	EventsOfInstance(ctx context.Context, instanceID string, since, until time.Time, limit int) (lifecycle.HostHistory, error)
	// EventsSince lists the whole history after a page token, oldest first. An
	// empty page still gives a Next to go on from.
	EventsSince(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error)

	// LastEvent is the page token of the newest event: EventsSince goes on
	// after it with what happens from now on.
	LastEvent(ctx context.Context) (string, error)

	// CreateReading writes the time that a host was used for: ErrExists if it is written.
	CreateReading(ctx context.Context, r meter.Reading) error
	// Reading reads a reading, consistently: ErrNotFound.
	Reading(ctx context.Context, day, name string) (meter.Reading, error)
	// ReadingsOfDay lists the readings of a day, in the order of their ends. The newest may be missing.
	ReadingsOfDay(ctx context.Context, day string) ([]meter.Reading, error)
	// ReadingsSince lists the readings of the day of a time whose cycles were released then or later, in that order. The newest may be missing.
	ReadingsSince(ctx context.Context, at time.Time) ([]meter.Reading, error)
	// CreateJobTime writes when a job ran and on which host: ErrExists if it is written.
	CreateJobTime(ctx context.Context, t meter.JobTime) error
	// JobTimesOfDay lists when the jobs ran that ended on a day, in the order of their ends. The newest may be missing.
	JobTimesOfDay(ctx context.Context, day string) ([]meter.JobTime, error)
	// Day reads the sums of a day. Those of one that was never written are empty and of version 0.
	Day(ctx context.Context, day string) (meter.Day, error)
	// UpdateDay replaces the sums of a day whose stored version is d.Version (0: there are none): else ErrConflict.
	UpdateDay(ctx context.Context, d meter.Day) (meter.Day, error)
	// DaysOfMonth lists the sums of the days of a month ("2026-11"), in their order. The newest may be missing.
	DaysOfMonth(ctx context.Context, month string) ([]meter.Day, error)

	// CallsOfDay reads the calls to AWS of a replica on a day. Those that were never written are none, of version 0.
	CallsOfDay(ctx context.Context, month, name string) (meter.CallsOfDay, error)
	// UpdateCallsOfDay replaces the calls whose stored version is d.Version (0: there are none): else ErrConflict.
	UpdateCallsOfDay(ctx context.Context, d meter.CallsOfDay) (meter.CallsOfDay, error)
	// CallsOfMonth lists the calls of all replicas in a month ("2026-11"), by day and replica. The newest may be missing.
	CallsOfMonth(ctx context.Context, month string) ([]meter.CallsOfDay, error)

	// Lease reads a lease: ErrNotFound if no replica ever held it.
	Lease(ctx context.Context, name string) (replicas.Lease, error)
	// TakeLease writes the lease if its stored version is still l.Version (0:
	// it does not exist) and returns it with the next one. Else: ErrLost.
	TakeLease(ctx context.Context, l replicas.Lease) (replicas.Lease, error)
}

// Queue holds hints to idle hosts. Delivery is at least once, in no order.
type Queue interface {
	// Send puts each message into the queue of its resource and usage class.
	Send(ctx context.Context, messages ...lifecycle.Message) error
	// Receive hands out at most limit (1 to 10) messages and hides them for the queue's visibility time. It
	// may wait up to 1 s for a first one. A body that cannot be parsed is logged and deleted.
	Receive(ctx context.Context, q lifecycle.QueueName, limit int) ([]lifecycle.Delivery, error)
	// Delete removes deliveries (1 to 10). An unknown handle is no error.
	Delete(ctx context.Context, q lifecycle.QueueName, handles ...string) error
	// Return makes deliveries (1 to 10) visible to others at once.
	Return(ctx context.Context, q lifecycle.QueueName, handles ...string) error
}

// Machines launches machines and finds them.
type Machines interface {
	// Launch starts order.Count machines. The same order gives the same machines, however often it is made.
	// With fewer than ordered it returns those, and a *lifecycle.ShortageError.
	Launch(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error)
	// Launched finds the machines that a launch made, by their tags (lifecycle.Machine.From).
	Launched(ctx context.Context, order lifecycle.LaunchOrder) ([]lifecycle.Machine, error)
	// Describe reads each machine asked for; an unknown one is MachineGone.
	Describe(ctx context.Context, instanceIDs []string) ([]lifecycle.Machine, error)
	// List pages through every machine with our tag that is not gone.
	List(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error)
	// RootTasks lists the replacements of the root volumes of machines, also those of long ago.
	RootTasks(ctx context.Context, instanceIDs []string) ([]lifecycle.RootTask, error)
}

// Compute is Machines with the means to end, stop, start and renew some, which only hosts.EndMachines, hosts.Power and hosts.ReplaceRoot use.
type Compute interface {
	Machines
	// Stop begins to stop a machine, which keeps its disk. One that is stopped, stopping, unknown or gone is no error.
	// With hibernate it keeps its memory too, if it can, and is stopped plainly if not.
	Stop(ctx context.Context, instanceID string, hibernate bool) error
	// Start begins to start a stopped machine. One that runs or starts is no error. Without capacity for it: a *lifecycle.ShortageError.
	// One that is still stopping: ErrUnavailable.
	Start(ctx context.Context, instanceID string) error
	// ReplaceRoot begins to replace the root volume of a running machine by what it was launched with. The same token gives the same replacement. If the
	// cloud will not do it for this machine: ErrRefused.
	ReplaceRoot(ctx context.Context, instanceID, token string) (lifecycle.RootTask, error)
	// Terminate ends machines; one that is unknown or gone is no error.
	Terminate(ctx context.Context, instanceIDs []string) error
}

// GitHub mints tokens and lists registrations. Repositories are "owner/name".
type GitHub interface {
	// RegistrationToken returns a token that is good for at least 10 minutes.
	RegistrationToken(ctx context.Context, repository string) (lifecycle.Registration, error)
	// RemoveToken returns a token that is good for at least 10 minutes.
	RemoveToken(ctx context.Context, repository string) (lifecycle.Registration, error)
	// FindRunner finds a registration by its exact name: ErrNotFound.
	FindRunner(ctx context.Context, repository, name string) (lifecycle.Runner, error)
	// DeleteRunner removes a registration; one that is gone is no error. A runner that runs a job is ErrBusy.
	DeleteRunner(ctx context.Context, repository string, id int64) error
	// SetLabels replaces the custom labels of a registered runner: ErrNotFound.
	SetLabels(ctx context.Context, repository string, id int64, labels []string) error
	// Runners pages through the registrations of a repository.
	Runners(ctx context.Context, repository string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error)
}

// SendAtOnce is how many messages a queue takes in one call. Send splits what is more.
const SendAtOnce = 10

// ReceiveAtMost is the most messages that the queue hands out at once.
const ReceiveAtMost = 10

// GuardStore keeps what bounds the fleet as a whole. Reads are consistent, and
// what was never written is empty and of version 0. Its errors are those of Store.
type GuardStore interface {
	// FleetHold reads the hold on the whole fleet.
	FleetHold(ctx context.Context) (fleethold.Hold, error)
	// UpdateFleetHold replaces the hold whose stored version is h.Version (0: there
	// is none) and returns it as stored, with the next version. Else: ErrLost.
	UpdateFleetHold(ctx context.Context, h fleethold.Hold) (fleethold.Hold, error)
	// Breaker reads the breaker of a pool.
	Breaker(ctx context.Context, pool string) (breaker.Row, error)
	// UpdateBreaker is UpdateFleetHold for a breaker.
	UpdateBreaker(ctx context.Context, b breaker.Row) (breaker.Row, error)
	// Pause reads the pause of a pool.
	Pause(ctx context.Context, pool string) (pause.Pause, error)
	// UpdatePause is UpdateFleetHold for a pause.
	UpdatePause(ctx context.Context, p pause.Pause) (pause.Pause, error)
	// QuotaLedger reads the account of a limit.
	QuotaLedger(ctx context.Context, name string) (ledger.Quota, error)
	// UpdateQuotaLedger is UpdateFleetHold for an account.
	UpdateQuotaLedger(ctx context.Context, a ledger.Quota) (ledger.Quota, error)
	// SeeOnce remembers an id of a kind until a time: ErrExists if it is remembered already.
	SeeOnce(ctx context.Context, kind, id string, until time.Time) error
}

// JobStore keeps what GitHub told us, the jobs and the accounts of the job
// pools. Its errors are those of Store.
type JobStore interface {
	// CreateWebhook remembers a delivery: ErrExists if its id is known.
	CreateWebhook(ctx context.Context, w lifecycle.Webhook) error
	// UpdateWebhook replaces the row whose stored version is w.Version and
	// returns it as stored, with the next version. Else: ErrLost.
	UpdateWebhook(ctx context.Context, w lifecycle.Webhook) (lifecycle.Webhook, error)
	// Webhook reads one, consistently: ErrNotFound.
	Webhook(ctx context.Context, deliveryID string) (lifecycle.Webhook, error)
	// DueWebhooks is DueInstances for webhooks.
	DueWebhooks(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Webhook], error)

	// CreateJob writes a new job: ErrExists if its id is taken.
	CreateJob(ctx context.Context, j lifecycle.Job) error
	// UpdateJob replaces the job whose stored version is j.Version and returns
	// it as stored, with the next version. Else: ErrLost.
	UpdateJob(ctx context.Context, j lifecycle.Job) (lifecycle.Job, error)
	// Job reads one, consistently: ErrNotFound.
	Job(ctx context.Context, id int64) (lifecycle.Job, error)
	// JobsOf reads jobs by their ids, in any order. Those that are not there are left out.
	JobsOf(ctx context.Context, ids []int64) ([]lifecycle.Job, error)
	// OpenJobsOfRun lists the jobs of a run that are not done, in any order. The index may lag.
	OpenJobsOfRun(ctx context.Context, repository, runID string) ([]lifecycle.Job, error)
	// WaitingJobs lists the waiting jobs of a pool, in the order of Job.Before. The index may lag.
	WaitingJobs(ctx context.Context, pool string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Job], error)
	// DueJobs is DueInstances for jobs.
	DueJobs(ctx context.Context, now time.Time, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Job], error)

	// SlotTable reads the accounts of a pool, consistently. A pool that has none has
	// empty ones, of version 0.
	SlotTable(ctx context.Context, pool string) (slots.Table, error)
	// UpdateSlotTable replaces the accounts whose stored version is t.Version (0: there are none) and returns
	// them as stored, with the next version. Else: ErrLost.
	UpdateSlotTable(ctx context.Context, t slots.Table) (slots.Table, error)

	// SeeOnce remembers an id of a kind until a time: ErrExists if it is
	// remembered already. It is one conditional write.
	SeeOnce(ctx context.Context, kind, id string, until time.Time) error
}

// GitHubJobs is what jobs need of GitHub beside the registrations of runs.
type GitHubJobs interface {
	// JIT registers a runner for exactly one job, and returns the configuration that its listener starts
	// with, and the id of the registration. A name that an earlier call took, whose answer was lost, is taken
	// over; while the runner of that name runs a job it is ErrBusy.
	JIT(ctx context.Context, repository, name string, labels []string) (lifecycle.Registration, int64, error)
	// WorkflowRun reads a run as it is now: ErrNotFound.
	WorkflowRun(ctx context.Context, repository, runID string) (lifecycle.WorkflowRun, error)
	// WorkflowJob reads a job as it is now: ErrNotFound.
	WorkflowJob(ctx context.Context, repository string, id int64) (lifecycle.WorkflowJob, error)
	// RerunFailedJobs starts those jobs of a completed run again that did not
	// succeed, as its next attempt. ErrRefused where GitHub does not.
	RerunFailedJobs(ctx context.Context, repository, runID string) error
	// MissedDeliveries lists the deliveries since a time that GitHub could not
	// hand over, the oldest first: those of the webhook of each App. With a
	// personal access token there are none to be asked for: ErrNotFound.
	MissedDeliveries(ctx context.Context, since time.Time) ([]delivery.Missed, error)
	// DeliveryPayload is the body of a missed delivery.
	DeliveryPayload(ctx context.Context, d delivery.Missed) ([]byte, error)
	// QueuedJobs lists the jobs of a repository that wait for a runner.
	QueuedJobs(ctx context.Context, repository string) ([]lifecycle.WorkflowJob, error)
}

// GitHubSources is what the caches of runs need of GitHub.
type GitHubSources interface {
	// RunSource reads what a run was started by: ErrNotFound.
	RunSource(ctx context.Context, repository, runID string) (cache.Source, error)
	// Branch reads whether a branch is protected and has a commit: ErrNotFound for a branch that there is not.
	Branch(ctx context.Context, repository, name, sha string) (cache.Branch, error)
	// Mirror gives what a host needs to fetch a branch of the repository, good for at least 10 minutes.
	Mirror(ctx context.Context, repository, branch string) (lifecycle.Mirror, error)
}

// Notices hands out what EC2 announces of machines, ours and others'. Delivery is at least once, in no order.
type Notices interface {
	// Receive hands out some notices and hides them from others for a while. It may wait up to 20 s for a
	// first one. What cannot be parsed is logged and deleted.
	Receive(ctx context.Context) ([]notice.Delivery, error)
	// Delete removes deliveries (1 to 10). An unknown handle is no error.
	Delete(ctx context.Context, handles ...string) error
}

// Observer hears what is worth measuring.
type Observer interface {
	// Claimed: a request had its hosts from the pool, d after it began.
	Claimed(d time.Duration)
	// Registered: a host was ready, d after it was claimed or launched.
	Registered(d time.Duration)
	// Released: a host was pooled, d after its release.
	Released(d time.Duration)
	// Took: a request has more hosts of a pool: some that waited in it, and some that were launched.
	Took(pool string, pooled, launched int)
	// Provisioned: a request had all its hosts d after it was made. start is how the slowest of them came: "cold", launched for it;
	// "warm", from the pool; or "hot", from the pool with a runner that listened already.
	Provisioned(start string, d time.Duration)
	// JobStarted: a runner took a job of a job pool, d after GitHub had queued it.
	JobStarted(pool string, d time.Duration)
	// JobUnserved: a queued job gets no host for this reason.
	JobUnserved(code lifecycle.ReasonCode)
	// Busy: so many hosts have a job, as their agents reported to the liveness sweep.
	Busy(hosts int)
	// Swept: a sweep ended after d, with err or well.
	Swept(sweep string, d time.Duration, err error)
	// Decided: an action was decided, or carried out, for a reason.
	Decided(action lifecycle.Action, code lifecycle.ReasonCode)
	// Guarded: because too many failed at once, a guard keeps so many hosts or machines from being ended; 0: none.
	Guarded(guard string, held int)
	// RunnersEnd: when the versions of actions/runner that hosts have get no
	// jobs any more, as far as that is known.
	RunnersEnd(at map[string]time.Time)
	// HostTime: a host of a pool has spent its time in these ways, since this was last said of it.
	HostTime(pool string, t meter.Times)
	// HostCost: that time cost so much, at a number of dollars an hour. A host whose type has no price has no cost.
	HostCost(h meter.Host, perHour float64, t meter.Times)
	// MachineGone: the machine of a host ended by itself or by the cloud. why is lifecycle.Machine.EndReason.
	MachineGone(why string)
}

type SilentObserver struct{}

func (SilentObserver) Claimed(time.Duration) {}

func (SilentObserver) Registered(time.Duration) {}

func (SilentObserver) Released(time.Duration) {}

func (SilentObserver) Took(string, int, int) {}

func (SilentObserver) Provisioned(string, time.Duration) {}

func (SilentObserver) JobStarted(string, time.Duration) {}

// JobUnserved does nothing.
func (SilentObserver) JobUnserved(lifecycle.ReasonCode) {}

func (SilentObserver) Busy(int) {}

func (SilentObserver) Swept(string, time.Duration, error) {}

func (SilentObserver) Decided(lifecycle.Action, lifecycle.ReasonCode) {}

func (SilentObserver) Guarded(string, int) {}

func (SilentObserver) HostTime(string, meter.Times) {}

func (SilentObserver) HostCost(meter.Host, float64, meter.Times) {}

func (SilentObserver) MachineGone(string) {}

func (SilentObserver) RunnersEnd(map[string]time.Time) {}

// Rate is how many calls may be made at once, and how many more each second. The zero value is no bound.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Class is a resource class: what a host of it must have at least.
type Class struct {
	CPU       int
	MemoryMiB int
	// MaxCPU and MaxMemoryMiB are what it may have at most; 0: what the cloud's adapter finds fit for the least.
	MaxCPU, MaxMemoryMiB int
}

// Pool is a named entry of the configuration.
type Pool struct {
	Name            string
	ResourceClasses []string
	UsageClasses    []lifecycle.UsageClass
	// InstanceTypes are the patterns that the pool allows; empty: any.
	InstanceTypes []string
	// Privileged says out loud that a job may become root on its host.
	Privileged bool
	// DefaultLabels registers the pool's runners with GitHub's default labels (self-hosted, linux, and x64 or
	// arm64) beside their own.
	DefaultLabels bool
	// RerunInterrupted has the failed jobs of a run started again, once,
	// when an interrupted host took one of them with it.
	RerunInterrupted bool
	Policy           lifecycle.Policy
	// Caches are directories of jobs that outlive their runs.
	Caches []cache.Spec
	// Maximum is how many hosts it may have at once; 0: none, and nil: any number.
	Maximum *int
	// SpotBreaker pauses launches of spot hosts after many interruptions.
	SpotBreaker policy.SpotBreaker
	// Warm says what is launched ahead of need; nil: nothing is.
	Warm *WarmPool
	// Stopped says what is launched to be stopped until a run needs it; nil: nothing is.
	Stopped *WarmPool
}

// Ahead is what the pool launches ahead of need, by the kind of the request for it; nil: nothing.
func (p Pool) Ahead(kind lifecycle.RequestKind) *WarmPool {
	if kind == lifecycle.RequestStopped {
		return p.Stopped
	}
	return p.Warm
}

// HasUnused reports whether hosts of the pool wait that no run has used, or whose root volume is new: a run of any repository may claim them.
func (p Pool) HasUnused() bool { return p.Warm != nil || p.Policy.Reset == statement.LevelRootVolume }

// ByCaches reports whether requests choose among the idle hosts by their caches. Then no queue has the hosts, and the index alone shows them.
func (p Pool) ByCaches() bool { return len(p.Caches) > 0 }

// Timing holds the intervals of the use-cases. The zero value of a field means its default, and a negative one no time at all.
type Timing struct {
	// Poll is how often a waiting operation reads the reports it waits for.
	Poll time.Duration
	// Takeover is how long a request may stand still before a sweep goes on
	// with it. An operation that is alive renews it at half that time.
	Takeover time.Duration
	// Relaunch is how long a request that was short of capacity waits before it looks again.
	Relaunch time.Duration
	// Grace: machines younger than this are never called leaked.
	Grace time.Duration
	// Due, Liveness and Cloud are the intervals of the sweeps.
	Due, Liveness, Cloud time.Duration
	// Warm is the interval at which warm and stopped fresh hosts are topped up.
	Warm time.Duration
	// Services is the interval at which services of runners are looked at.
	Services time.Duration
	// Budgets is the interval at which it is added up how much of the budgets is used, and how old what a replica knows of it may be.
	Budgets time.Duration
	// Lease is how long a sweeper may be quiet before another takes over.
	Lease time.Duration
	// PauseLag is how long a replica may go by the pause of a pool as it last read it: the time in which an operator's pause
	// takes effect, and in which claims after the first one read nothing.
	PauseLag time.Duration
	// KeepRequests is how long a settled request is kept.
	KeepRequests time.Duration
}

func (t Timing) WithDefaults() Timing {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&t.Poll, 250*time.Millisecond)
	def(&t.Takeover, 20*time.Second)
	def(&t.Relaunch, 10*time.Second)
	def(&t.Grace, 5*time.Minute)
	def(&t.Due, 5*time.Second)
	def(&t.Liveness, 30*time.Second)
	def(&t.Cloud, 5*time.Minute)
	def(&t.Warm, 30*time.Second)
	def(&t.Services, time.Minute)
	def(&t.Budgets, 10*time.Minute)
	def(&t.Lease, 15*time.Second)
	def(&t.PauseLag, 5*time.Second)
	def(&t.KeepRequests, 7*24*time.Hour)
	return t
}

// JobPool is a pool whose hosts run one job each.
type JobPool struct {
	policy.JobPool
	// Labels are those of its runners.
	Labels []string
	// Spec is what a turn asks for. Count, labels and scope are filled in.
	Spec lifecycle.Spec
	// Repositories may use it: patterns of "owner/name" in which * stands for any part of a name.
	Repositories []string
	// Forks lets jobs through whose run is of a fork.
	Forks bool
}

// WarmPool is what a pool launches ahead of need: fresh hosts, which no run has
// used, for the first run that claims one, or has one started.
type WarmPool struct {
	// Spec is what each host is launched with: its resource and usage class,
	// instance types and whether spot may fall back to on-demand.
	Spec lifecycle.Spec
	// Policy is how many there are to be. Its maximum is Pool.Maximum.
	Policy policy.WarmPolicy
}
