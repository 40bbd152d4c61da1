package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Rule is a rule of the design that must hold in every life.
type Rule string

// The rules. Their names are what the planted bugs must be caught by.
const (
	RulePanic           Rule = "panic"
	RuleTransition      Rule = "transition"         // only what the table of the design allows
	RuleUnexpected      Rule = "unexpected error"   // only the errors that the ports and use-cases name
	RuleVersion         Rule = "version"            // +1 on every write
	RuleAssignment      Rule = "assignment"         // +1 exactly when the run id is set or cleared
	RuleTrust           Rule = "trust"              // a host never crosses its trust key
	RuleClaim           Rule = "claim"              // only pooled hosts, nor retiring, held or late ones
	RuleDue             Rule = "due"                // a live record is looked at by its threshold
	RuleForget          Rule = "forget"             // no record is forgotten while its machine lives
	RulePooledDirty     Rule = "pooled dirty"       // what is pooled was cleaned
	RuleReady           Rule = "ready"              // what runs has registered for its assignment
	RuleRunningEnded    Rule = "running ended"      // a running host ends for its reasons only
	RuleBusyEnded       Rule = "busy ended"         // a job is never killed by bookkeeping
	RuleHeld            Rule = "held"               // what an operator holds is not claimed or ended
	RuleFleetHeld       Rule = "fleet held"         // no machine of a held fleet is ended
	RuleLimit           Rule = "limit"              // never more hosts than a limit allows
	RuleRoom            Rule = "room"               // no request waits for room that is there
	RuleWorkTwice       Rule = "work twice"         // one attempt of a job is one worker's
	RuleBusyScaledIn    Rule = "busy scaled in"     // no service is scaled in while a runner is busy
	RuleUnserved        Rule = "unserved"           // a job that waits gets a runner
	RuleMachineEnded    Rule = "machine ended"      // a machine ends after its record
	RuleLaunch          Rule = "launch"             // no launch is made twice or exceeds its request
	RuleForeignJob      Rule = "foreign job"        // a host serves the jobs of its run only
	RuleRefused         Rule = "refused"            // no job of its own run is refused while it serves
	RuleDirtyHost       Rule = "dirty host"         // no job on what another run left
	RuleLateJob         Rule = "late job"           // no job begins on a released host
	RuleFalseSignal     Rule = "false signal"       // an agent signals only what it did
	RuleSelfEnd         Rule = "self end"           // an agent ends its host for its reasons only
	RuleCleanBusy       Rule = "clean while busy"   // nothing is cleaned under a job
	RuleTwiceGiven      Rule = "given twice"        // no host is given to two requests at once
	RuleKept            Rule = "kept"               // no host stays with a request that has no use for it
	RuleReuse           Rule = "reuse"              // nothing is launched while a fitting host idles
	RuleUnregistered    Rule = "unregistered"       // no live runner loses its registration
	RuleUnsettled       Rule = "unsettled"          // every request has its outcome
	RuleLeftover        Rule = "left over"          // nothing is left at the end
	RuleRestless        Rule = "restless"           // an operation that has nothing to do pauses
	RuleReleaseComplete Rule = "release incomplete" // after a release no record names the run
)

// rules is what the rules need to remember.
type rules struct {
	hosts    map[string]*life
	launches map[string]lifecycle.LaunchOrder // by request and number
	given    map[string]string                // host and assignment, to the request it was given to
	// writtenAt is when the store got a request, which may be long after its
	// own clock said that it was created.
	writtenAt map[string]time.Time
	// settledAt is when a request first had no use for some host.
	settledAt    map[string]time.Time
	chaosEndedAt time.Time
	// heldSince is when the fleet's hold came into force. roomSince is when there was first
	// room for a request that waits for it, by request id.
	heldSince time.Time
	roomSince map[string]time.Time
}

// life is what is remembered of one host's record.
type life struct {
	assignedAt time.Time // when its run was last set or cleared
	readyAt    time.Time // when it last became running
	maxRuntime time.Duration
	readyFor   map[string]bool // requests
	pooledAt   time.Time
	servedRuns []string // by assignment: the run key, "" between runs
	busySince  time.Time
	ended      string // why its record was terminated
}

func newRules() *rules {
	return &rules{
		hosts: map[string]*life{}, launches: map[string]lifecycle.LaunchOrder{}, given: map[string]string{},
		writtenAt: map[string]time.Time{}, settledAt: map[string]time.Time{}, roomSince: map[string]time.Time{},
	}
}

func (r *rules) of(hostKey string) *life {
	l := r.hosts[hostKey]
	if l == nil {
		l = &life{readyFor: map[string]bool{}}
		r.hosts[hostKey] = l
	}
	return l
}

// broken records that a rule does not hold, and ends the life.
func (w *world) broken(r Rule, format string, args ...any) {
	if w.violation == nil {
		w.violation = &Violation{Rule: r, What: fmt.Sprintf(format, args...), Trace: w.trace.last()}
	}
	panic(w.violation)
}

