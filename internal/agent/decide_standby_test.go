package agent_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// hot is a pooled host of assignment 2 whose runner listens, as controld knows.
func hot(f *agent.Facts) {
	inThePool(f)
	f.Record.Standby, f.Record.RunnerName = &lifecycle.Standby{Assignment: 2, RunnerID: 77}, "remuda-2-i-1"
	s := &f.Observed
	s.Removed, s.Registered, s.RegisteredAs = agent.Progress{}, agent.Progress{Phase: agent.PhaseOK, Assignment: 2, At: start}, lifecycle.RegistrationToken
	s.Registration, s.Allowed = true, agent.Allowed{Standby: true}
	s.Listener = agent.Listener{Phase: agent.ListenerListening, Assignment: 2, StartedAt: start, At: start}
}

// warming is the same host before controld knows its runner.
func warming(f *agent.Facts) {
	hot(f)
	f.Record.Standby = &lifecycle.Standby{Assignment: 2, Label: "unguessable-label"}
	f.Record.Registration = registrationToken()
}

// claimedHot is a hot host that run-2 has claimed, as its agent first sees that.
func claimedHot(f *agent.Facts) {
	hot(f)
	f.Record.State, f.Record.RunID, f.Record.PooledAt, f.Record.Assignment = lifecycle.StateClaimed, "run-2", time.Time{}, 3
}

// claimedWarming is a host that run-2 has claimed while it registered ahead of need: it goes on to do so.
func claimedWarming(f *agent.Facts) {
	warming(f)
	f.Record.State, f.Record.RunID, f.Record.PooledAt, f.Record.Assignment = lifecycle.StateClaimed, "run-2", time.Time{}, 3
}

// discarding is a host that run-2 has claimed, and that has to register for it: what it registered ahead of need cannot be used.
func discarding(f *agent.Facts) {
	claimedHot(f)
	f.Record.Standby, f.Record.RunnerName = &lifecycle.Standby{Assignment: 2, Discarded: true}, "remuda-3-i-1"
	f.Record.Registration = registrationToken()
}

func registrationToken() *lifecycle.Registration {
	return &lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: "t", ExpiresAt: start.Add(time.Hour)}
}

// noRunner: nothing of a runner is on the host.
func noRunner(f *agent.Facts) {
	f.Observed.Registered, f.Observed.Registration, f.Observed.Listener = agent.Progress{}, false, agent.Listener{}
}

// configured2 is how far the configuration for assignment 2 has come.
func configured2(phase agent.Phase, cause lifecycle.Cause) edit {
	return func(f *agent.Facts) {
		noRunner(f)
		f.Observed.Registered = agent.Progress{Phase: phase, Assignment: 2, At: start, Attempt: 1, Cause: cause}
	}
}

func listener2(phase agent.ListenerPhase, code int) edit {
	return observed(func(s *agent.Observed) {
		s.Listener.Phase, s.Listener.Code = phase, code
		s.Listener.StartedAt = start.Add(-time.Minute)
	})
}

func cleaned(phase agent.Phase, assignment int64) edit {
	return observed(func(s *agent.Observed) {
		s.Cleaned = agent.Progress{Phase: phase, Assignment: assignment, Cause: lifecycle.CauseHost, Detail: "why"}
		if phase == agent.PhaseNone {
			s.Cleaned = agent.Progress{}
		}
	})
}

// hookSet: the hook lets the jobs of run-2 start.
func hookSet(f *agent.Facts) {
	f.Observed.Allowed = agent.Allowed{RunID: "run-2", Repository: "acme/app"}
}

