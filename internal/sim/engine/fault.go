package engine

import "time"

// Fault is a kind of fault that the world injects.
type Fault string

// The faults of the first group strike single calls, agents or callers, each time with the
// chance in rates.
const (
	FaultStoreRefused Fault = "store: refused before the effect"
	FaultStoreLost    Fault = "store: answer lost after the effect"
	FaultStaleIndex   Fault = "store: stale index read"
	FaultStaleBatch   Fault = "store: stale batch read"
	FaultStaleRecord  Fault = "store: stale read of a record by its agent"
	FaultLongLag      Fault = "store: a row lags for long"

	FaultQueueRefused   Fault = "queue: refused before the effect"
	FaultQueueLost      Fault = "queue: answer lost after the effect"
	FaultMessageLost    Fault = "queue: message lost"
	FaultMessageTwice   Fault = "queue: message duplicated"
	FaultMessageDelayed Fault = "queue: message delayed"
	FaultMessageOrder   Fault = "queue: messages reordered"

	FaultComputeRefused Fault = "compute: refused before the effect"
	FaultComputeLost    Fault = "compute: answer lost after the effect"
	FaultDescribeLag    Fault = "compute: state lags"
	FaultTagLag         Fault = "compute: new machine not listed yet"
	FaultSlowBoot       Fault = "compute: slow boot"
	FaultNoBoot         Fault = "compute: machine never boots"
	FaultSlowEnd        Fault = "compute: machine ends slowly"

	FaultGitHubRefused Fault = "github: refused before the effect"
	FaultGitHubLost    Fault = "github: answer lost after the effect"
	FaultUnlisted      Fault = "github: runner missing from a listing"

	FaultHostBlind      Fault = "host: cannot be looked at"
	FaultSlowHost       Fault = "host: slow"
	FaultHostRefuses    Fault = "host: effect refused"
	FaultScriptFails    Fault = "host: pre-runner script fails"
	FaultRegisterFails  Fault = "host: registration fails"
	FaultRegisterHalf   Fault = "host: registered, but says it failed"
	FaultRemoveFails    Fault = "host: removal fails"
	FaultRemoveHalf     Fault = "host: removed, but says it failed"
	FaultCleanFails     Fault = "host: clean-up fails"
	FaultStubbornStop   Fault = "host: listener does not stop"
	FaultDiskFull       Fault = "host: state cannot be saved"
	FaultStateCorrupt   Fault = "host: state corrupt at restart"
	FaultListenerExits  Fault = "host: listener exits at once"
	FaultWakeLost       Fault = "host: change not noticed"
	FaultClockOff       Fault = "host: clock off"
	FaultReplicaCrash   Fault = "replica: crash at a call"
	FaultReplicaPreempt Fault = "replica: suspended within a call"
	FaultReplicaPause   Fault = "replica: long pause"
	FaultAgentCrash     Fault = "agent: crash at a call"
	FaultAgentPreempt   Fault = "agent: suspended within a call"
	FaultAgentPause     Fault = "agent: long pause"

	FaultECSRefused   Fault = "ecs: refused before the effect"
	FaultECSLost      Fault = "ecs: answer lost after the effect"
	FaultECSLag       Fault = "ecs: counts lag"
	FaultTaskSlow     Fault = "ecs: slow start of a container"
	FaultWorkerTwice  Fault = "worker: says it twice"
	FaultWorkerLate   Fault = "worker: answer comes late"
	FaultWorkerStalls Fault = "worker: stalls"

	FaultCallerLeaves   Fault = "caller: goes away"
	FaultCallerRetries  Fault = "caller: retries the same request elsewhere"
	FaultCallerDiffers  Fault = "caller: same request id, another body"
	FaultForeignJob     Fault = "caller: job of another run names the label"
	FaultWebhookLate    Fault = "caller: webhook late"
	FaultWebhookTwice   Fault = "caller: webhook repeated"
	FaultEarlyRelease   Fault = "caller: released while in use"
	FaultRerun          Fault = "caller: run again"
	FaultNeverReleased  Fault = "caller: never released"
	FaultNoJobs         Fault = "caller: no job comes"
	FaultSecondRequest  Fault = "caller: second request of the run"
	FaultReleaseInterim Fault = "caller: release while provisioning"
	FaultJobAtRelease   Fault = "caller: a job comes with the release"
)

