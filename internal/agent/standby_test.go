package agent_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// standbyLife is what becomes of the registration ahead of need in a life.
type standbyLife string

const (
	claimedListening   standbyLife = "claimed while it listens, and its job comes before the agent knows that"
	claimedAtOnce      standbyLife = "claimed before anything is begun"
	claimedConfiguring standbyLife = "claimed while config.sh runs"
	claimedConfigured  standbyLife = "claimed before the listener listens"
	claimedUnseen      standbyLife = "claimed before controld knows that it listens"
	lost               standbyLife = "claimed while it listens, and cannot be used"
	lostConfiguring    standbyLife = "claimed while config.sh runs, and cannot be used"
	left               standbyLife = "given up while it listens"
	leftConfiguring    standbyLife = "given up while config.sh runs"
)

var standbyLives = []standbyLife{
	claimedListening, claimedAtOnce, claimedConfiguring, claimedConfigured, claimedUnseen, lost, lostConfiguring, left, leftConfiguring,
}

const standbyLabel = "unguessable-label"

// What controld does about a standby.

// poolInStandby pools a host that is to register ahead of need.
func (w *world) poolInStandby() {
	w.pool()
	w.record.Standby = &lifecycle.Standby{Assignment: w.record.Assignment, Label: standbyLabel}
	w.record.RunnerName = lifecycle.RunnerName(w.record.Assignment, w.record.InstanceID)
	w.record.Registration = &lifecycle.Registration{Kind: lifecycle.RegistrationToken, URL: "http://github/acme/app", Secret: "standby-token"}
}

// becomesHot notes the runner of a host that listens.
func (w *world) becomesHot() {
	w.change(func(r *lifecycle.Record) {
		r.Standby = &lifecycle.Standby{Assignment: r.Assignment, Label: standbyLabel, RunnerID: 77}
		r.Registration = nil
	})
}

// claimInStandby claims a pooled host, which keeps its runner.
func (w *world) claimInStandby(run string) {
	name := w.record.NextRunnerName()
	w.claim(run)
	w.record.RunnerName = name
}

// reregisters has a claimed host register for its run.
func (w *world) reregisters() {
	w.change(func(r *lifecycle.Record) {
		r.Standby = &lifecycle.Standby{Assignment: r.Standby.Assignment, Discarded: true}
		r.Assignment++
		r.RunnerName = lifecycle.RunnerName(r.Assignment, r.InstanceID)
	})
}

func (w *world) leavesStandby(token string) {
	w.release(token)
	w.record.PooledAt = time.Time{}
}

// runsByStandby is the write that makes a host ready.
func (w *world) runsByStandby() {
	w.running()
	if s := w.record.Standby; s != nil && !s.Discarded {
		w.record.Standby = &lifecycle.Standby{Assignment: s.Assignment, RunnerID: 77}
		return
	}
	w.record.Standby = nil
}

// advanceStandby takes the steps of a life with a standby between its two runs. It reports false where advance decides.
func (w *world) advanceStandby() bool {
	r, o := w.record, w.observed
	warming := r.Pooled() && r.Standby != nil && r.Standby.RunnerID == 0
	claims := map[standbyLife]bool{
		claimedConfiguring: o.Registered.Phase == agent.PhaseRunning,
		claimedConfigured:  o.Listener.Phase == agent.ListenerStarting,
		claimedUnseen:      o.Listener.Phase == agent.ListenerListening,
	}
	w.hold = w.hold && w.report.Assignment != r.Assignment // until the agent has seen the news
	switch {
	case w.standby == "":
		return false
	case r.Releasing() && r.Assignment == 2 && w.answered(lifecycle.SignalRemoveRegOK):
		if w.poolInStandby(); w.standby == claimedAtOnce {
			w.claimInStandby("run-2")
		}
	case warming && claims[w.standby]:
		w.claimInStandby("run-2")
		w.hold = w.standby != claimedUnseen
	case warming && w.standby == leftConfiguring && o.Registered.Phase == agent.PhaseRunning:
		w.leavesStandby("remove-standby")
		w.hold = true
	case r.Hot() && w.standby == left:
		w.leavesStandby("remove-standby")
	case warming && w.answered(lifecycle.SignalRegOK):
		w.becomesHot()
	case warming && w.standby == lostConfiguring && o.Registered.Phase == agent.PhaseRunning:
		w.claimInStandby("run-2")
		w.reregisters()
		w.hold = true
	case r.Hot() && w.standby == lost:
		w.claimInStandby("run-2")
		w.reregisters()
	case r.Hot():
		w.claimInStandby("run-2")
		w.jobComes("run-2")
	case r.State == lifecycle.StateClaimed && (r.Standby.RunnerID != 0 || w.answered(lifecycle.SignalRegOK)):
		w.runsByStandby()
	case r.State == lifecycle.StateRunning && o.Busy && w.inHook == "" && w.now().Sub(w.inHookAt) > 5*time.Second:
		w.observed.Busy = false
	default:
		return r.State == lifecycle.StateClaimed && r.Assignment > 2 || warming
	}
	return true
}

