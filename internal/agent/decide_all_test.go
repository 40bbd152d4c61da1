package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// axes are all the values that a fact takes in TestRules. Each edit leaves
// alone what others set.
var axes = [][]edit{
	{ // the record
		state(lifecycle.StateCreated), state(lifecycle.StateClaimed), state(lifecycle.StateRunning),
		state(lifecycle.StateTerminated), released, pooled, func(f *agent.Facts) { f.Record = nil },
	},
	{as, func(f *agent.Facts) { f.Observed.Busy = true }, func(f *agent.Facts) { f.Blind = true }},
	append(phases(func(s *agent.Observed) *agent.Progress { return &s.Prepared }, 0, agent.PhaseNone, agent.PhaseOK, agent.PhaseFailed),
		func(f *agent.Facts) {
			f.Observed.Prepared.Phase, f.Memory.ScriptFailedAt = agent.PhaseFailed, start.Add(-time.Minute)
		}),
	phases(func(s *agent.Observed) *agent.Progress { return &s.Registered }, 1, agent.PhaseNone, agent.PhaseRunning, agent.PhaseOK, agent.PhaseFailed),
	append(phases(func(s *agent.Observed) *agent.Progress { return &s.Removed }, 2, agent.PhaseNone, agent.PhaseFailed), assigned),
	phases(func(s *agent.Observed) *agent.Progress { return &s.Cleaned }, 2, agent.PhaseNone, agent.PhaseRunning, agent.PhaseOK, agent.PhaseFailed),
	{as, func(f *agent.Facts) { f.Observed.Registration = false }},
	{
		func(f *agent.Facts) { f.Observed.Listener = agent.Listener{} },
		func(f *agent.Facts) { f.Observed.Listener.Phase = agent.ListenerStarting },
		as,
		func(f *agent.Facts) { f.Observed.Listener.Phase = agent.ListenerStopping },
		func(f *agent.Facts) { f.Observed.Listener.Phase = agent.ListenerExited },
	},
	{as, jobScopedIfAny(0), jobScopedIfAny(1)},
	{as, disallowed},
	{as, func(f *agent.Facts) { f.Observed.Refused = "9" }, interruptedIn(time.Minute), refusedWorker(time.Minute)},
	{
		as,
		func(f *agent.Facts) {
			if f.Record != nil {
				f.Record.Registration = nil
			}
		},
	},
	{ // the threshold, by record and memory
		as,
		func(f *agent.Facts) {
			if f.Record != nil && f.Record.State != lifecycle.StateTerminated {
				f.Record.Threshold = start.Add(-2 * time.Minute)
			}
		},
		func(f *agent.Facts) {
			if f.Record != nil {
				f.Record.Hold = start.Add(time.Hour)
			}
		},
	},
}

func as(*agent.Facts) {}

// refusedWorker is a worker that has lived on for so long after its job was refused.
func refusedWorker(since time.Duration) edit {
	return func(f *agent.Facts) {
		f.Observed.Busy, f.Observed.RefusedWorker, f.RefusedSince = true, 42, start.Add(-since)
	}
}

func jobScopedIfAny(jobs int) edit {
	return func(f *agent.Facts) {
		if f.Observed.Jobs = jobs; f.Record == nil {
			return
		}
		if jobScoped(f); f.Record.Pooled() || f.Record.State == lifecycle.StateTerminated {
			f.Record.RunID, f.Record.JobsOf = "", ""
		}
	}
}

func pooled(f *agent.Facts) {
	released(f)
	f.Record.PooledAt, f.Record.Registration = start, nil
}

func phases(of func(s *agent.Observed) *agent.Progress, assignment int64, phases ...agent.Phase) []edit {
	var edits []edit
	for _, phase := range phases {
		edits = append(edits, func(f *agent.Facts) {
			*of(&f.Observed) = agent.Progress{Phase: phase, Assignment: assignment, At: start, Attempt: 1}
			if phase == agent.PhaseNone {
				*of(&f.Observed) = agent.Progress{}
			}
		})
	}
	return edits
}