// checkError checks that use-cases fail only in the ways that they document.
func (w *world) checkError(what string, err error) {
	var transition *lifecycle.TransitionError
	var short *fleet.ShortError
	var released *fleet.ReleasedError
	var held *fleet.HeldError
	var fleetHeld *fleet.FleetHeldError
	var state *fleet.StateError
	switch {
	case err == nil:
	case errors.As(err, &transition):
		w.broken(RuleTransition, "%s: %v", what, err)
	case errors.Is(err, lifecycle.ErrUnavailable), errors.Is(err, lifecycle.ErrNotFound), errors.Is(err, fleet.ErrSpecDiffers),
		errors.As(err, &short), errors.As(err, &released), errors.As(err, &held), errors.As(err, &fleetHeld), errors.As(err, &state):
		if !errors.Is(err, lifecycle.ErrUnavailable) {
			w.tell(w.who(), what, err.Error())
		}
	default:
		w.broken(RuleUnexpected, "%s: %v", what, err)
	}
}

// eventsAdded counts the actions of the history.
func (w *world) eventsAdded(events []lifecycle.Event) {
	for _, e := range events {
		switch e.Action {
		case lifecycle.ActionHold, lifecycle.ActionSettle, lifecycle.ActionRetire,
			lifecycle.ActionMarkOrphan, lifecycle.ActionUnmarkOrphan, lifecycle.ActionMarkIdle, lifecycle.ActionUnmarkIdle:
			w.coverage.Actions[e.Action]++
		}
	}
}

// served notes the run of the record's assignment.
func (l *life) served(r lifecycle.Record) {
	for int64(len(l.servedRuns)) <= r.Assignment {
		l.servedRuns = append(l.servedRuns, "")
	}
	if r.RunID != "" {
		l.servedRuns[r.Assignment] = lifecycle.RunKey(r.Repository, r.RunID)
	}
}

// runOf is the run of an assignment.
func (l *life) runOf(assignment int64) string {
	if assignment < 0 || assignment >= int64(len(l.servedRuns)) {
		return ""
	}
	return l.servedRuns[assignment]
}

// putReport writes a report and notes since when its host is busy.
func (w *world) putReport(p lifecycle.Report) {
	must(w.truth.ForHost(p.HostKey).PutReport(background, p))
	w.lag.report(p)
	l := w.rules.of(p.HostKey)
	switch {
	case !p.Busy:
		l.busySince = time.Time{}
	case l.busySince.IsZero():
		l.busySince = w.now
	}
}

func (w *world) reportDeleted(hostKey string) { w.lag.noReport(hostKey) }

// checkReport checks that the agent of an honest host signals only what it did.
func (w *world) checkReport(h *host, p lifecycle.Report) {
	if h.hostile {
		return
	}
	r, err := w.truth.Instance(background, h.id)
	switch {
	case err != nil:
		return
	case p.Assignment < h.reportedFor:
		w.broken(RuleFalseSignal, "%s reports for assignment %d after it did for %d", h.id, p.Assignment, h.reportedFor)
	case p.Assignment > r.Assignment:
		w.broken(RuleFalseSignal, "%s reports for assignment %d, its record has %d", h.id, p.Assignment, r.Assignment)
	case p.Signal == lifecycle.SignalRegOK && !h.registered[p.Assignment]:
		w.broken(RuleFalseSignal, "%s signals %s for assignment %d and never registered for it", h.id, p.Signal, p.Assignment)
	case p.Signal == lifecycle.SignalRemoveRegOK && !h.cleaned[p.Assignment]:
		w.broken(RuleFalseSignal, "%s signals %s for assignment %d and was not cleaned in it", h.id, p.Signal, p.Assignment)
	}
	h.reportedFor = p.Assignment
}

// checkJob checks that a job begins only on a host of its run.
func (w *world) checkJob(h *host, j *job) {
	if h.allowsOne(j) {
		return // GitHub chooses which job a job-scoped host gets
	}
	key := lifecycle.RunKey(j.repository, j.runID)
	l := w.rules.of(h.id)
	assignment := h.observed.Listener.Assignment
	switch {
	case l.runOf(assignment) != key:
		w.broken(RuleForeignJob, "%s begins on %s, whose assignment %d is %s", j, h.id, assignment, l.runOf(assignment))
	case h.lastRun != "" && h.lastRun != key:
		w.broken(RuleDirtyHost, "%s begins on %s, which was not cleaned since %s", j, h.id, h.lastRun)
	}
	if reports, _ := w.truth.Reports(background, []string{h.id}); !h.hostile && reports[h.id].Assignment > assignment {
		w.broken(RuleLateJob, "%s begins on %s, whose agent has seen its release (assignment %d)", j, h.id, reports[h.id].Assignment)
	}
}

// checkRefused checks that the hook refuses only jobs of other runs, and jobs after a release.
func (w *world) checkRefused(h *host, j *job) {
	r, err := w.truth.Instance(background, h.id)
	if err == nil && r.State == lifecycle.StateRunning && r.RunID == j.runID && r.Repository == j.repository && !h.hostile {
		w.broken(RuleRefused, "%s is refused on %s, which serves its run", j, h.id)
	}
}

// checkRegister checks that a host that is not clean does not register for another run.
func (w *world) checkRegister(h *host, a agent.Assignment) {
	if key := lifecycle.RunKey(a.Repository, a.RunID); h.lastRun != "" && h.lastRun != key {
		w.broken(RuleDirtyHost, "%s registers for %s and was not cleaned since %s", h.id, key, h.lastRun)
	}
}

func (w *world) checkClean(h *host) {
	if h.worker != nil {
		w.broken(RuleCleanBusy, "%s is cleaned while %s runs", h.id, h.worker)
	}
}