// jobComes is a job that GitHub gives to the listener. It waits in the hook.
func (w *world) jobComes(run string) {
	w.observed.Busy, w.inHook, w.inHookAt = true, run, w.now()
}

// judge is the hook with the job that waits in it.
func (w *world) judge() {
	switch s := &w.observed; {
	case w.inHook == "":
	case s.Allowed.RunID == w.inHook:
		s.Jobs, w.ran, w.inHook = s.Jobs+1, append(w.ran, w.inHook), ""
	case s.Allowed.Standby && w.now().Sub(w.inHookAt) < 5*time.Second:
	default:
		s.Refused, s.Busy, w.inHook = w.inHook, false, ""
	}
}

func worldInStandby(l standbyLife) *world {
	w := newWorld()
	w.standby = l
	return w
}

func TestLivesInStandby(t *testing.T) {
	hot := []string{"allow standby", "register standby", "listen"}
	fresh := []string{"allow run-2", "register run-2", "listen"}
	between := map[standbyLife][]string{
		claimedListening:   slices.Concat(hot, []string{"allow run-2"}),
		claimedAtOnce:      {"allow run-2", "register standby", "listen"},
		claimedConfiguring: slices.Concat(hot[:2], []string{"allow run-2", "listen"}),
		claimedConfigured:  slices.Concat(hot, []string{"allow run-2"}),
		claimedUnseen:      slices.Concat(hot, []string{"allow run-2"}),
		lost:               slices.Concat(hot, []string{"stop", "clean"}, fresh),
		lostConfiguring:    slices.Concat(hot[:2], []string{"clean"}, fresh),
		left:               hot,
		leftConfiguring:    hot[:2],
	}
	ends := map[standbyLife][]string{
		left:            {"deregister remove-standby", "allow ", "stop", "clean", "power off"},
		leftConfiguring: {"allow ", "deregister remove-standby", "clean", "power off"},
	}
	for _, l := range standbyLives {
		t.Run(string(l), func(t *testing.T) {
			w := worldInStandby(l)
			live(t, w)
			want := []string{"prepare", "allow run-1", "register run-1", "listen", "deregister remove-run-1", "allow ", "stop", "clean"}
			want = append(want, between[l]...)
			if end := ends[l]; end != nil {
				want = append(want, end...)
			} else {
				want = append(want, "deregister remove-run-2", "allow ", "stop", "clean", "power off")
			}
			if diff := cmp.Diff(want, w.effects); diff != "" {
				t.Errorf("effects (-want +got):\n%s", diff)
			}
			if l == claimedListening && !slices.Equal(w.ran, []string{"run-2"}) {
				t.Errorf("jobs of %q ran", w.ran)
			}
		})
	}
}

// A crash after any call, and a call that fails, change nothing but time: the waiting job runs, and none is refused.
func TestTroubleAtEveryCallInStandby(t *testing.T) {
	for name, trouble := range map[string]func(w *world) *int{
		"crash":   func(w *world) *int { return &w.crashAt },
		"failure": func(w *world) *int { return &w.failAt },
	} {
		for _, l := range standbyLives {
			n := live(t, worldInStandby(l))
			for k := 1; k <= n; k++ {
				w := worldInStandby(l)
				*trouble(w) = k
				live(t, w)
				if w.poweredOff != "its record is terminated: idle until its threshold" {
					t.Errorf("%s, %s at call %d: powered off because %s", l, name, k, w.poweredOff)
				}
				if l == claimedListening && !slices.Equal(w.ran, []string{"run-2"}) || w.observed.Refused != "" {
					t.Errorf("%s, %s at call %d: ran %q, refused %q", l, name, k, w.ran, w.observed.Refused)
				}
			}
		}
	}
}

// hotHost is a host that listens and waits for a run.
func hotHost(t *testing.T) (*world, *agent.Agent) {
	t.Helper()
	w := newWorld()
	resting(w)
	w.poolInStandby()
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRegOK)
	w.becomesHot()
	passes(t, w, a, 10*time.Second)
	w.effects = nil
	return w, a
}