func TestDecideInStandby(t *testing.T) {
	const (
		regOK, regFailed = lifecycle.SignalRegOK, lifecycle.SignalRegFailed
		remOK            = lifecycle.SignalRemoveRegOK
		github, byHost   = lifecycle.CauseGitHub, lifecycle.CauseHost
	)
	busyNow := observed(func(s *agent.Observed) { s.Busy = true })
	refusedOne := observed(func(s *agent.Observed) { s.Refused = "9" })
	notPrepared := observed(func(s *agent.Observed) { s.Prepared = agent.Progress{} })
	noToken := func(f *agent.Facts) { f.Record.Registration = nil }
	running := func(f *agent.Facts) { f.Record.State = lifecycle.StateRunning }
	tests := map[string]struct {
		edits []edit
		want  decided
	}{
		"warming: hook first":          {[]edit{warming, noRunner, disallowed}, decided{Effect: agent.EffectAllow, Signal: remOK}},
		"warming: then registration":   {[]edit{warming, noRunner}, decided{Effect: agent.EffectRegister, Signal: remOK}},
		"warming: no token":            {[]edit{warming, noRunner, noToken}, decided{Signal: remOK}},
		"warming: token expired":       {[]edit{warming, noRunner, func(f *agent.Facts) { f.Record.Registration.ExpiresAt = start }}, decided{Signal: regFailed, Cause: github}},
		"warming: configuring":         {[]edit{warming, configured2(agent.PhaseRunning, "")}, decided{Signal: remOK}},
		"warming: failed by the host":  {[]edit{warming, configured2(agent.PhaseFailed, byHost)}, decided{Signal: regFailed, Cause: byHost}},
		"warming: failed by GitHub":    {[]edit{warming, configured2(agent.PhaseFailed, github)}, decided{Signal: regFailed, Cause: github, Look: 5 * time.Second}},
		"warming: configured":          {[]edit{warming, listener2(agent.ListenerNone, 0)}, decided{Effect: agent.EffectListen, Signal: remOK}},
		"warming: connecting":          {[]edit{warming, observed(func(s *agent.Observed) { s.Listener.Phase = agent.ListenerStarting })}, decided{Signal: remOK, Look: time.Minute}},
		"warming: does not connect":    {[]edit{warming, listener2(agent.ListenerStarting, 0)}, decided{Signal: regFailed, Cause: github}},
		"warming: listens":             {[]edit{warming}, decided{Signal: regOK}},
		"warming: cleaned first":       {[]edit{warming, noRunner, disallowed, cleaned(agent.PhaseNone, 0)}, decided{Effect: agent.EffectClean}},
		"warming: being cleaned":       {[]edit{warming, noRunner, disallowed, cleaned(agent.PhaseRunning, 2)}, decided{}},
		"warming: script first":        {[]edit{warming, noRunner, notPrepared}, decided{Effect: agent.EffectPrepare, Signal: remOK}},
		"warming: a runner is left":    {[]edit{warming, observed(func(s *agent.Observed) { s.Registered.Assignment = 1 })}, decided{Signal: regFailed, Cause: byHost}},
		"warming: interrupted":         {[]edit{warming, noRunner, interruptedIn(time.Minute)}, decided{Signal: regFailed, Cause: lifecycle.CauseAWS}},
		"hot":                          {[]edit{hot}, decided{Signal: regOK}},
		"hot: a job waits":             {[]edit{hot, busyNow}, decided{Signal: regOK}},
		"hot: a job, and the hook":     {[]edit{hot, busyNow, disallowed}, decided{Effect: agent.EffectAllow, Signal: regOK}},
		"hot: refused a job":           {[]edit{hot, refusedOne}, decided{Signal: regFailed, Cause: byHost}},
		"hot: refuses a job":           {[]edit{hot, refusedOne, busyNow}, decided{Signal: regFailed, Cause: byHost}},
		"hot: refused one before":      {[]edit{hot, func(f *agent.Facts) { f.Memory.Refused = "9" }}, decided{Signal: regFailed, Cause: byHost}},
		"hot: interrupted":             {[]edit{hot, interruptedIn(time.Minute)}, decided{Effect: agent.EffectStop, Signal: regFailed, Cause: lifecycle.CauseAWS}},
		"hot: after a reboot":          {[]edit{hot, listener2(agent.ListenerNone, 0)}, decided{Effect: agent.EffectListen, Signal: remOK}},
		"hot: after a reboot, script":  {[]edit{hot, listener2(agent.ListenerNone, 0), notPrepared}, decided{Effect: agent.EffectPrepare, Signal: remOK}},
		"hot: exit 2 waits":            {[]edit{hot, listener2(agent.ListenerExited, 2)}, decided{Signal: remOK, Look: time.Second}},
		"hot: exit 2 is tried again":   {[]edit{hot, listener2(agent.ListenerExited, 2), longAgo}, decided{Effect: agent.EffectListen, Signal: remOK}},
		"hot: exit 1 is permanent":     {[]edit{hot, listener2(agent.ListenerExited, 1)}, decided{Signal: regFailed, Cause: byHost}},
		"hot: version refused":         {[]edit{hot, listener2(agent.ListenerExited, 7)}, decided{Signal: regFailed, Cause: lifecycle.CauseVersion}},
		"hot: never registered again":  {[]edit{hot, noRunner, func(f *agent.Facts) { f.Record.Registration = registrationToken() }}, decided{Signal: regFailed, Cause: byHost}},
		"hot: registration is gone":    {[]edit{hot, configured2(agent.PhaseFailed, byHost)}, decided{Signal: regFailed, Cause: byHost}},
		"hot: result of clean-up lost": {[]edit{hot, cleaned(agent.PhaseNone, 0)}, decided{Signal: regOK}},

		"claimed hot: the hook":             {[]edit{claimedHot}, decided{Effect: agent.EffectAllow, Signal: ""}},
		"claimed hot: a job waits for it":   {[]edit{claimedHot, busyNow}, decided{Effect: agent.EffectAllow, Signal: regOK}},
		"claimed hot: listens":              {[]edit{claimedHot, hookSet}, decided{Signal: regOK}},
		"claimed hot: a job runs":           {[]edit{claimedHot, hookSet, busyNow}, decided{Signal: regOK}},
		"claimed hot: listener restarts":    {[]edit{claimedHot, hookSet, listener2(agent.ListenerExited, 2)}, decided{Look: time.Second}},
		"claimed hot: listener is started":  {[]edit{claimedHot, hookSet, listener2(agent.ListenerNone, 0)}, decided{Effect: agent.EffectListen}},
		"claimed hot: listener lost":        {[]edit{claimedHot, hookSet, listener2(agent.ListenerExited, 1)}, decided{Signal: regFailed, Cause: byHost}},
		"claimed hot: registration deleted": {[]edit{claimedHot, hookSet, listener2(agent.ListenerExited, 0), observed(func(s *agent.Observed) { s.Listener.Unconfigured = true })}, decided{Signal: regFailed, Cause: github}},
		"claimed hot: no second config.sh": {[]edit{claimedHot, hookSet, noRunner, func(f *agent.Facts) { f.Record.Registration = registrationToken() }},
			decided{Signal: regFailed, Cause: byHost}},
		"claimed hot: no retry of a config.sh": {[]edit{claimedHot, hookSet, configured2(agent.PhaseFailed, github), func(f *agent.Facts) { f.Record.Registration = registrationToken() }},
			decided{Signal: regFailed, Cause: github}},
		"claimed hot: another runner": {[]edit{claimedHot, observed(func(s *agent.Observed) { s.Listener.Assignment = 3 })}, decided{Signal: regFailed, Cause: byHost}},
		"claimed hot: interrupted":    {[]edit{claimedHot, interruptedIn(time.Minute)}, decided{Effect: agent.EffectStop, Signal: regFailed, Cause: lifecycle.CauseAWS}},
		"running hot":                 {[]edit{claimedHot, running, hookSet}, decided{Signal: regOK}},
		"running hot: a job":          {[]edit{claimedHot, running, hookSet, busyNow}, decided{Signal: regOK}},
		"running hot: restarts":       {[]edit{claimedHot, running, hookSet, listener2(agent.ListenerExited, 2)}, decided{Signal: regOK, Look: time.Second}},
		"running hot: lost":           {[]edit{claimedHot, running, hookSet, noRunner}, decided{Signal: regFailed, Cause: byHost}},

		"claimed warming: the hook":            {[]edit{claimedWarming, noRunner}, decided{Effect: agent.EffectAllow}},
		"claimed warming: registration":        {[]edit{claimedWarming, noRunner, hookSet}, decided{Effect: agent.EffectRegister}},
		"claimed warming: config.sh runs":      {[]edit{claimedWarming, configured2(agent.PhaseRunning, ""), hookSet}, decided{}},
		"claimed warming: config.sh failed":    {[]edit{claimedWarming, configured2(agent.PhaseFailed, byHost), hookSet}, decided{Signal: regFailed, Cause: byHost}},
		"claimed warming: configured":          {[]edit{claimedWarming, listener2(agent.ListenerNone, 0), hookSet}, decided{Effect: agent.EffectListen}},
		"claimed warming: listens":             {[]edit{claimedWarming, hookSet}, decided{Signal: regOK}},
		"claimed warming: a job of its run":    {[]edit{claimedWarming, busyNow}, decided{Effect: agent.EffectAllow, Signal: regOK}},
		"claimed warming: another runner":      {[]edit{claimedWarming, observed(func(s *agent.Observed) { s.Registered.Assignment = 1 })}, decided{Signal: regFailed, Cause: byHost}},
		"claimed warming: interrupted":         {[]edit{claimedWarming, interruptedIn(time.Minute)}, decided{Effect: agent.EffectStop, Signal: regFailed, Cause: lifecycle.CauseAWS}},
		"discarding: a job may come first":     {[]edit{discarding, func(f *agent.Facts) { f.Record.UpdatedAt = start.Add(-time.Second) }}, decided{Look: 4 * time.Second}},
		"discarding: no job came":              {[]edit{discarding, func(f *agent.Facts) { f.Record.UpdatedAt = start.Add(-5 * time.Second) }}, decided{Effect: agent.EffectStop}},
		"discarding: the listener stops":       {[]edit{discarding}, decided{Effect: agent.EffectStop}},
		"discarding: it is stopping":           {[]edit{discarding, observed(func(s *agent.Observed) { s.Listener.Phase = agent.ListenerStopping })}, decided{Look: 45 * time.Second}},
		"discarding: config.sh runs":           {[]edit{discarding, configured2(agent.PhaseRunning, "")}, decided{}},
		"discarding: configured":               {[]edit{discarding, listener2(agent.ListenerNone, 0)}, decided{Effect: agent.EffectClean}},
		"discarding: config.sh failed":         {[]edit{discarding, configured2(agent.PhaseFailed, github)}, decided{Effect: agent.EffectClean}},
		"discarding: nothing had begun":        {[]edit{discarding, noRunner}, decided{Effect: agent.EffectAllow}},
		"discarding: listener gone":            {[]edit{discarding, listener2(agent.ListenerExited, 0)}, decided{Effect: agent.EffectClean}},
		"discarding: being cleaned":            {[]edit{discarding, listener2(agent.ListenerExited, 0), cleaned(agent.PhaseRunning, 3)}, decided{}},
		"discarding: clean-up cut short":       {[]edit{discarding, noRunner, cleaned(agent.PhaseNone, 0)}, decided{Effect: agent.EffectClean}},
		"discarding: not clean":                {[]edit{discarding, listener2(agent.ListenerExited, 0), cleaned(agent.PhaseFailed, 3)}, decided{Signal: regFailed, Cause: byHost}},
		"discarding: clean, the hook":          {[]edit{discarding, noRunner, cleaned(agent.PhaseOK, 3)}, decided{Effect: agent.EffectAllow}},
		"discarding: clean, then registration": {[]edit{discarding, noRunner, cleaned(agent.PhaseOK, 3), hookSet}, decided{Effect: agent.EffectRegister}},
		"discarding: clean, and a runner":      {[]edit{discarding, cleaned(agent.PhaseOK, 3), listener2(agent.ListenerExited, 0)}, decided{Signal: regFailed, Cause: byHost}},
		"discarding: a job of its run":         {[]edit{discarding, busyNow}, decided{Effect: agent.EffectAllow}},
		"discarding: that job runs":            {[]edit{discarding, busyNow, hookSet}, decided{}},
		"discarding: interrupted":              {[]edit{discarding, interruptedIn(time.Minute)}, decided{Effect: agent.EffectStop, Signal: regFailed, Cause: lifecycle.CauseAWS}},
		"claimed, and no record of a standby": {[]edit{discarding, func(f *agent.Facts) { f.Record.Standby = nil }},
			decided{Signal: regFailed, Cause: byHost}},

		"left, configuring":          {[]edit{warming, configured2(agent.PhaseRunning, ""), leftStandby}, decided{}},
		"left, configured":           {[]edit{hot, listener2(agent.ListenerNone, 0), leftStandby}, decided{Effect: agent.EffectAllow}},
		"left, not listening":        {[]edit{hot, listener2(agent.ListenerNone, 0), leftStandby, disallowed}, decided{Effect: agent.EffectDeregister}},
		"left, config.sh failed":     {[]edit{warming, configured2(agent.PhaseFailed, github), leftStandby}, decided{Effect: agent.EffectAllow}},
		"left, nothing had begun":    {[]edit{warming, noRunner, leftStandby}, decided{Effect: agent.EffectAllow}},
		"left, nothing to remove":    {[]edit{warming, noRunner, disallowed, leftStandby}, decided{Effect: agent.EffectClean}},
		"left while it listens":      {[]edit{hot, leftStandby}, decided{Effect: agent.EffectDeregister}},
		"left while a job waits":     {[]edit{hot, leftStandby, busyNow}, decided{}},
		"left, then the hook":        {[]edit{hot, leftStandby, unregistered3}, decided{Effect: agent.EffectAllow}},
		"left, the listener stops":   {[]edit{hot, leftStandby, unregistered3, disallowed}, decided{Effect: agent.EffectStop}},
		"left, the listener is gone": {[]edit{hot, leftStandby, unregistered3, disallowed, listener2(agent.ListenerExited, 0)}, decided{Effect: agent.EffectClean}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := agent.Decide(facts(test.edits...), start)
			got := decided{Effect: d.Effect, Signal: d.Answer.Signal, Cause: d.Answer.Cause, Look: d.RecheckAt.Sub(start)}
			if test.want.Look == 0 {
				got.Look = 0
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", d.Reason, diff)
			}
		})
	}
}

