// Package lifecycle is the ground floor of Remuda: the words, the records, the allowed transitions and the
// one decision function. It is pure. It does no I/O, reads no clock and imports nothing of ours, so that the
// daemons, the simulator and the offline planner all decide alike.
package lifecycle

import "slices"

// State is where a host stands in its life. The zero value is no state at all and is never stored.
type State string

// The states of a host. An idle host is releasing until it is clean
// (Record.PooledAt is zero), pooled from then on, and stopped while
// Record.Stop is set.
const (
	StateCreated    State = "created"    // launched, not yet registered
	StateRunning    State = "running"    // registered with GitHub and serving its run
	StateIdle       State = "idle"       // without a run: releasing, then pooled
	StateClaimed    State = "claimed"    // taken from the pool, not yet registered
	StateTerminated State = "terminated" // ended on paper; the machine follows
)

// States lists every state, in the order of a host's life.
var States = []State{StateCreated, StateRunning, StateIdle, StateClaimed, StateTerminated}

// LiveStates lists those of hosts that have not ended.
var LiveStates = States[:len(States)-1]

// Valid reports whether s is one of States.
func (s State) Valid() bool { return slices.Contains(States, s) }

// Signal is the agent's answer to an assignment. The names are the wire names
// of the system Remuda replaces and must not change.
type Signal string

// The signals. The empty signal means: seen, and being worked on.
const (
	SignalNone            Signal = ""
	SignalOK              Signal = "UD_OK"                // the pre-runner script succeeded
	SignalFailed          Signal = "UD_FAILED"            // the pre-runner script failed
	SignalRegOK           Signal = "UD_REG_OK"            // registered, listening for jobs
	SignalRegFailed       Signal = "UD_REG_FAILED"        // not registered
	SignalRemoveRegOK     Signal = "UD_REMOVE_REG_OK"     // deregistered and clean
	SignalRemoveRegFailed Signal = "UD_REMOVE_REG_FAILED" // not deregistered, or not clean
)

// Signals lists every signal, the empty one first.
var Signals = []Signal{
	SignalNone, SignalOK, SignalFailed, SignalRegOK, SignalRegFailed,
	SignalRemoveRegOK, SignalRemoveRegFailed,
}

// Valid reports whether s is one of Signals.
func (s Signal) Valid() bool { return slices.Contains(Signals, s) }

// Cause says whose fault a failure signal is. Only the host's own faults and those
// of unknown cause count against the host (docs/design.md#the-lifecycle).
type Cause string

// The causes.
const (
	CauseNone      Cause = ""
	CauseHost      Cause = "host"
	CauseClock     Cause = "clock" // the host's clock is wrong by minutes, so GitHub refuses its tokens
	CauseGitHub    Cause = "github"
	CauseRateLimit Cause = "rate_limit"     // of GitHub
	CauseGroup     Cause = "runner_group"   // GitHub does not have the runner group of the configuration
	CauseVersion   Cause = "runner_version" // GitHub refuses this version of actions/runner
	CauseAWS       Cause = "aws"
)

// Causes lists every cause, the empty one first.
var Causes = []Cause{CauseNone, CauseHost, CauseClock, CauseGitHub, CauseRateLimit, CauseGroup, CauseVersion, CauseAWS}

// Valid reports whether c is one of Causes.
func (c Cause) Valid() bool { return slices.Contains(Causes, c) }

// external reports whether a failure is neither the host's fault nor unknown.
func (c Cause) external() bool { return c != CauseNone && c != CauseHost && c != CauseClock }

// Passes reports whether a failure may be over at another attempt, which the agent makes by itself.
func (c Cause) Passes() bool { return c == CauseGitHub || c == CauseRateLimit }

// UsageClass is how a host is bought.
type UsageClass string

// The usage classes.
const (
	UsageOnDemand UsageClass = "on-demand"
	UsageSpot     UsageClass = "spot"
)

// UsageClasses lists every usage class.
var UsageClasses = []UsageClass{UsageOnDemand, UsageSpot}

// Valid reports whether u is one of UsageClasses.
func (u UsageClass) Valid() bool { return slices.Contains(UsageClasses, u) }