// The runner registers under the name and the one label that its record says.
func TestRegistersAheadByItsLabel(t *testing.T) {
	w, _ := hotHost(t)
	got := w.registered
	if got.Label != standbyLabel || len(got.Labels) != 0 || got.RunnerName != "remuda-2-i-1" || got.Number != 2 || got.RunID != "" {
		t.Errorf("registered as %+v", got)
	}
}

// Its label is as secret as a token.
func TestLabelOfAStandbyIsASecret(t *testing.T) {
	w := newWorld()
	resting(w)
	w.poolInStandby()
	w.fail["register"] = agent.Progress{Cause: lifecycle.CauseHost, Detail: "cannot use label " + standbyLabel}
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRegFailed)
	if d := w.report.Detail; !strings.Contains(d, "cannot use label") || strings.Contains(d, standbyLabel) {
		t.Errorf("detail %q", d)
	}
	if s := w.disk.memory.Record.Standby; s == nil || s.Assignment != 2 || s.Label != "" {
		t.Errorf("the memory has %+v", s)
	}
	if w.record.Standby.Label != standbyLabel {
		t.Error("the record has lost its label")
	}
}

// An agent that is restarted while it cannot read its record knows which runner is that of its record.
func TestRestartWithoutTheRecordInStandby(t *testing.T) {
	for name, test := range map[string]struct {
		becomes func(w *world)
		runner  int64
	}{
		"claimed":   {func(w *world) { w.claimInStandby("run-2") }, 2},
		"running":   {func(w *world) { w.claimInStandby("run-2"); w.runsByStandby() }, 2},
		"discarded": {func(w *world) { w.claimInStandby("run-2"); w.reregisters() }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := hotHost(t)
			test.becomes(w)
			settle(t, w, a, lifecycle.SignalRegOK)
			w.effects, w.unreadable = nil, true
			passes(t, w, newAgent(t, w), time.Minute)
			if !w.answered(lifecycle.SignalRegOK) || len(w.effects) > 0 || w.observed.Registered.Assignment != test.runner {
				t.Errorf("report %+v, effects %q, runner of assignment %d", w.report, w.effects, w.observed.Registered.Assignment)
			}
		})
	}
}

// A job that comes before the agent has read the claim makes it read at once.
func TestJobBeforeTheClaimIsRead(t *testing.T) {
	inBubble(t, func(w *world) { resting(w); w.poolInStandby() }, func(b *bubble) {
		b.after(5 * time.Second)
		b.becomesHot()
		b.after(5 * time.Second)
		b.stale, b.staleAlways = true, true // a read that may be old is
		b.claimInStandby("run-2")
		b.jobComes("run-2")
		b.changed <- struct{}{}
		synctest.Wait()
		if b.observed.Allowed.RunID != "run-2" || !b.report.Busy || b.report.Signal != lifecycle.SignalRegOK || b.report.Assignment != 3 {
			t.Errorf("allowed %s, report %+v", b.observed.Allowed, b.report)
		}
		b.stale = false
		b.runsByStandby()
		b.after(time.Minute)
		if !slices.Equal(b.ran, []string{"run-2"}) || b.observed.Refused != "" {
			t.Errorf("ran %q, refused %q", b.ran, b.observed.Refused)
		}
	})
}

// A store that is away for a moment more costs the job seconds, not its life. The record is read twice a second although a job is there,
// and although the store has not answered for a while.
func TestJobWaitsForTheStore(t *testing.T) {
	w, a := hotHost(t)
	w.claimInStandby("run-2")
	w.unreadable = true
	passes(t, w, a, 2*time.Minute)
	w.jobComes("run-2")
	before := w.reads
	passes(t, w, a, 3*time.Second)
	if n := w.reads - before; n < 5 || n > 9 {
		t.Errorf("%d reads in 3 s", n)
	}
	w.unreadable = false
	passes(t, w, a, 2*time.Second)
	if !slices.Equal(w.ran, []string{"run-2"}) {
		t.Errorf("ran %q, refused %q", w.ran, w.observed.Refused)
	}
}