// The faults of the second group strike at random times, as often as meanIntervals says.
const (
	FaultStoreAway     Fault = "store away"
	FaultGitHubAway    Fault = "github away"
	FaultCloudAway     Fault = "cloud away"
	FaultPartition     Fault = "host cut off from the store"
	FaultMachineDies   Fault = "machine dies"
	FaultInterruption  Fault = "machine interrupted with notice"
	FaultImpaired      Fault = "machine impaired"
	FaultShortage      Fault = "capacity short"
	FaultLeaked        Fault = "machine with our tag and no record"
	FaultReplicaKilled Fault = "replica killed"
	FaultAgentKilled   Fault = "agent killed"
	FaultListenerDies  Fault = "listener dies"
	FaultHostile       Fault = "hostile report"
	FaultTerminate     Fault = "operator terminates"
	FaultHold          Fault = "operator holds"
	FaultUnhold        Fault = "operator takes the hold away"
	FaultTaskDies      Fault = "container dies"
	FaultFleetHold     Fault = "operator holds the fleet"
	FaultFleetUnhold   Fault = "operator takes the fleet's hold away"
	FaultRefresh       Fault = "operator refreshes"
	FaultGhost         Fault = "registration deleted by a person"
)

// The faults of the third group are only in lives with hot hosts, and have chances of their own: see
// DrawHotFaults. So all other lives are what they were without them.
const (
	FaultLabelsLost    Fault = "github: answer to labels lost after the effect"
	FaultLabelsLate    Fault = "github: labels set after the caller gave up"
	FaultLabelsMissing Fault = "github: no labels for a runner that is there"
	FaultListedLate    Fault = "github: new runner not found yet"
	FaultForgotten     Fault = "github: idle registration deleted, and its listener hears late"
	FaultStrayJob      Fault = "github: job for a host that no run has claimed"
	FaultHookCanceled  Fault = "github: job canceled while it waits in its hook"
)

// The faults of the fourth group are only in lives whose tables are lost.
const (
	FaultTableLost    Fault = "operator loses the table of hosts"
	FaultRowsLost     Fault = "rows of hosts lost"
	FaultRequestsLost Fault = "rows of requests lost"
	FaultReportsLost  Fault = "table of reports lost"
	FaultRestored     Fault = "older state of a table restored"
	FaultJobsLost     Fault = "rows of jobs, slots or webhooks lost"
	FaultJobsRestored Fault = "older state of jobs, slots or webhooks restored"
	FaultHoldLost     Fault = "row of the fleet's hold lost or restored"
	FaultPauseLost    Fault = "row of a pause lost or restored"
	FaultLedgerLost   Fault = "row of a limit's ledger lost or restored"
	FaultBreakerLost  Fault = "row of a breaker lost or restored"
	FaultLeaseLost    Fault = "row of a lease lost or restored"
	FaultServiceLost  Fault = "row of a service lost or restored"
	FaultWorkLost     Fault = "row of a service's job lost or restored"
	FaultWorkerLost   Fault = "row of a worker lost or restored"
)

// The faults of the fifth group are only in lives with a job pool, and have chances of their own: see DrawJobFaults.
const (
	FaultDeliveryLost  Fault = "webhook: delivery lost"
	FaultDeliveryTwice Fault = "webhook: delivery repeated"
	FaultDeliveryLate  Fault = "webhook: delivery late"
	FaultJobCanceled   Fault = "github: job of a pool canceled"
	FaultJobStolen     Fault = "github: job of a pool given to another's runner"
	FaultJobOfFork     Fault = "github: job of a pool is of a fork"
	FaultRunUnknown    Fault = "github: run not known yet"
)

// jobRates are the chances of the fifth group.
var jobRates = map[Fault]float64{
	FaultDeliveryLost: 0.1, FaultDeliveryTwice: 0.2, FaultDeliveryLate: 0.15, FaultJobCanceled: 0.1, FaultJobStolen: 0.1,
	FaultJobOfFork: 0.05, FaultRunUnknown: 0.1,
}

// Each of these faults is only in lives of its own.
const (
	FaultDrain        Fault = "operator drains"
	FaultPause        Fault = "operator pauses a pool"
	FaultReplicaClock Fault = "replica: clock hours off"
	FaultCloudBlind   Fault = "compute: shows no machine"
	FaultNoCapacity   Fault = "compute: no capacity to start a machine" // see DrawStopFaults

	FaultNotHibernated Fault = "compute: a machine is stopped in place of hibernated" // see DrawStopFaults
	FaultNoResume      Fault = "compute: a hibernated machine boots from nothing"

	FaultRootRefused Fault = "compute: replaces no root volume" // see DrawResetFaults
	FaultRootFails   Fault = "compute: a root volume is not replaced"
	FaultRootSlow    Fault = "compute: a root volume is replaced late"
)

var ownLives = []Fault{FaultDrain, FaultPause, FaultReplicaClock, FaultCloudBlind, FaultNoCapacity, FaultNotHibernated, FaultNoResume, FaultRootRefused, FaultRootFails, FaultRootSlow}

// noCapacityRate is the chance that a machine cannot be started.
const noCapacityRate = 0.2

// hibernateRates are the chances that a machine is not hibernated, and that one that is does not resume.
var hibernateRates = map[Fault]float64{FaultNotHibernated: 0.15, FaultNoResume: 0.15}

