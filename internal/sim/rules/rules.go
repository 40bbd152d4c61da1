package rules

import "github.com/remuda-ci/remuda/internal/sim/engine"

// The rules of the design. Their names are what the planted bugs must be caught by.
const (
	RuleTransition      engine.Rule = "transition"         // only what the table of the design allows
	RuleUnexpected      engine.Rule = "unexpected error"   // only the errors that the ports and use-cases name
	RuleVersion         engine.Rule = "version"            // +1 on every write
	RuleAssignment      engine.Rule = "assignment"         // +1 exactly when a host gets a run, loses it, ends, or gives up its registration
	RuleTrust           engine.Rule = "trust"              // a host never crosses its trust key
	RuleNewRoot         engine.Rule = "new root"           // what is said to have a new root volume has one, and no job loses its own
	RuleClaim           engine.Rule = "claim"              // only pooled hosts, nor retiring, held or late ones
	RuleDue             engine.Rule = "due"                // a live record is looked at by its threshold
	RuleForget          engine.Rule = "forget"             // no record is forgotten while its machine lives
	RulePooledDirty     engine.Rule = "pooled dirty"       // what is pooled was cleaned
	RuleReady           engine.Rule = "ready"              // what runs has registered for its assignment
	RuleRunningEnded    engine.Rule = "running ended"      // a running host ends for its reasons only
	RuleBusyEnded       engine.Rule = "busy ended"         // a job is never killed by bookkeeping
	RuleManyUnrecorded  engine.Rule = "many unrecorded"    // while many machines have no record, none is ended for it
	RuleNotOurs         engine.Rule = "not ours"           // no machine is ended that another launched
	RuleManySilent      engine.Rule = "many silent"        // while many hosts are silent at once, none is ended for it
	RuleHeld            engine.Rule = "held"               // what an operator holds is not claimed or ended
	RuleFleetHeld       engine.Rule = "fleet held"         // no machine of a held fleet is ended, and no mark of the hold is lost
	RuleLimit           engine.Rule = "limit"              // never more hosts than a limit allows
	RuleRoom            engine.Rule = "room"               // no request waits for room that is there
	RuleWorkTwice       engine.Rule = "work twice"         // one attempt of a job is one worker's
	RuleWorkUnnamed     engine.Rule = "work unnamed"       // the row of a worker names the job that the worker has
	RuleBusyScaledIn    engine.Rule = "busy scaled in"     // no service is scaled in while a runner is busy
	RuleUnserved        engine.Rule = "unserved"           // a job that waits gets a runner
	RuleSlots           engine.Rule = "slots"              // no job pool has more slots, or hosts at work, than its maximum
	RuleSlotEnded       engine.Rule = "slot ended"         // no slot ends while its host is at work
	RuleSlotKept        engine.Rule = "slot kept"          // no slot stays that no job needs
	RuleJobBack         engine.Rule = "job back"           // no job goes back to an earlier state
	RuleJobUnserved     engine.Rule = "job unserved"       // a job that waits for a pool gets a host, or the row of its webhook says why not
	RuleMachineEnded    engine.Rule = "machine ended"      // a machine ends after its record
	RuleLaunch          engine.Rule = "launch"             // no launch is made twice or exceeds its request
	RuleForeignJob      engine.Rule = "foreign job"        // a host serves the jobs of its run only
	RuleRefused         engine.Rule = "refused"            // no job of its own run is refused while its runner is registered
	RuleDirtyHost       engine.Rule = "dirty host"         // no job on what another run left
	RuleLateJob         engine.Rule = "late job"           // no job begins on a runner that GitHub no longer has
	RuleFalseSignal     engine.Rule = "false signal"       // an agent signals only what it did
	RuleSelfEnd         engine.Rule = "self end"           // an agent ends its host for its reasons only
	RuleCleanBusy       engine.Rule = "clean while busy"   // nothing is cleaned under a job
	RuleTwiceGiven      engine.Rule = "given twice"        // no host is given to two requests at once
	RuleKept            engine.Rule = "kept"               // no host stays with a request that has no use for it
	RuleReuse           engine.Rule = "reuse"              // nothing is launched while a fitting host idles
	RuleRest            engine.Rule = "rest"               // only hosts that have waited for long rest, which the pool can spare, and no message gives one out
	RuleUnclaimedJob    engine.Rule = "unclaimed job"      // no job starts on a host that no run has claimed
	RuleLabels          engine.Rule = "labels"             // a run's labels are set on the hosts that it has claimed, before they are ready
	RuleRegisteredTwice engine.Rule = "registered twice"   // no name registers again once a runner has listened by it, as far as its host can know
	RuleStandby         engine.Rule = "standby"            // a host waits with a registration of its own, which serves one run
	RuleNotListening    engine.Rule = "not listening"      // a hot host listens
	RuleForeignCache    engine.Rule = "foreign cache"      // no job sees what a run wrote that it shares no cache with, or that may not write
	RuleStaleCommit     engine.Rule = "stale commit"       // a view becomes a cache only if the release of its own run said so
	RuleLostCache       engine.Rule = "lost cache"         // what a release keeps is kept, and the record of a pooled host has it
	RuleUntrustedRoot   engine.Rule = "untrusted root"     // no run gets a host on which a run was root that may not write to its cache of docker
	RuleForeignToken    engine.Rule = "foreign token"      // only the host of a run that may write has a token that reads, until it is clean
	RuleStarved         engine.Rule = "starved"            // no request launches for the caches of idle hosts that it could have
	RulePaused          engine.Rule = "paused"             // a paused pool gives out no host and launches none
	RuleMetered         engine.Rule = "metered"            // the readings of a host have all of its time, and none twice
	RuleDrained         engine.Rule = "drained"            // a host that leaves does not come back to the pool
	RuleUnregistered    engine.Rule = "unregistered"       // no live runner loses its registration
	RuleUnsettled       engine.Rule = "unsettled"          // every request has its outcome
	RuleLeftover        engine.Rule = "left over"          // nothing is left at the end
	RuleStopped         engine.Rule = "stopped"            // only machines of clean hosts without a run are stopped, and a run gets one that stopped before
	RuleRestless        engine.Rule = "restless"           // an operation that has nothing to do pauses
	RuleQuiet           engine.Rule = "quiet"              // so much is claimed, and fails, in each life that the other rules are tried
	RuleReleaseComplete engine.Rule = "release incomplete" // after a release no record names the run
)
