package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// decided is what a table expects of a decision.
type decided struct {
	Effect agent.Effect
	Signal lifecycle.Signal
	Cause  lifecycle.Cause
	Look   time.Duration // from start; 0: not looked at
}

// facts of a host that serves run-1 under assignment 1, listening.
func facts(edits ...func(f *agent.Facts)) agent.Facts {
	w := newWorld()
	serving(w)
	f := agent.Facts{
		Record: w.record, Observed: w.observed, BootTimeout: 10 * time.Minute,
		Memory: agent.Memory{BootID: "boot-1", StartedAt: start, Record: w.record},
	}
	for _, edit := range edits {
		edit(&f)
	}
	return f
}

type edit = func(f *agent.Facts)

func state(s lifecycle.State) edit {
	return func(f *agent.Facts) {
		r := *f.Record
		r.State = s
		if s == lifecycle.StateCreated || s == lifecycle.StateClaimed {
			r.Registration = &lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: "t", ExpiresAt: start.Add(time.Hour)}
		}
		f.Record = &r
	}
}

// released is the record after a release, with a remove token.
func released(f *agent.Facts) {
	r := *f.Record
	r.State, r.RunID, r.Assignment, r.Uses = lifecycle.StateIdle, "", 2, 1
	r.Registration = removeToken("r")
	f.Record = &r
}

// freshHost is a record that no run has used.
func freshHost(f *agent.Facts) {
	r := *f.Record
	r.Registration, r.Repository, r.TrustKey, r.Uses = nil, "", "", 0
	f.Record = &r
}

// jobScoped makes record and observed those of a host for one job of acme.
func jobScoped(f *agent.Facts) {
	r := *f.Record
	r.RunID, r.JobsOf, r.Forks = "job:7", "acme", true
	switch {
	case r.State == lifecycle.StateIdle:
		r.RunID, r.Registration = "", nil
	case r.Registration != nil:
		reg := *r.Registration
		reg.Kind = lifecycle.RegistrationJIT
		r.Registration = &reg
	}
	f.Record = &r
	if f.Observed.RegisteredAs = lifecycle.RegistrationJIT; f.Observed.Allowed != (agent.Allowed{}) {
		f.Observed.Allowed = agent.Allowed{JobsOf: "acme", Forks: true}
	}
}

func jobs(n int) edit { return observed(func(s *agent.Observed) { s.Jobs = n }) }

// longAgo is when the listener exited: whatever pause there is has passed.
func longAgo(f *agent.Facts) { f.Observed.Listener.At = start.Add(-time.Hour) }

func observed(change func(s *agent.Observed)) edit {
	return func(f *agent.Facts) { change(&f.Observed) }
}

func exited(code int, up time.Duration) edit {
	return observed(func(s *agent.Observed) {
		s.Listener = agent.Listener{Phase: agent.ListenerExited, Assignment: 1, StartedAt: start.Add(-up), At: start, Code: code}
	})
}

func restarts(n int) edit { return func(f *agent.Facts) { f.Memory.Restarts = n } }

// disallowed is a observed after the hook learned of a release.
func disallowed(f *agent.Facts) { f.Observed.Allowed = agent.Allowed{} }

// stopped is a observed after the listener was stopped.
func stopped(f *agent.Facts) {
	disallowed(f)
	f.Observed.Listener.Phase = agent.ListenerExited
}

// deregistered is a observed after the registration was removed.
func deregistered(f *agent.Facts) {
	stopped(f)
	f.Observed.Registration = false
	f.Observed.Removed = agent.Progress{Phase: agent.PhaseOK, Assignment: 2}
}

func failed(p agent.Phase, cause lifecycle.Cause, attempt int) agent.Progress {
	return agent.Progress{Phase: p, Assignment: 2, At: start, Attempt: attempt, Cause: cause, Detail: "why"}
}

func removal(cause lifecycle.Cause, attempt int) edit {
	return observed(func(s *agent.Observed) { s.Removed = failed(agent.PhaseFailed, cause, attempt) })
}

// removalAt moves the removal, which was now, by d.
func removalAt(d time.Duration) edit {
	return observed(func(s *agent.Observed) { s.Removed.At = s.Removed.At.Add(d) })
}