// leftStandby is the record after its registration ahead of need was given up.
func leftStandby(f *agent.Facts) {
	f.Record.PooledAt, f.Record.Standby, f.Record.Assignment = time.Time{}, nil, 3
	f.Record.Registration = removeToken("r")
}

func unregistered3(f *agent.Facts) {
	f.Observed.Registration = false
	f.Observed.Removed = agent.Progress{Phase: agent.PhaseOK, Assignment: 3}
}

func TestStatusInStandby(t *testing.T) {
	tests := map[string]struct {
		edits []edit
		want  string
	}{
		"registering": {[]edit{warming, configured2(agent.PhaseRunning, "")}, "warming: the runner is being configured, 4m left"},
		"hot":         {[]edit{hot}, "hot: listening, waiting for a run, 4m left"},
		"a job waits": {[]edit{hot, observed(func(s *agent.Observed) { s.Busy = true })}, "hot: a job has come and waits for the claim of its run, 6h left"},
		"lost":        {[]edit{hot, listener2(agent.ListenerExited, 1)}, "hot: the runner is lost, 4m left"},
		"claimed":     {[]edit{claimedHot}, "claimed: run run-2 of acme/app, jobs of run run-2 may start, 4m left"},
		"discarded":   {[]edit{discarding}, "claimed: run run-2 of acme/app, claimed, and the runner that the host waited with cannot be used, 4m left"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := agent.Status(facts(append(test.edits, until(4*time.Minute+time.Second))...), time.Time{}, start)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