// Every combination of facts has an answer that keeps the rules of the design.
func TestRules(t *testing.T) {
	for i, record := range axes[0] {
		t.Run(fmt.Sprintf("record %d", i), func(t *testing.T) {
			t.Parallel()
			checkRules(t, append([][]edit{{record}}, axes[1:]...))
		})
	}
}

// standbyAxes are those of hosts that register ahead of need, and of their claims.
var standbyAxes = append([][]edit{
	{warming, hot, claimedHot, claimedWarming, discarding, runningHot, func(f *agent.Facts) { hot(f); leftStandby(f) }},
	{as, func(f *agent.Facts) { f.Observed.Busy = true }, func(f *agent.Facts) { f.Blind = true }},
	{as, func(f *agent.Facts) { f.Observed.Prepared = agent.Progress{} }, func(f *agent.Facts) { f.Observed.Prepared.Phase = agent.PhaseFailed }},
	append(phases(func(s *agent.Observed) *agent.Progress { return &s.Registered }, 2, agent.PhaseNone, agent.PhaseRunning, agent.PhaseOK, agent.PhaseFailed),
		func(f *agent.Facts) { f.Observed.Registered.Assignment = 3 }),
	append(phases(func(s *agent.Observed) *agent.Progress { return &s.Cleaned }, 2, agent.PhaseNone, agent.PhaseRunning, agent.PhaseOK),
		phases(func(s *agent.Observed) *agent.Progress { return &s.Cleaned }, 3, agent.PhaseOK, agent.PhaseFailed)...),
	{as, func(f *agent.Facts) { f.Observed.Listener.Assignment = 3 }},
	{as, disallowed, hookSet},
}, axes[6], axes[7], axes[10], axes[11])

func runningHot(f *agent.Facts) {
	claimedHot(f)
	f.Record.State = lifecycle.StateRunning
}

// The same rules hold for hosts in standby.
func TestRulesInStandby(t *testing.T) {
	for i, record := range standbyAxes[0] {
		t.Run(fmt.Sprintf("record %d", i), func(t *testing.T) {
			t.Parallel()
			checkRules(t, append([][]edit{{record}}, standbyAxes[1:]...))
		})
	}
}

func checkRules(t *testing.T, axes [][]edit) {
	t.Helper()
	broken := map[string]int{}
	// Each depth of the walk has one place for its facts: there are millions of them.
	places := make([]struct {
		facts  agent.Facts
		record lifecycle.Record
	}, len(axes))
	var walk func(f agent.Facts, depth int)
	walk = func(f agent.Facts, depth int) {
		if depth == len(axes) {
			d := agent.Decide(f, start)
			found := rulesBroken(f, d)
			if d.Effect == agent.EffectConfirm {
				f.Confirmed = true
				found = append(found, rulesBroken(f, agent.Decide(f, start))...)
			}
			for _, rule := range found {
				if broken[rule]++; broken[rule] == 1 {
					t.Errorf("%s\ndecision %+v\nrecord %+v\nscene %+v", rule, d, f.Record, f.Observed)
				}
			}
			return
		}
		for _, e := range axes[depth] {
			p := &places[depth]
			if p.facts = f; f.Record != nil {
				p.record = *f.Record
				p.facts.Record = &p.record
			}
			e(&p.facts)
			walk(p.facts, depth+1)
		}
	}
	walk(facts(), 0)
}

func alive(l agent.Listener) bool {
	return l.Phase != agent.ListenerNone && l.Phase != agent.ListenerExited
}