// assigned is a removal that GitHub refused because of a job.
func assigned(f *agent.Facts) {
	f.Observed.Removed = failed(agent.PhaseFailed, lifecycle.CauseGitHub, 1)
	f.Observed.Removed.Assigned = true
}

// unregistered is a host whose registration was removed while it listened.
func unregistered(f *agent.Facts) {
	f.Observed.Registration = false
	f.Observed.Removed = agent.Progress{Phase: agent.PhaseOK, Assignment: 2}
}

func registered(phase agent.Phase, cause lifecycle.Cause, attempt int) edit {
	return observed(func(s *agent.Observed) {
		s.Registered = agent.Progress{Phase: phase, Assignment: 1, At: start, Attempt: attempt, Cause: cause}
		s.Registration, s.Listener = false, agent.Listener{}
	})
}

func TestDecide(t *testing.T) {
	const (
		regOK, regFailed = lifecycle.SignalRegOK, lifecycle.SignalRegFailed
		remOK, remFailed = lifecycle.SignalRemoveRegOK, lifecycle.SignalRemoveRegFailed
		github, byHost   = lifecycle.CauseGitHub, lifecycle.CauseHost
		aws              = lifecycle.CauseAWS
	)
	created, claimed := state(lifecycle.StateCreated), state(lifecycle.StateClaimed)
	busyNow := observed(func(s *agent.Observed) { s.Busy = true })
	connecting := observed(func(s *agent.Observed) { s.Listener.Phase = agent.ListenerStarting })
	bare := observed(func(s *agent.Observed) {
		s.Registered, s.Registration, s.Listener = agent.Progress{}, false, agent.Listener{}
	})
	prepared := func(p agent.Phase) edit { return observed(func(s *agent.Observed) { s.Prepared.Phase = p }) }
	tests := map[string]struct {
		edits []edit
		want  decided
	}{
		"running and listening": {nil, decided{Signal: regOK}},
		"created and listening": {[]edit{created}, decided{Signal: regOK}},
		"claimed and listening": {[]edit{claimed}, decided{Signal: regOK}},
		"busy":                  {[]edit{busyNow}, decided{Signal: regOK}},
		"busy without a listener": {[]edit{busyNow, exited(agent.CodeUnknown, time.Minute)},
			decided{Signal: regOK}},
		"blind":            {[]edit{func(f *agent.Facts) { f.Blind = true }}, decided{}},
		"an unknown state": {[]edit{state("odd")}, decided{}},

		"created: script first":         {[]edit{created, bare, prepared(agent.PhaseNone)}, decided{Effect: agent.EffectPrepare}},
		"created: script runs":          {[]edit{created, bare, prepared(agent.PhaseRunning)}, decided{}},
		"created: script failed":        {[]edit{created, bare, prepared(agent.PhaseFailed)}, decided{Signal: lifecycle.SignalFailed, Cause: byHost}},
		"claimed: script failed":        {[]edit{claimed, bare, prepared(agent.PhaseFailed)}, decided{Signal: regFailed, Cause: byHost}},
		"running: listens, script lost": {[]edit{prepared(agent.PhaseNone)}, decided{Signal: regOK}},
		"created: hook first":           {[]edit{created, bare, disallowed}, decided{Effect: agent.EffectAllow, Signal: lifecycle.SignalOK}},
		"created: then registration":    {[]edit{created, bare}, decided{Effect: agent.EffectRegister, Signal: lifecycle.SignalOK}},
		"claimed: registration":         {[]edit{claimed, bare}, decided{Effect: agent.EffectRegister}},
		"claimed: the last clean-up still runs": {[]edit{claimed, bare, observed(func(s *agent.Observed) {
			s.Cleaned = agent.Progress{Phase: agent.PhaseRunning, Assignment: 0}
		})}, decided{}},
		"claimed: a runner is left": {[]edit{claimed, observed(func(s *agent.Observed) { s.Registered.Assignment = 9 })},
			decided{Signal: regFailed, Cause: byHost}},
		"claimed: a listener is left": {[]edit{claimed, observed(func(s *agent.Observed) { s.Listener.Assignment = 9 })},
			decided{Signal: regFailed, Cause: byHost}},
		"created: no token yet": {[]edit{created, bare, func(f *agent.Facts) { f.Record.Registration = nil }}, decided{Signal: lifecycle.SignalOK}},
		"claimed: token expired": {[]edit{claimed, bare, func(f *agent.Facts) { f.Record.Registration.ExpiresAt = start }},
			decided{Signal: regFailed, Cause: github}},
		"claimed: token of the wrong kind": {[]edit{claimed, bare, func(f *agent.Facts) { f.Record.Registration.Kind = lifecycle.RegistrationRemove }},
			decided{Signal: regFailed, Cause: github}},
		"running: the runner is gone":             {[]edit{bare}, decided{Signal: regFailed, Cause: byHost}},
		"configuring":                             {[]edit{claimed, registered(agent.PhaseRunning, "", 1)}, decided{}},
		"configuration failed by the host":        {[]edit{claimed, registered(agent.PhaseFailed, byHost, 1)}, decided{Signal: regFailed, Cause: byHost}},
		"configuration failed by GitHub: a pause": {[]edit{created, registered(agent.PhaseFailed, github, 2)}, decided{Signal: regFailed, Cause: github, Look: 10 * time.Second}},
		"configuration failed by GitHub: again": {[]edit{created, registered(agent.PhaseFailed, github, 2),
			observed(func(s *agent.Observed) { s.Registered.At = start.Add(-10 * time.Second) })},
			decided{Effect: agent.EffectRegister, Signal: regFailed, Cause: github}},
		"configured": {[]edit{claimed, observed(func(s *agent.Observed) { s.Listener = agent.Listener{} })}, decided{Effect: agent.EffectListen}},
		"connecting": {[]edit{claimed, observed(func(s *agent.Observed) { s.Listener.Phase = agent.ListenerStarting })}, decided{Look: time.Minute}},
		"connecting for too long": {[]edit{claimed, observed(func(s *agent.Observed) {
			s.Listener.Phase, s.Listener.StartedAt = agent.ListenerStarting, start.Add(-time.Minute)
		})}, decided{Signal: regFailed, Cause: github}},
		"running: connecting again for long": {[]edit{observed(func(s *agent.Observed) {
			s.Listener.Phase, s.Listener.StartedAt = agent.ListenerStarting, start.Add(-time.Hour)
		})}, decided{Signal: regOK}},

		"listener: exit 0, restarted": {[]edit{exited(0, time.Minute), observed(func(s *agent.Observed) { s.Listener.At = start.Add(-time.Second) })},
			decided{Effect: agent.EffectListen, Signal: regOK}},

		"job-scoped: hook first":           {[]edit{claimed, bare, disallowed, jobScoped}, decided{Effect: agent.EffectAllow}},
		"job-scoped: then registration":    {[]edit{claimed, bare, jobScoped}, decided{Effect: agent.EffectRegister}},
		"job-scoped: a token is of no use": {[]edit{jobScoped, claimed, bare}, decided{Signal: regFailed, Cause: github}},
		"run-scoped: a JIT configuration is of no use": {[]edit{claimed, bare, func(f *agent.Facts) { f.Record.Registration.Kind = lifecycle.RegistrationJIT }},
			decided{Signal: regFailed, Cause: github}},
		"job-scoped: listening":                                 {[]edit{jobScoped}, decided{Signal: regOK}},
		"job-scoped: its job runs":                              {[]edit{jobScoped, jobs(1), busyNow}, decided{Signal: regOK}},
		"job-scoped: its job runs, listener gone":               {[]edit{jobScoped, jobs(1), busyNow, exited(agent.CodeUnknown, time.Minute)}, decided{Signal: regOK}},
		"job-scoped: its job is over, listener there":           {[]edit{jobScoped, jobs(1)}, decided{Signal: regOK}},
		"job-scoped: exit 0 after its job":                      {[]edit{jobScoped, jobs(1), exited(0, time.Minute)}, decided{Signal: regOK}},
		"job-scoped: exit 1 after its job":                      {[]edit{jobScoped, jobs(1), exited(1, time.Minute)}, decided{Signal: regOK}},
		"job-scoped: exit 2 after its job, not restarted":       {[]edit{jobScoped, jobs(1), exited(2, time.Hour), longAgo}, decided{Signal: regOK}},
		"job-scoped: killed after its job, not restarted":       {[]edit{jobScoped, jobs(1), exited(agent.CodeUnknown, time.Hour), longAgo}, decided{Signal: regOK}},
		"job-scoped: its job was over before it was seen ready": {[]edit{claimed, jobScoped, jobs(1), exited(0, time.Minute)}, decided{Signal: regOK}},
		"job-scoped: exit 0 without a job":                      {[]edit{jobScoped, exited(0, time.Minute)}, decided{Signal: regFailed, Cause: github}},
		"job-scoped: exit 0 before it was seen ready":           {[]edit{claimed, jobScoped, exited(0, time.Second)}, decided{Signal: regFailed, Cause: github}},
		"job-scoped: exit 1 after it listened": {[]edit{jobScoped, exited(1, time.Minute), observed(func(s *agent.Observed) { s.Listener.Listened = true })},
			decided{Signal: regFailed, Cause: github}},
		"job-scoped: exit 1 and never listened": {[]edit{claimed, jobScoped, exited(1, time.Second)}, decided{Signal: regFailed, Cause: byHost}},
		"job-scoped: exit 2 is tried again":     {[]edit{jobScoped, exited(2, time.Minute)}, decided{Signal: regOK, Look: time.Second}},
		"job-scoped: its job was refused": {[]edit{jobScoped, exited(0, time.Minute), observed(func(s *agent.Observed) { s.Refused = "9" })},
			decided{Signal: regFailed, Cause: byHost}},
		"run-scoped: a job is over, more may come": {[]edit{jobs(1), exited(0, time.Minute), longAgo},
			decided{Effect: agent.EffectListen, Signal: regOK}},
		"listener: exit 1 is for good":            {[]edit{exited(1, time.Minute)}, decided{Signal: regFailed, Cause: byHost}},
		"listener: exit 2 waits 1 s":              {[]edit{exited(2, time.Minute)}, decided{Signal: regOK, Look: time.Second}},
		"listener: exit 2 again waits 4 s":        {[]edit{exited(2, time.Minute), restarts(2)}, decided{Signal: regOK, Look: 4 * time.Second}},
		"listener: exit 2 too often":              {[]edit{exited(2, time.Minute), restarts(7)}, decided{Signal: regFailed, Cause: github}},
		"listener: exit 2 after a good spell":     {[]edit{exited(2, 5*time.Minute), restarts(7)}, decided{Signal: regOK, Look: time.Second}},
		"listener: exit 3 is a version too old":   {[]edit{exited(3, time.Minute)}, decided{Signal: regFailed, Cause: lifecycle.CauseVersion}},
		"listener: exit 4 is a version too old":   {[]edit{exited(4, time.Minute)}, decided{Signal: regFailed, Cause: lifecycle.CauseVersion}},
		"job-scoped: exit 4 is a version too old": {[]edit{jobScoped, exited(4, time.Minute)}, decided{Signal: regFailed, Cause: lifecycle.CauseVersion}},
		"listener: exit 5 waits for the session": {[]edit{exited(5, time.Minute)},
			decided{Signal: regOK, Look: 30 * time.Second}},
		"listener: exit 5 for too long": {[]edit{exited(5, time.Minute), restarts(7)}, decided{Signal: regFailed, Cause: github}},
		"listener: exit 7 is for good":  {[]edit{exited(7, time.Minute)}, decided{Signal: regFailed, Cause: lifecycle.CauseVersion}},
		"listener: exit 0 and unconfigured": {[]edit{exited(0, time.Minute), observed(func(s *agent.Observed) { s.Listener.Unconfigured = true })},
			decided{Signal: regFailed, Cause: github}},
		"rate limit: the next attempt is a minute later": {[]edit{created, registered(agent.PhaseFailed, lifecycle.CauseRateLimit, 1)},
			decided{Signal: regFailed, Cause: lifecycle.CauseRateLimit, Look: time.Minute}},
		"unknown runner group: no further attempt": {[]edit{created, registered(agent.PhaseFailed, lifecycle.CauseGroup, 1)},
			decided{Signal: regFailed, Cause: lifecycle.CauseGroup}},
		"listener: killed":                {[]edit{exited(agent.CodeUnknown, time.Minute)}, decided{Signal: regOK, Look: time.Second}},
		"listener: killed too often":      {[]edit{exited(137, time.Minute), restarts(7)}, decided{Signal: regFailed, Cause: byHost}},
		"created: listener exited, pause": {[]edit{created, exited(2, time.Second)}, decided{Signal: lifecycle.SignalOK, Look: time.Second}},

		"released: the registration first":               {[]edit{released}, decided{Effect: agent.EffectDeregister}},
		"released while busy: another job may come":      {[]edit{released, busyNow}, decided{}},
		"released without a token: it listens":           {[]edit{released, func(f *agent.Facts) { f.Record.Registration = nil }}, decided{}},
		"released: being removed while it listens":       {[]edit{released, observed(func(s *agent.Observed) { s.Removed = failed(agent.PhaseRunning, "", 1) })}, decided{}},
		"released: GitHub has assigned a job":            {[]edit{released, assigned}, decided{Look: 5 * time.Second}},
		"released: the assigned job runs":                {[]edit{released, assigned, busyNow}, decided{}},
		"released: the assigned job is over":             {[]edit{released, assigned, removalAt(-5 * time.Second)}, decided{Effect: agent.EffectDeregister}},
		"released: the assigned job outlasts the token":  {[]edit{released, assigned, func(f *agent.Facts) { f.Record.Registration.ExpiresAt = start }}, decided{Signal: remFailed, Cause: github}},
		"released: off GitHub, then the hook":            {[]edit{released, unregistered}, decided{Effect: agent.EffectAllow}},
		"released: off GitHub, and a job that came late": {[]edit{released, unregistered, busyNow}, decided{Effect: agent.EffectAllow}},
		"released: off GitHub, then the listener stops":  {[]edit{released, unregistered, disallowed}, decided{Effect: agent.EffectStop}},
		"released: removal failed, then the hook":        {[]edit{released, removal(github, 1)}, decided{Effect: agent.EffectAllow}},
		"released: removal failed, the listener stops":   {[]edit{released, removal(github, 1), disallowed}, decided{Effect: agent.EffectStop}},
		"released while connecting":                      {[]edit{released, connecting}, decided{Effect: agent.EffectDeregister}},
		"released: JIT, the hook first":                  {[]edit{released, jobScoped}, decided{Effect: agent.EffectAllow}},
		"released while busy: JIT, the hook":             {[]edit{released, jobScoped, busyNow}, decided{Effect: agent.EffectAllow}},
		"draining":                                       {[]edit{released, unregistered, disallowed, busyNow}, decided{}},
		"released: listener is stopping": {[]edit{released, disallowed, observed(func(s *agent.Observed) { s.Listener.Phase = agent.ListenerStopping })},
			decided{Look: 45 * time.Second}},
		"released: listener does not stop": {[]edit{released, disallowed, observed(func(s *agent.Observed) {
			s.Listener.Phase, s.Listener.At = agent.ListenerStopping, start.Add(-45*time.Second)
		})}, decided{Effect: agent.EffectStop}},
		"released: a job was taken": {[]edit{released, observed(func(s *agent.Observed) { s.Busy, s.Taken = true, true })}, decided{}},
		"released: configuring":     {[]edit{released, disallowed, registered(agent.PhaseRunning, "", 1)}, decided{}},
		"released: deregister":      {[]edit{released, stopped}, decided{Effect: agent.EffectDeregister}},
		"released: no token":        {[]edit{released, stopped, func(f *agent.Facts) { f.Record.Registration = nil }}, decided{}},
		"released: JIT":             {[]edit{released, jobScoped, stopped}, decided{Effect: agent.EffectClean}},
		"released: JIT, by what is left on disk": {[]edit{released, stopped, observed(func(s *agent.Observed) { s.RegisteredAs = lifecycle.RegistrationJIT })},
			decided{Effect: agent.EffectClean}},
		"released: JIT, by the record alone": {[]edit{released, jobScoped, stopped, observed(func(s *agent.Observed) { s.RegisteredAs = lifecycle.RegistrationToken })},
			decided{Effect: agent.EffectClean}},
		"released: JIT, clean but still on disk": {[]edit{released, jobScoped, stopped, observed(func(s *agent.Observed) { s.Cleaned = failed(agent.PhaseOK, "", 1) })},
			decided{Signal: remFailed, Cause: byHost}},
		"removal runs": {[]edit{released, stopped, observed(func(s *agent.Observed) { s.Removed = failed(agent.PhaseRunning, "", 1) })},
			decided{}},
		"removal failed by GitHub: a pause": {[]edit{released, stopped, removal(github, 1), func(f *agent.Facts) { f.Tried = true }},
			decided{Signal: remFailed, Cause: github, Look: 5 * time.Second}},
		"removal failed by GitHub: again": {[]edit{released, stopped, removal(github, 1), func(f *agent.Facts) {
			f.Tried, f.Observed.Removed.At = true, start.Add(-5*time.Second)
		}}, decided{Effect: agent.EffectDeregister, Signal: remFailed, Cause: github}},
		"removal failed by the host": {[]edit{released, stopped, removal(byHost, 1), func(f *agent.Facts) { f.Tried = true }},
			decided{Signal: remFailed, Cause: byHost}},
		"removal failed: a new token": {[]edit{released, stopped, removal(byHost, 1)},
			decided{Effect: agent.EffectDeregister, Signal: remFailed, Cause: byHost}},
		"removal failed: token expired": {[]edit{released, stopped, removal(github, 1), func(f *agent.Facts) {
			f.Record.Registration.ExpiresAt = start
		}}, decided{Signal: remFailed, Cause: github}},
		"deregistered":                        {[]edit{released, deregistered}, decided{Effect: agent.EffectClean}},
		"never registered":                    {[]edit{released, bare, disallowed}, decided{Effect: agent.EffectClean}},
		"fresh: prepared before it is pooled": {[]edit{released, bare, disallowed, freshHost, prepared(agent.PhaseNone)}, decided{Effect: agent.EffectPrepare}},
		"fresh: being prepared":               {[]edit{released, bare, disallowed, freshHost, prepared(agent.PhaseRunning)}, decided{}},
		"fresh: prepared":                     {[]edit{released, bare, disallowed, freshHost}, decided{Effect: agent.EffectClean}},
		"fresh: prepared and clean": {[]edit{released, bare, disallowed, freshHost, observed(func(s *agent.Observed) { s.Cleaned = failed(agent.PhaseOK, "", 1) })},
			decided{Signal: remOK}},
		"fresh: the script failed": {[]edit{released, bare, disallowed, freshHost, prepared(agent.PhaseFailed), observed(func(s *agent.Observed) { s.Cleaned = failed(agent.PhaseOK, "", 1) })},
			decided{Signal: remFailed, Cause: byHost}},
		"released: not prepared again before it is clean": {[]edit{released, bare, disallowed, prepared(agent.PhaseNone)}, decided{Effect: agent.EffectClean}},
		"refused a foreign job":                           {[]edit{released, deregistered, observed(func(s *agent.Observed) { s.Refused = "9" })}, decided{Signal: remFailed, Cause: byHost}},
		"refused one, before a restart": {[]edit{released, deregistered, func(f *agent.Facts) { f.Memory.Refused = "9" }},
			decided{Signal: remFailed, Cause: byHost}},
		"cleaning":  {[]edit{released, deregistered, observed(func(s *agent.Observed) { s.Cleaned = failed(agent.PhaseRunning, "", 1) })}, decided{}},
		"not clean": {[]edit{released, deregistered, observed(func(s *agent.Observed) { s.Cleaned = failed(agent.PhaseFailed, byHost, 1) })}, decided{Signal: remFailed, Cause: byHost}},
		"clean":     {[]edit{released, deregistered, observed(func(s *agent.Observed) { s.Cleaned = failed(agent.PhaseOK, "", 1) })}, decided{Signal: remOK}},
		"clean for an older release": {[]edit{released, deregistered, observed(func(s *agent.Observed) {
			s.Cleaned = agent.Progress{Phase: agent.PhaseOK, Assignment: 0}
		})}, decided{Effect: agent.EffectClean}},

		"interrupted: the listener stops":   {[]edit{interruptedIn(time.Minute)}, decided{Effect: agent.EffectStop, Signal: regFailed, Cause: aws}},
		"interrupted: a job works on":       {[]edit{interruptedIn(time.Minute), busyNow}, decided{Signal: regOK}},
		"interrupted: not started again":    {[]edit{interruptedIn(time.Minute), exited(0, time.Minute), longAgo}, decided{Signal: regFailed, Cause: aws}},
		"interrupted: not registered":       {[]edit{interruptedIn(time.Minute), claimed, bare}, decided{Signal: regFailed, Cause: aws}},
		"interrupted: not prepared":         {[]edit{interruptedIn(time.Minute), created, bare, prepared(agent.PhaseNone)}, decided{Signal: regFailed, Cause: aws}},
		"interrupted: its one job was done": {[]edit{interruptedIn(time.Minute), jobScoped, jobs(1), exited(0, time.Minute)}, decided{Signal: regOK}},
		"interrupted: JIT, waiting for it":  {[]edit{interruptedIn(time.Minute), jobScoped}, decided{Effect: agent.EffectStop, Signal: regFailed, Cause: aws}},
		"interrupted: deregistered":         {[]edit{interruptedIn(time.Minute), released, stopped}, decided{Effect: agent.EffectDeregister}},
		"interrupted: no token comes":       {[]edit{interruptedIn(time.Minute), released, stopped, func(f *agent.Facts) { f.Record.Registration = nil }}, decided{}},
		"interrupted: does not stop in time": {[]edit{interruptedIn(time.Minute), observed(func(s *agent.Observed) {
			s.Listener.Phase, s.Listener.At = agent.ListenerStopping, start.Add(-45*time.Second)
		})},
			decided{Effect: agent.EffectStop, Signal: regFailed, Cause: aws}},
		"a rebalance recommendation stops nothing": {[]edit{observed(func(s *agent.Observed) { s.RebalanceAt = start })}, decided{Signal: regOK}},
		"pooled: the script failed after a reboot": {[]edit{inThePool, prepared(agent.PhaseFailed)}, decided{Signal: remFailed, Cause: byHost}},

		"terminated": {[]edit{state(lifecycle.StateTerminated)}, decided{Effect: agent.EffectConfirm}},
		"terminated, confirmed": {[]edit{state(lifecycle.StateTerminated), busyNow, func(f *agent.Facts) { f.Confirmed = true }},
			decided{Effect: agent.EffectPowerOff}},
		"no record yet": {[]edit{func(f *agent.Facts) { f.Record = nil }}, decided{Look: 10 * time.Minute}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := facts(test.edits...)
			d := agent.Decide(f, start)
			got := decided{Effect: d.Effect, Signal: d.Answer.Signal, Cause: d.Answer.Cause, Look: d.RecheckAt.Sub(start)}
			if test.want.Look == 0 {
				got.Look = 0 // the end of its threshold, which every host has
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", d.Reason, diff)
			}
			if d.Reason == "" || strings.HasSuffix(d.Reason, ".") {
				t.Errorf("why: %q", d.Reason)
			}
		})
	}
}