// A job that no claim follows is refused, and the host is not used again.
func TestForeignJobOnAHotHost(t *testing.T) {
	w, a := hotHost(t)
	w.jobComes("run-666")
	passes(t, w, a, 4*time.Second)
	if !w.report.Busy || w.report.Signal != lifecycle.SignalRegOK {
		t.Errorf("while it waits: report %+v", w.report)
	}
	settle(t, w, a, lifecycle.SignalRegFailed)
	if len(w.ran) > 0 || w.observed.Refused != "run-666" || w.report.Cause != lifecycle.CauseHost || len(w.effects) > 0 {
		t.Errorf("ran %q, refused %q, report %+v, effects %q", w.ran, w.observed.Refused, w.report, w.effects)
	}
	w.leavesStandby("remove-token")
	settle(t, w, a, lifecycle.SignalRemoveRegFailed)
	if diff := cmp.Diff([]string{"deregister remove-token", "allow ", "stop"}, w.effects); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

// A job of another run that comes with the claim is refused at once, as on every host of a run.
func TestForeignJobOnAClaimedHotHost(t *testing.T) {
	w, a := hotHost(t)
	w.jobComes("run-666")
	w.claimInStandby("run-2")
	passes(t, w, a, 2*time.Second)
	if w.observed.Refused != "run-666" || len(w.ran) > 0 {
		t.Errorf("refused %q, ran %q", w.observed.Refused, w.ran)
	}
}

// A runner that ends goes on under the same registration, in whatever phase, also after a reboot.
func TestListenerOfAStandbyEnds(t *testing.T) {
	reboots := func(w *world) {
		w.observed.BootID, w.observed.Listener, w.observed.Prepared = "boot-2", agent.Listener{}, agent.Progress{}
	}
	dies := func(w *world) {
		w.observed.Listener.Phase, w.observed.Listener.Code, w.observed.Listener.At = agent.ListenerExited, agent.CodeUnknown, w.now()
	}
	pooled := func(*world) {}
	claimed := func(w *world) {
		w.claimInStandby("run-2")
		w.observed.Allowed = agent.Allowed{RunID: "run-2", Repository: "acme/app"}
	}
	running := func(w *world) { claimed(w); w.runsByStandby() }
	for name, test := range map[string]struct {
		phase, ends func(w *world)
		want        []string
	}{
		"hot, dies":        {pooled, dies, []string{"listen"}},
		"hot, reboots":     {pooled, reboots, []string{"prepare", "listen"}},
		"claimed, dies":    {claimed, dies, []string{"listen"}},
		"claimed, reboots": {claimed, reboots, []string{"prepare", "listen"}},
		"running, dies":    {running, dies, []string{"listen"}},
		"running, reboots": {running, reboots, []string{"prepare", "listen"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := hotHost(t)
			test.phase(w)
			test.ends(w)
			w.report = lifecycle.Report{}
			a := newAgent(t, w)
			steps(t, w, a, func() bool { return w.observed.Listener.Phase == agent.ListenerListening })
			settle(t, w, a, lifecycle.SignalRegOK)
			if diff := cmp.Diff(test.want, w.effects); diff != "" {
				t.Errorf("effects (-want +got):\n%s", diff)
			}
			if w.observed.Listener.Assignment != 2 {
				t.Errorf("it listens as the runner of assignment %d", w.observed.Listener.Assignment)
			}
		})
	}
}

// A host in standby that cannot begin what it is to do says so as one that registers.
func TestStuckInStandby(t *testing.T) {
	w := newWorld()
	resting(w)
	w.poolInStandby()
	w.effectErr = errOnce
	a := newAgent(t, w)
	settle(t, w, a, lifecycle.SignalRegFailed)
	if w.report.Cause != lifecycle.CauseHost || !strings.Contains(w.report.Detail, "no space left") {
		t.Errorf("report %+v", w.report)
	}
}

// Machine and runner are taken back while the host waits: it takes no job any more, and says why.
func TestInterruptionInStandby(t *testing.T) {
	w, a := hotHost(t)
	w.observed.InterruptionAt = w.now().Add(2 * time.Minute)
	settle(t, w, a, lifecycle.SignalRegFailed)
	passes(t, w, a, 5*time.Second)
	if w.report.Cause != lifecycle.CauseAWS || !slices.Equal(w.effects, []string{"stop"}) {
		t.Errorf("report %+v, effects %q", w.report, w.effects)
	}
}

// A pooled host whose runner listens reads its record seldom, since its claim does not wait for that. A job that comes has it
// read at once.
func TestAHotHostReadsSeldom(t *testing.T) {
	w, a := hotHost(t)
	before := w.reads
	passes(t, w, a, time.Minute)
	if n := w.reads - before; n < 27 || n > 33 {
		t.Errorf("%d reads in a minute, want about 30", n)
	}
	w.claimInStandby("run-2")
	w.jobComes("run-2")
	began := w.now()
	steps(t, w, a, func() bool { return slices.Contains(w.ran, "run-2") })
	if took := w.now().Sub(began); took > 100*time.Millisecond {
		t.Errorf("the job was let in after %s", took)
	}
}
