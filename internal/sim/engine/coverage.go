package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Coverage counts what was really exercised: a check that never had a chance
// to fail proves nothing.
type Coverage struct {
	Faults  map[Fault]int
	Actions map[lifecycle.Action]int
	Effects map[agent.Effect]int
	// Marks are other things that must happen, such as outcomes of requests.
	Marks map[string]int
}

// NewCoverage returns a coverage of nothing, to add to.
func NewCoverage() Coverage {
	return Coverage{
		Faults: map[Fault]int{}, Actions: map[lifecycle.Action]int{},
		Effects: map[agent.Effect]int{}, Marks: map[string]int{},
	}
}

// Add adds the counts of another life.
func (c Coverage) Add(o Coverage) {
	add(c.Faults, o.Faults)
	add(c.Actions, o.Actions)
	add(c.Effects, o.Effects)
	add(c.Marks, o.Marks)
}

func add[K comparable](to, from map[K]int) {
	for k, n := range from {
		to[k] += n
	}
}

// Missing are the kinds that never occurred.
func (c Coverage) Missing() []string {
	var missing []string
	for _, f := range slices.Concat(allFaults, slices.Sorted(maps.Keys(hotRates)), slices.Sorted(maps.Keys(hotIntervals)), slices.Sorted(maps.Keys(jobRates)), lossFaults, ownLives) {
		if c.Faults[f] == 0 {
			missing = append(missing, "fault "+string(f))
		}
	}
	for _, a := range allActions {
		if c.Actions[a] == 0 {
			missing = append(missing, "action "+string(a))
		}
	}
	for _, e := range allEffects {
		if c.Effects[e] == 0 {
			missing = append(missing, "agent's effect "+string(e))
		}
	}
	for _, m := range allMarks {
		if c.Marks[m] == 0 {
			missing = append(missing, m)
		}
	}
	return missing
}

// String is a table of all counts.
func (c Coverage) String() string {
	var b strings.Builder
	writeTable(&b, "faults", c.Faults)
	writeTable(&b, "actions", c.Actions)
	writeTable(&b, "agent's effects", c.Effects)
	writeTable(&b, "marks", c.Marks)
	return b.String()
}

func writeTable[K ~string](b *strings.Builder, title string, counts map[K]int) {
	fmt.Fprintf(b, "%s:\n", title)
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(b, "  %8d  %s\n", counts[k], string(k))
	}
}

var allFaults = slices.Sorted(func(yield func(Fault) bool) {
	for f := range maps.Keys(rates) {
		if !yield(f) {
			return
		}
	}
	for f := range maps.Keys(meanIntervals) {
		if !yield(f) {
			return
		}
	}
})

var allActions = []lifecycle.Action{
	lifecycle.ActionLaunch, lifecycle.ActionReady, lifecycle.ActionRelease, lifecycle.ActionReturn,
	lifecycle.ActionPool, lifecycle.ActionClaim, lifecycle.ActionTerminate, lifecycle.ActionDrain,
	lifecycle.ActionReleaseClock, lifecycle.ActionExtend, lifecycle.ActionProvideToken, lifecycle.ActionForget,
	lifecycle.ActionRetire, lifecycle.ActionMarkOrphan, lifecycle.ActionUnmarkOrphan, lifecycle.ActionMarkIdle, lifecycle.ActionUnmarkIdle,
	lifecycle.ActionStandBy, lifecycle.ActionLeaveStandby, lifecycle.ActionReregister, lifecycle.ActionRest, lifecycle.ActionWake,
	lifecycle.ActionHold, lifecycle.ActionSettle, lifecycle.ActionEndMachine, lifecycle.ActionDeleteRunner,
}

var allEffects = []agent.Effect{
	agent.EffectPrepare, agent.EffectAllow, agent.EffectRegister, agent.EffectListen, agent.EffectStop,
	agent.EffectDeregister, agent.EffectClean, agent.EffectConfirm, agent.EffectPowerOff,
}

// The marks.
const (
	MarkReady          = "request: ready"
	MarkShort          = "request: short"
	MarkReleased       = "request: released before it was settled"
	MarkReused         = "host: reused by another run"
	MarkBound          = "host: fresh, and bound by its first run"
	MarkJobDone        = "job: done"
	MarkRefused        = "job: refused by the hook"
	MarkDrained        = "job: finished after its run's release"
	MarkAssigned       = "job: assigned before the registration was removed"
	MarkHotReady       = "host: ready by the registration that it waited with"
	MarkHookWaits      = "job: let in after it waited for the claim of its run"
	MarkUnclaimed      = "job: refused on a host that no run has claimed"
	MarkClaimedWarm    = "host: claimed before it listened"
	MarkClaimedResting = "host: claimed while it rested"
	MarkCacheKept      = "cache: a view became the cache"
	MarkCacheThrown    = "cache: a release threw views away"
	MarkToken          = "cache: a host had a token to fetch with"
	MarkCacheDropped   = "cache: an operator dropped it"
	MarkCacheSeen      = "cache: a run saw what an earlier one wrote"
	MarkUntrustedRoot  = "cache: a run that may not write to that of docker was root"
	MarkRootForges     = "cache: such a run stopped the agent and wrote its reports"
	MarkTakeover       = "request: carried on by a sweep"
	MarkLeak           = "machine: leaked, and ended by the cloud sweep"
	MarkSelfEnded      = "host: ended itself"
	MarkResumed        = "host: resumed after it was hibernated"
	MarkRestarted      = "agent: restarted under a live job"
	MarkOverlap        = "replica: two sweepers at once"
	MarkWorked         = "service: a worker has a job"
	MarkWorkLost       = "service: a worker learns that its job is another's"
	MarkScaledIn       = "service: scaled in"
	MarkPoolJob        = "job pool: a host runs a job"
	MarkFound          = "job pool: a delivery that was missed is recovered"
	MarkListed         = "job pool: a job that waits is found in a list"
	MarkRefusedFork    = "job pool: a job is refused, and its row says why"
)

var allMarks = []string{
	MarkReady, MarkShort, MarkReleased, MarkReused, MarkBound, MarkJobDone, MarkRefused, MarkDrained, MarkAssigned,
	MarkHotReady, MarkHookWaits, MarkUnclaimed, MarkClaimedWarm, MarkClaimedResting,
	MarkCacheKept, MarkCacheThrown, MarkToken, MarkCacheDropped, MarkCacheSeen, MarkUntrustedRoot, MarkRootForges,
	MarkTakeover, MarkLeak, MarkSelfEnded, MarkResumed, MarkRestarted, MarkOverlap,
	MarkWorked, MarkWorkLost, MarkScaledIn, MarkPoolJob, MarkFound, MarkListed,
}

func (e *Engine) Mark(m string) { e.Coverage.Marks[m]++ }
