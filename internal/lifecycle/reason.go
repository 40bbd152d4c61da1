package lifecycle

// ReasonCode says in one word why something was decided, for metrics and programs. The sentence beside it is
// for people, and may change; the codes are part of the API (docs/interfaces.md).
type ReasonCode string

// The reasons. Where an action has only one reason, its code is the action's name: see CodeOf.
const (
	// A host that starts or was claimed.
	ReasonWaitingForRegistration  ReasonCode = "waiting_for_registration"
	ReasonRegistered              ReasonCode = "registered"
	ReasonLabeled                 ReasonCode = "labeled" // its runner listened before the claim, and has the labels of the run
	ReasonRegistrationTimeout     ReasonCode = "registration_timeout"
	ReasonRegistrationFailed      ReasonCode = "registration_failed"
	ReasonRegistrationFailedTwice ReasonCode = "registration_failed_twice"
	ReasonPreRunnerFailed         ReasonCode = "pre_runner_failed"
	ReasonBusyBeforeReady         ReasonCode = "busy_before_ready"

	// A host that serves its run.
	ReasonRunningJob         ReasonCode = "running_job"
	ReasonWaitingForJob      ReasonCode = "waiting_for_job"
	ReasonWaitingForFirstJob ReasonCode = "waiting_for_first_job"
	ReasonMaxRuntime         ReasonCode = "max_runtime"
	ReasonJobDone            ReasonCode = "job_done"
	ReasonRunnerLost         ReasonCode = "runner_lost"
	ReasonVersionRefused     ReasonCode = "runner_version_refused" // GitHub refuses the version of its runner
	ReasonUnattended         ReasonCode = "unattended"

	// A request that has no use for the host any more.
	ReasonRunReleased     ReasonCode = "run_released"
	ReasonRequestReleased ReasonCode = "request_released"
	ReasonRequestShort    ReasonCode = "request_short"
	ReasonRequestSettled  ReasonCode = "request_settled"
	ReasonRequestExceeded ReasonCode = "request_exceeded"

	// A host that is being released.
	ReasonReleasedBusy          ReasonCode = "released_busy"
	ReasonDraining              ReasonCode = "draining"
	ReasonNoLongerBusy          ReasonCode = "no_longer_busy"
	ReasonWaitingForCleanUp     ReasonCode = "waiting_for_clean_up"
	ReasonWaitingForPreparation ReasonCode = "waiting_for_preparation"
	ReasonPreparationTimeout    ReasonCode = "preparation_timeout"
	ReasonCleanUpTimeout        ReasonCode = "clean_up_timeout"
	ReasonCleanUpFailed         ReasonCode = "clean_up_failed"
	ReasonStatementRefused      ReasonCode = "statement_refused" // the signed statement of its clean-up is missing or wrong
	ReasonRemoveToken           ReasonCode = "remove_token"
	ReasonDeregistrationDelayed ReasonCode = "deregistration_delayed"
	ReasonDeregistrationTimeout ReasonCode = "deregistration_timeout"

	// A clean host.
	ReasonPrepared          ReasonCode = "prepared"
	ReasonClean             ReasonCode = "clean"
	ReasonWaitingForRun     ReasonCode = "waiting_for_run"
	ReasonListening         ReasonCode = "listening"
	ReasonSpare             ReasonCode = "spare"     // it rests, since enough newer hosts are awake
	ReasonNotSpare          ReasonCode = "not_spare" // it rests no more
	ReasonStandbyFailed     ReasonCode = "standby_failed"
	ReasonStandbyRenewed    ReasonCode = "standby_renewed"
	ReasonReregistered      ReasonCode = "reregistered" // claimed while it listened, and its registration was lost
	ReasonBusyWhilePooled   ReasonCode = "busy_while_pooled"
	ReasonIdleTimeout       ReasonCode = "idle_timeout"
	ReasonGitHubUnavailable ReasonCode = "github_unavailable"
	ReasonNoReuse           ReasonCode = "no_reuse"
	ReasonUnjudgedRun       ReasonCode = "unjudged_run"  // it is clean, and GitHub has not said yet whether its run may write the cache of docker
	ReasonUntrustedRun      ReasonCode = "untrusted_run" // its run was root, and may not write the cache of docker
	ReasonMaxUses           ReasonCode = "max_uses"
	ReasonMaxAge            ReasonCode = "max_age"
	ReasonTemplateDrift     ReasonCode = "template_drift"
	ReasonRetiring          ReasonCode = "retiring"
	ReasonDrained           ReasonCode = "drained"
	ReasonRebalanceAdvised  ReasonCode = "rebalance_advised"

	// A host whose machine is stopped for the next run.
	ReasonIdleStopped     ReasonCode = "idle_stopped"
	ReasonStoppingMachine ReasonCode = "stopping_machine"
	ReasonMachineStopped  ReasonCode = "machine_stopped"
	ReasonStopTimeout     ReasonCode = "stop_timeout"
	ReasonStoppedTimeout  ReasonCode = "stopped_timeout"
	ReasonStartingMachine ReasonCode = "starting_machine"
	ReasonNoCapacity      ReasonCode = "no_capacity" // to start it

	// A host whose root volume is replaced before the next run.
	ReasonRootReset    ReasonCode = "root_reset"
	ReasonRootReplaced ReasonCode = "root_replaced"
	ReasonRootFailed   ReasonCode = "root_failed"
	ReasonRootTimeout  ReasonCode = "root_timeout"

	// A host in any state.
	ReasonSilent           ReasonCode = "silent"
	ReasonManySilent       ReasonCode = "many_silent" // it is not ended for a missing report
	ReasonInterruption     ReasonCode = "interruption"
	ReasonMachineGone      ReasonCode = "machine_gone"
	ReasonMachineImpaired  ReasonCode = "machine_impaired"
	ReasonHeld             ReasonCode = "held"
	ReasonFleetHeld        ReasonCode = "fleet_held"
	ReasonFleetHoldRemoved ReasonCode = "fleet_hold_removed"
	ReasonUnknownState     ReasonCode = "unknown_state"

	// Decisions of the use-cases around Decide.
	ReasonOrdered            ReasonCode = "ordered"              // an operator ordered it
	ReasonNoRecord           ReasonCode = "no_record"            // a machine without a record
	ReasonManyUnrecorded     ReasonCode = "many_unrecorded"      // nor have many other machines
	ReasonRecordRestored     ReasonCode = "record_restored"      // its record is older than what it has done
	ReasonNotHeardYet        ReasonCode = "not_heard_yet"        // its agent could not report yet, since controld has just started
	ReasonConflict           ReasonCode = "conflict"             // another writer was faster
	ReasonRunnerNotWithdrawn ReasonCode = "runner_not_withdrawn" // GitHub keeps the registration, or gave it a job

	// Scale-down.
	ReasonBypassed        ReasonCode = "bypassed"
	ReasonNoOwner         ReasonCode = "no_owner"
	ReasonNoScope         ReasonCode = "no_scope"
	ReasonYoung           ReasonCode = "young"
	ReasonBooting         ReasonCode = "booting"
	ReasonKeptIdle        ReasonCode = "kept_idle"
	ReasonIdle            ReasonCode = "idle"
	ReasonIdleFirstSeen   ReasonCode = "idle_first_seen"
	ReasonIdleUnconfirmed ReasonCode = "idle_unconfirmed"
	ReasonIdleUnreadable  ReasonCode = "idle_mark_unreadable"
	ReasonAgentBusy       ReasonCode = "agent_busy"
	ReasonRunnerBusy      ReasonCode = "runner_busy"
	ReasonBusyAgain       ReasonCode = "busy_again"
	ReasonRunnerOffline   ReasonCode = "runner_offline"
	ReasonNotListed       ReasonCode = "not_listed"
	ReasonRunnerFound     ReasonCode = "runner_found"
	ReasonOrphan          ReasonCode = "orphan"
	ReasonRequestOpen     ReasonCode = "request_open"
	ReasonJobWaiting      ReasonCode = "job_waiting"
	ReasonPassedOver      ReasonCode = "passed_over"
	ReasonPoolMinimum     ReasonCode = "pool_minimum"
	ReasonEndInterrupted  ReasonCode = "end_interrupted"
	ReasonFailed          ReasonCode = "failed"

	// Warm pools and job pools.
	ReasonWarmEnough     ReasonCode = "warm_enough"
	ReasonWarmMissing    ReasonCode = "warm_missing"
	ReasonWarmSurplus    ReasonCode = "warm_surplus"
	ReasonWarmRemoved    ReasonCode = "warm_removed"
	ReasonWarmUnfit      ReasonCode = "warm_unfit"
	ReasonSpotPaused     ReasonCode = "spot_paused"
	ReasonLaunchesFailed ReasonCode = "launches_failed"
	ReasonPoolFull       ReasonCode = "pool_full"
	ReasonHostOver       ReasonCode = "host_over"
	ReasonUnclaimed      ReasonCode = "unclaimed"

	// Requests.
	ReasonRequestReady   ReasonCode = "request_ready"
	ReasonRequestRefused ReasonCode = "request_refused"
	ReasonDefaultLabels  ReasonCode = "default_labels"  // a job asks for a default label that the hosts do not have
	ReasonRunUnknown     ReasonCode = "run_unknown"     // GitHub does not know the run of a webhook
	ReasonFork           ReasonCode = "fork"            // a job is of a fork, and its pool takes none
	ReasonNotServed      ReasonCode = "not_served"      // a job pool does not serve the repository
	ReasonLabelUnknown   ReasonCode = "label_unknown"   // no pool has a label of a job
	ReasonNotProvisioned ReasonCode = "not_provisioned" // a job names its run's id, and the run has no request
	ReasonOtherRunners   ReasonCode = "other_runners"   // a job is for no runner of the fleet
	ReasonJobStarted     ReasonCode = "job_started"
	ReasonJobEnded       ReasonCode = "job_ended"
	ReasonQuota          ReasonCode = "quota"
	ReasonBudgetNear     ReasonCode = "budget_near"
	ReasonBudgetUsedUp   ReasonCode = "budget_used_up"
	ReasonPoolPaused     ReasonCode = "pool_paused"
	ReasonPoolResumed    ReasonCode = "pool_resumed"
	ReasonCacheDropped   ReasonCode = "cache_dropped"
	ReasonShortage       ReasonCode = "shortage"

	// Services and their jobs.
	ReasonJobsWaiting    ReasonCode = "jobs_waiting"
	ReasonJobsRunning    ReasonCode = "jobs_running"
	ReasonServiceFull    ReasonCode = "service_full"
	ReasonServiceIdle    ReasonCode = "service_idle"
	ReasonServiceEmpty   ReasonCode = "service_empty"
	ReasonBacklogUnknown ReasonCode = "backlog_unknown"
	ReasonNotObserved    ReasonCode = "not_observed"
	ReasonWorkerSilent   ReasonCode = "worker_silent"
	ReasonWorkerBusy     ReasonCode = "worker_busy"
	ReasonNotTaken       ReasonCode = "not_taken"

	// A host whose record has ended.
	ReasonEndingMachine        ReasonCode = "ending_machine"
	ReasonWaitingForMachineEnd ReasonCode = "waiting_for_machine_end"
	ReasonMachineStillRuns     ReasonCode = "machine_still_runs"
	ReasonDeletingRunner       ReasonCode = "deleting_runner"
	ReasonLostRunPending       ReasonCode = "lost_run_pending"
	ReasonEndConfirmed         ReasonCode = "end_confirmed"
	ReasonGone                 ReasonCode = "gone"
)

// CodeOf is the code of an event whose action has only one reason, such as a launch or a claim.
func CodeOf(a Action) ReasonCode { return ReasonCode(a) }