// resetRates are the chances that a root volume is not replaced, or late.
var resetRates = map[Fault]float64{FaultRootRefused: 0.15, FaultRootFails: 0.1, FaultRootSlow: 0.2}

var lossFaults = []Fault{
	FaultTableLost, FaultRowsLost, FaultRequestsLost, FaultReportsLost, FaultRestored, FaultJobsLost, FaultJobsRestored,
	FaultHoldLost, FaultPauseLost, FaultLedgerLost, FaultBreakerLost, FaultLeaseLost, FaultServiceLost, FaultWorkLost, FaultWorkerLost,
}

// hotRates are the chances of the third group for single calls, and hotIntervals the mean times between two others.
var (
	hotRates     = map[Fault]float64{FaultLabelsLost: 0.1, FaultLabelsLate: 0.1, FaultLabelsMissing: 0.1, FaultListedLate: 0.1, FaultHookCanceled: 0.3}
	hotIntervals = map[Fault]time.Duration{FaultForgotten: 8 * time.Minute, FaultStrayJob: 5 * time.Minute}
)

// rates are the chances of the faults of single calls, 0 to 1.
var rates = map[Fault]float64{
	FaultStoreRefused: 0.004, FaultStoreLost: 0.004, FaultStaleIndex: 0.3, FaultStaleBatch: 0.2, FaultStaleRecord: 0.2,
	FaultLongLag: 0.02, FaultQueueRefused: 0.01, FaultQueueLost: 0.01, FaultMessageLost: 0.08, FaultMessageTwice: 0.15,
	FaultMessageDelayed: 0.2, FaultMessageOrder: 0.3, FaultComputeRefused: 0.02, FaultComputeLost: 0.05,
	FaultDescribeLag: 0.3, FaultTagLag: 0.5, FaultSlowBoot: 0.1, FaultNoBoot: 0.02, FaultSlowEnd: 0.1,
	FaultGitHubRefused: 0.02, FaultGitHubLost: 0.02, FaultUnlisted: 0.05,
	FaultHostBlind: 0.001, FaultSlowHost: 0.05, FaultHostRefuses: 0.01, FaultScriptFails: 0.02, FaultRegisterFails: 0.03,
	FaultRegisterHalf: 0.02, FaultRemoveFails: 0.03, FaultRemoveHalf: 0.03, FaultCleanFails: 0.02, FaultStubbornStop: 0.05,
	FaultDiskFull: 0.01, FaultStateCorrupt: 0.1, FaultListenerExits: 0.04, FaultWakeLost: 0.2, FaultClockOff: 0.5,
	FaultReplicaCrash: 0.0005, FaultReplicaPreempt: 0.02, FaultReplicaPause: 0.0003,
	FaultAgentCrash: 0.0003, FaultAgentPreempt: 0.003, FaultAgentPause: 0.00003,
	FaultCallerLeaves: 0.1, FaultCallerRetries: 0.15, FaultCallerDiffers: 0.03, FaultForeignJob: 0.15,
	FaultWebhookLate: 0.3, FaultWebhookTwice: 0.3, FaultEarlyRelease: 0.15, FaultRerun: 0.15, FaultNeverReleased: 0.08,
	FaultECSRefused: 0.05, FaultECSLost: 0.05, FaultECSLag: 0.5, FaultTaskSlow: 0.1,
	FaultWorkerTwice: 0.1, FaultWorkerLate: 0.05, FaultWorkerStalls: 0.05,
	FaultNoJobs: 0.08, FaultSecondRequest: 0.1, FaultReleaseInterim: 0.15, FaultJobAtRelease: 0.3,
}

// meanIntervals are the mean times between two faults of the second group.
var meanIntervals = map[Fault]time.Duration{
	FaultStoreAway: 25 * time.Minute, FaultGitHubAway: 20 * time.Minute, FaultCloudAway: 25 * time.Minute,
	FaultPartition: 8 * time.Minute, FaultMachineDies: 10 * time.Minute, FaultInterruption: 15 * time.Minute,
	FaultImpaired: 15 * time.Minute, FaultShortage: 10 * time.Minute, FaultReplicaKilled: 8 * time.Minute,
	FaultAgentKilled: 6 * time.Minute, FaultListenerDies: 5 * time.Minute, FaultHostile: 20 * time.Minute,
	FaultTerminate: 12 * time.Minute, FaultHold: 15 * time.Minute, FaultUnhold: 15 * time.Minute, FaultRefresh: 12 * time.Minute,
	FaultGhost: 25 * time.Minute, FaultLeaked: 20 * time.Minute, FaultTaskDies: 6 * time.Minute, FaultFleetHold: 8 * time.Minute, FaultFleetUnhold: 8 * time.Minute,
}
