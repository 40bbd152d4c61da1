package rules

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/world"
)

// Watcher holds a world against the rules.
type Watcher struct {
	*world.World

	hosts    map[string]*history
	launches map[string]lifecycle.LaunchOrder // by request and number
	given    map[string]string                // host and assignment, to the request it was given to
	// late are the machines that were launched long after their request was over.
	late map[string]bool
	// writtenAt is when the store got a request, which may be long after its
	// own clock said that it was created.
	writtenAt map[string]time.Time
	// settledAt is when a request first had no use for some host.
	settledAt map[string]time.Time
	// heldSince is when the fleet's hold came into force, and heldUntil when it ends or ended. roomSince is when there was first
	// room for a request that waits for it, by request id.
	heldSince time.Time
	heldUntil time.Time
	roomSince map[string]time.Time
	// pausedSince is since when a pool is paused, by its name.
	pausedSince map[string]time.Time
	// claimedAt is when a job of the service began to run, waitsSince when it began to wait, by
	// its id. had is the worker that has an attempt of a job.
	claimedAt, waitsSince map[string]time.Time
	had                   map[string]string
	// spareSince is since when a job pool has slots that no job needs.
	spareSince map[string]time.Time
	// labeled has the run whose labels a runner got last, by its id. listened are the names by which a runner has been online.
	labeled  map[int64]string
	listened map[string]bool
	// replaced has the requests, by their id, that were lost or got an older state. lost: some row was.
	replaced map[string]bool
	lost     bool
	// jobsReplaced are the jobs whose rows were, or those of their webhooks.
	jobsReplaced map[int64]bool
	// droppedAt is when an operator dropped a cache last, by its pool and key.
	droppedAt map[world.CacheDropped]time.Time
	// workReplaced are the service's jobs whose rows were. workersReplaced are the workers whose rows were, and have not been written since.
	workReplaced, workersReplaced map[string]bool
}

// New watches a world.
func New(of *world.World) *Watcher {
	w := &Watcher{
		World: of,
		hosts: map[string]*history{}, launches: map[string]lifecycle.LaunchOrder{}, given: map[string]string{}, late: map[string]bool{},
		writtenAt: map[string]time.Time{}, settledAt: map[string]time.Time{}, roomSince: map[string]time.Time{}, pausedSince: map[string]time.Time{},
		labeled: map[int64]string{}, listened: map[string]bool{},
		replaced: map[string]bool{}, claimedAt: map[string]time.Time{}, waitsSince: map[string]time.Time{}, had: map[string]string{},
		spareSince: map[string]time.Time{}, jobsReplaced: map[int64]bool{}, droppedAt: map[world.CacheDropped]time.Time{}, workReplaced: map[string]bool{}, workersReplaced: map[string]bool{},
	}
	of.Observe(w.event)
	return w
}

// Begin starts the rules that look at the whole world, every 30 s.
func (w *Watcher) Begin() {
	const every = 30 * time.Second
	var again func()
	again = func() {
		w.checkKept()
		w.checkRoom()
		w.checkListening()
		w.checkWork()
		w.checkPoolJobs()
		w.After(every, again)
	}
	w.After(every, again)
}

// event holds an event against the rules.
func (w *Watcher) event(event any) {
	switch e := event.(type) {
	case world.RecordWritten:
		w.recordWritten(e.Before, e.After)
	case world.RequestWritten:
		w.requestWritten(e.Before, e.After)
	case world.RowReplaced:
		w.rowReplaced(e)
	case world.WorkWritten:
		w.workWritten(e.Before, e.After)
	case world.WorkerWritten:
		w.workerWritten(e.Before, e.After)
	case world.JobWritten:
		w.jobWritten(e.Before, e.After)
	case world.SlotsWritten:
		w.slotsWritten(e.Before, e.After)
	case world.HoldWritten:
		w.holdWritten(e.Before, e.After)
	case world.PauseWritten:
		w.pauseWritten(e.Before, e.After)
	case world.ReadingWritten:
		w.readingWritten(e.Reading)
	case world.Claimed:
		w.checkCondition(e.Claim, e.Before)
		w.checkPaused(e.Before.Pool, "claims "+e.Claim.HostKey)
	case world.ReportWritten:
		w.reportWritten(e.Report)
	case world.ReportLost:
		w.of(e.HostKey).reportLost = true
	case world.StateLost:
		w.of(e.HostKey).stateLostAt = w.Now
	case world.Reporting:
		w.checkReport(e.Host, e.Report)
	case world.Registering:
		w.checkRegister(e.Host, e.Assignment)
	case world.Cleaning:
		w.checkClean(e.Host)
	case world.CacheDropped:
		w.droppedAt[e] = w.Now
	case world.CachesCleaned:
		w.checkCleaned(e)
	case world.PoweringOff:
		w.checkPowerOff(e.Host, e.Why)
	case world.JobBegins:
		w.checkJob(e.Host, e.Job)
		w.checkViews(e.Host, e.Job)
	case world.JobRefused:
		w.checkRefused(e.Host, e.Job)
	default:
		w.cloudEvent(event)
	}
}

// cloudEvent is event, for what happens in the cloud.
func (w *Watcher) cloudEvent(event any) {
	switch e := event.(type) {
	case world.Launched:
		w.checkLaunch(e.Order, e.Machines)
	case world.LaunchBooked:
		w.checkLimits()
	case world.Appearing:
		w.late[e.Machine.InstanceID] = w.lateLaunch(e.Machine)
	case world.Terminating:
		w.checkFleetHeld(e.InstanceID)
		w.checkUnrecorded(e.InstanceID)
	case world.Hibernating:
		w.checkHibernated(e.Machine)
	case world.Stopping:
		w.underHold(e.InstanceID, "is stopped")
		w.checkStop(e.InstanceID, e.Hibernate)
	case world.ReplacingRoot:
		w.underHold(e.InstanceID, "gets a new root volume")
		w.checkReplacing(e.InstanceID)
	case world.Ending:
		w.checkEnd(e.Machine)
	case world.LabelsSet:
		w.checkLabels(e.Runner, e.Labels)
	case world.Listening:
		w.listened[e.Runner.Name] = true
	case world.DeletingRunner:
		w.checkDeleteRunner(e.Runner)
	case world.Scaling:
		w.checkScaled(e.Desired)
	}
}

func (w *Watcher) of(hostKey string) *history {
	l := w.hosts[hostKey]
	if l == nil {
		l = &history{
			readyFor: map[string]bool{}, byStandby: map[int64]string{}, registeredAs: map[int64]int64{},
			registeredFor: map[int64]string{}, registeredAt: map[int64]time.Time{}, verdicts: map[int64]verdict{},
		}
		w.hosts[hostKey] = l
	}
	return l
}