// TestClaimedWithoutACleanUp: a job that forges the report of a clean host has it claimed before it was cleaned. It does not serve, however
// little is left of the runner.
func TestClaimedWithoutACleanUp(t *testing.T) {
	claimed := func(f *agent.Facts) {
		r := *f.Record
		r.RunID, r.Assignment = "run-2", 3
		f.Record = &r
		f.Observed.Registration, f.Observed.Allowed = false, agent.Allowed{}
	}
	for name, left := range map[string]edit{
		"its listener ends":   observed(func(s *agent.Observed) { s.Listener.Phase = agent.ListenerStopping }),
		"its listener ended":  observed(func(s *agent.Observed) { s.Listener.Phase = agent.ListenerExited }),
		"it was deregistered": observed(func(s *agent.Observed) { s.Listener = agent.Listener{} }),
	} {
		t.Run(name, func(t *testing.T) {
			d := agent.Decide(facts(state(lifecycle.StateClaimed), claimed, left), start)
			want := decided{Effect: agent.EffectNone, Signal: lifecycle.SignalRegFailed, Cause: lifecycle.CauseHost}
			if diff := cmp.Diff(want, decided{Effect: d.Effect, Signal: d.Answer.Signal, Cause: d.Answer.Cause}); diff != "" {
				t.Errorf("(-want +got)\n%s%s", diff, d.Reason)
			}
		})
	}
}