func rulesBroken(f agent.Facts, d agent.Decision) (broken []string) {
	rule := func(holds bool, says string) {
		if !holds {
			broken = append(broken, says)
		}
	}
	s, r := f.Observed, f.Record
	busy := f.Blind || s.Busy
	ends := d.Effect == agent.EffectPowerOff || d.Effect == agent.EffectConfirm
	held := r != nil && r.Held(start)
	terminated := r != nil && r.State == lifecycle.StateTerminated
	useless := s.Prepared.Phase == agent.PhaseFailed && !f.Memory.ScriptFailedAt.IsZero() && !alive(s.Listener)
	interrupted := !s.InterruptionAt.IsZero()
	late := r != nil && !r.Threshold.IsZero() && start.Sub(r.Threshold) >= time.Minute

	rule(d.Reason != "", "every decision has a reason")
	rule(!ends || !held, "nothing ends a held host")
	rule(!ends || terminated || !busy, "a job is ended by an order or its runtime alone")
	rule(!ends || terminated || late || useless, "a host ends by an order, its threshold or its failed script")
	rule(ends || held || busy || !useless, "a host whose script failed long ago ends")
	rule(ends || held || !terminated, "a terminated host ends")
	rule(d.Effect != agent.EffectPowerOff || f.Confirmed, "it reads consistently before it ends itself")
	rule(d.Effect != agent.EffectConfirm || !f.Confirmed, "it reads consistently once")
	if ends {
		return broken
	}
	refusedFor := time.Duration(0)
	if s.RefusedWorker != 0 && !f.Blind {
		refusedFor = start.Sub(f.RefusedSince)
	}
	rule(refusedFor < time.Minute || d.Effect == agent.EffectEndRefused, "a worker that outlives its refusal is ended")
	if d.Effect == agent.EffectEndRefused {
		rule(refusedFor > time.Second, "only a refused worker is ended, and not before its hook could")
		d.Effect = agent.EffectNone // the other rules are about what the host serves
	}
	rule(!busy || d.Effect == agent.EffectNone || d.Effect == agent.EffectAllow, "nothing but the hook is touched while a job runs")
	rule(!f.Blind || d.Effect == agent.EffectNone, "what cannot be seen is left alone")
	if r == nil {
		rule(d.Effect == agent.EffectNone && d.Answer == agent.Answer{}, "without a record nothing is done")
		return broken
	}
	serves := r.State == lifecycle.StateCreated || r.State == lifecycle.StateClaimed || r.State == lifecycle.StateRunning
	idle := r.State == lifecycle.StateIdle
	standsBy := r.Pooled() && r.Standby != nil
	idle = idle && !standsBy
	byStandby := r.Standby != nil && r.Standby.RunnerID != 0
	discards := r.State == lifecycle.StateClaimed && r.Standby != nil && r.Standby.Discarded
	runner := r.Assignment // that of the runner
	if r.Standby != nil && !r.Standby.Discarded {
		runner = r.Standby.Assignment
	}
	its := agent.Allowed{RunID: r.RunID, Repository: r.Repository}
	if standsBy {
		its, serves = agent.Allowed{Standby: true}, true
	}
	kind := lifecycle.RegistrationToken
	if r.JobsOf != "" {
		its, kind = agent.Allowed{JobsOf: r.JobsOf, Forks: r.Forks}, lifecycle.RegistrationJIT
	}
	failed := s.Removed.Phase == agent.PhaseFailed && !s.Removed.Assigned
	assignable := idle && s.Registration && s.RegisteredAs != lifecycle.RegistrationJIT && r.JobsOf == "" &&
		alive(s.Listener) && s.Listener.Phase != agent.ListenerStopping && !failed
	hadItsJob := r.JobsOf != "" && s.Jobs > 0
	rule(!serves || !hadItsJob || d.Effect == agent.EffectNone, "a host that had its one job waits for its release")
	switch d.Effect {
	case agent.EffectRegister:
		rule(serves && r.Registration != nil && r.Registration.Kind == kind && s.Allowed == its, "registration needs a run, a token and the hook")
		rule(!byStandby, "a runner that listened is not registered again under its name")
		rule(s.Registered.Phase == agent.PhaseNone || s.Registered.Assignment == runner, "nothing is registered beside another runner")
	case agent.EffectListen:
		rule(!interrupted, "no listener is started on a machine that is taken")
		rule(serves && s.Registered.Phase == agent.PhaseOK && s.Allowed == its, "only a configured runner of a run listens")
	case agent.EffectStop:
		rule(interrupted || discards || idle && s.Allowed == agent.Allowed{}, "a listener is stopped for a release, an interruption or a registration of its run's own")
		rule(interrupted || !discards || s.Listener.Assignment != r.Assignment || s.Registered.Assignment != r.Assignment, "the runner of its run is not discarded")
		rule(!assignable, "a listener that GitHub may have given a job is not stopped by a release")
	case agent.EffectAllow:
		rule(!assignable, "a job that GitHub may have assigned before the registration was deleted is not refused")
	case agent.EffectClean:
		rule(idle && s.Allowed == agent.Allowed{} || (discards || standsBy) && !alive(s.Listener), "a host is cleaned once it is released and takes no job")
		rule(!standsBy || s.Registered.Phase == agent.PhaseNone, "what has registered ahead of need is kept")
	}
	if d.Effect == agent.EffectDeregister {
		rule(idle && r.Registration != nil, "deregistration needs a release and a token")
		rule(r.JobsOf == "" && s.RegisteredAs != lifecycle.RegistrationJIT, "a JIT registration is not the agent's to remove")
	}
	if d.Effect == agent.EffectClean {
		rule(discards || !s.Registration || s.RegisteredAs == lifecycle.RegistrationJIT, "remove first, delete after")
	}
	if interrupted && !busy && !hadItsJob {
		rule(d.Effect != agent.EffectPrepare && d.Effect != agent.EffectRegister, "nothing new is begun on a machine that is taken")
		rule(!serves || s.Listener.Phase != agent.ListenerListening || d.Effect == agent.EffectStop || s.Cleaned.Phase == agent.PhaseRunning,
			"a machine that is taken gets no job")
		rule(!serves || d.Answer.Signal != lifecycle.SignalRegOK, "a machine that is taken is not ready")
	}
	if sig := d.Answer.Signal; sig == lifecycle.SignalFailed || sig == lifecycle.SignalRegFailed || sig == lifecycle.SignalRemoveRegFailed {
		rule(d.Answer.Detail != "" && !strings.HasSuffix(d.Answer.Detail, ": "), "a failure says what failed")
	}
	switch d.Answer.Signal {
	case lifecycle.SignalOK, lifecycle.SignalFailed:
		rule(r.State == lifecycle.StateCreated, "the script's signals are for new hosts")
	case lifecycle.SignalRegOK:
		rule(serves, "registered without a run")
		rule(r.State == lifecycle.StateRunning || (s.Registered.Assignment == runner &&
			(s.Busy || hadItsJob || s.Listener.Phase == agent.ListenerListening)), "ready is who listens for this assignment")
	case lifecycle.SignalRegFailed:
		rule(serves && d.Answer.Cause != lifecycle.CauseNone || s.Registered.Phase == agent.PhaseFailed, "a failure has a cause")
	case lifecycle.SignalRemoveRegOK:
		rule(standsBy || idle && !busy && !s.Registration && s.Allowed == agent.Allowed{}, "clean is only a host without a runner")
		rule(!standsBy || s.Registered.Phase != agent.PhaseOK || s.Listener.Phase != agent.ListenerListening || s.Allowed != its || d.Effect != agent.EffectNone,
			"a host that listens says so")
		rule(s.Refused == "" &&
			s.Cleaned.Phase == agent.PhaseOK && s.Cleaned.Assignment == r.Assignment, "clean is only who is")
	case lifecycle.SignalRemoveRegFailed:
		rule(idle || standsBy && s.Registered.Phase == agent.PhaseNone, "removal failed without a release")
	}
	return broken
}
