package agent_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// until moves the threshold to d from start.
func until(d time.Duration) edit {
	return func(f *agent.Facts) { f.Record.Threshold = start.Add(d) }
}

// job is a observed in which the nth job runs.
func job(name string, n int) edit {
	return observed(func(s *agent.Observed) { s.Busy, s.Job, s.Jobs = true, name, n })
}

func inThePool(f *agent.Facts) {
	pooled(f)
	deregistered(f)
	f.Observed.Cleaned = agent.Progress{Phase: agent.PhaseOK, Assignment: 2}
}

func interruptedIn(d time.Duration) edit {
	return observed(func(s *agent.Observed) { s.InterruptionAt = start.Add(d) })
}

func heldFor(d time.Duration) edit {
	return func(f *agent.Facts) { f.Record.Hold = start.Add(d) }
}

func TestStatus(t *testing.T) {
	noRecord := func(f *agent.Facts) { f.Record = nil }
	terminated := func(f *agent.Facts) {
		f.Record.State, f.Record.Reason = lifecycle.StateTerminated, "idle until its threshold"
	}
	scriptFailed := func(f *agent.Facts) {
		state(lifecycle.StateCreated)(f)
		f.Observed.Prepared.Phase, f.Observed.Listener = agent.PhaseFailed, agent.Listener{}
		f.Memory.ScriptFailedAt = start.Add(-12 * time.Second)
	}
	tests := map[string]struct {
		edits []edit
		away  time.Duration // of the store
		want  string
	}{
		"no record yet": {[]edit{noRecord}, 0, "created: waiting for a record, 10m left"},
		"created": {[]edit{state(lifecycle.StateCreated), until(9*time.Minute + 59*time.Second),
			observed(func(s *agent.Observed) { s.Listener.Phase = agent.ListenerStarting })}, 0,
			"created: run run-1 of acme/app, the listener is connecting, 9m left"},
		"running":        {[]edit{until(5*time.Hour + 42*time.Minute + 59*time.Second)}, 0, "running: run run-1 of acme/app, listening for jobs, 5h 42m left"},
		"a job":          {[]edit{job("build", 2), until(6 * time.Hour)}, 0, `running: run run-1 of acme/app, job "build" (2nd job), 6h left`},
		"11th job":       {[]edit{job("build", 11), until(6 * time.Hour)}, 0, `running: run run-1 of acme/app, job "build" (11th job), 6h left`},
		"a nameless job": {[]edit{job("", 0), until(6 * time.Hour)}, 0, "running: run run-1 of acme/app, a job, 6h left"},
		"job-scoped":     {[]edit{jobScoped, job("build", 1), until(6 * time.Hour)}, 0, `running: one job of acme, job "build" (1st job), 6h left`},
		"draining":       {[]edit{released, disallowed, job("test", 1), until(6 * time.Hour)}, 0, `releasing: waiting for the job "test" to finish, 6h left`},
		"releasing":      {[]edit{released, stopped, until(119 * time.Second)}, 0, "releasing: released, and no job runs, 2m left"},
		"pooled":         {[]edit{inThePool, until(4*time.Minute + 30*time.Second)}, 0, "idle: clean, in the pool, 4m left"},
		"resting":        {[]edit{inThePool, until(time.Hour), func(f *agent.Facts) { f.Record.RestingAt = start }}, 0, "idle: clean, in the pool, resting, 1h left"},
		"pooled, over":   {[]edit{inThePool, until(-10 * time.Second)}, 0, "idle: clean, in the pool, its time is over, ends itself in 50s"},
		"threshold passed": {[]edit{inThePool, until(-time.Minute)}, 0,
			"ending: powering off: its threshold of 2026-01-01T11:59:00Z has passed by 1m0s and controld has not ended it"},
		"terminated":        {[]edit{terminated}, 0, "terminated: powering off: idle until its threshold"},
		"held":              {[]edit{inThePool, heldFor(2*time.Hour + 5*time.Minute)}, 0, "held until 14:05 UTC; idle: clean, in the pool"},
		"held for a day":    {[]edit{inThePool, heldFor(24 * time.Hour)}, 0, "held until 2026-01-02 12:00 UTC; idle: clean, in the pool"},
		"interrupted, busy": {[]edit{job("build", 1), interruptedIn(110 * time.Second)}, 0, `interrupted: EC2 takes this machine in 1m 50s; job "build" (1st job) works on`},
		"interrupted":       {[]edit{interruptedIn(61 * time.Second)}, 0, "interrupted: EC2 takes this machine in 1m 5s; its runner is being stopped"},
		"interrupted, idle": {[]edit{inThePool, interruptedIn(-time.Second)}, 0, "interrupted: EC2 takes this machine now; no job runs"},
		"rebalance": {[]edit{until(time.Hour), observed(func(s *agent.Observed) { s.RebalanceAt = start })}, 0,
			"running: run run-1 of acme/app, listening for jobs, 1h left; EC2 may take this machine"},
		"store away": {[]edit{inThePool, until(time.Hour)}, 14 * time.Second, "store unreachable since 10s; idle: clean, in the pool, 1h left"},
		"record gone": {[]edit{inThePool, func(f *agent.Facts) { f.MissingSince = start.Add(-30 * time.Second) }}, 0,
			"record gone since 30s; idle: clean, in the pool, its time is over, ends itself in 30s"},
		"blind": {[]edit{until(time.Hour), func(f *agent.Facts) { f.Blind = true }}, 0,
			"the host cannot be looked at; running: run run-1 of acme/app, a job, 6h left"},
		"script failed": {[]edit{scriptFailed}, 0, "created: run run-1 of acme/app, the pre-runner script failed, ends itself in 50s"},
		"hostile name": {[]edit{job("a\nb\x1b[31m\u202e\x00 ghs_0123456789abcdefghij", 1), until(time.Hour)}, 0,
			`running: run run-1 of acme/app, job "a b[31m [secret]" (1st job), 6h left`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var away time.Time
			if tt.away > 0 {
				away = start.Add(-tt.away)
			}
			if diff := cmp.Diff(tt.want, agent.Status(facts(tt.edits...), away, start)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// checkLine: what systemd and a terminal are shown is harmless.
func checkLine(t *testing.T, line string) {
	t.Helper()
	if n := utf8.RuneCountInString(line); n == 0 || n > 200 || !utf8.ValidString(line) {
		t.Errorf("%d characters: %q", n, line)
	}
	if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("not printable at %d: %q", i, line)
	}
}

func FuzzStatus(f *testing.F) {
	f.Add("build", "4711", "acme/shop", "why", int64(0), int64(0), true)
	f.Add("\n\x1b]0;x\a", strings.Repeat("é", 500), "\u202e", "\xff", int64(-1), int64(1)<<40, false)
	f.Fuzz(func(t *testing.T, name, run, repository, reason string, left, away int64, isBusy bool) {
		for _, e := range [][]edit{nil, {released}, {inThePool}, {state(lifecycle.StateTerminated)}, {jobScoped}} {
			facts := facts(append(e, until(time.Duration(left)), func(f *agent.Facts) {
				f.Record.RunID, f.Record.Repository, f.Record.Reason, f.Record.JobsOf = run, repository, reason, repository
				f.Observed.Job, f.Observed.Busy = name, isBusy
			})...)
			checkLine(t, agent.Status(facts, start.Add(time.Duration(away)), start))
		}
	})
}

// said runs an agent in a bubble and keeps the lines that it says, with when.
func said(t *testing.T, prepare func(w *world), test func(w *world, changed chan<- struct{}, lines *[]string)) (steps int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorldAt(time.Now)
		prepare(w)
		a, changed, lines := newAgent(t, w), make(chan struct{}, 1), []string{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = a.Run(ctx, agent.Waker{
				Changed: changed, Stepped: func(time.Time) { steps++ },
				Status: func(line string) { w.barrier(); lines = append(lines, line) },
			})
		}()
		synctest.Wait()
		test(w, changed, &lines)
		cancel()
		<-ended
	})
	return steps
}

// wait lets time pass and the agent come to rest.
func wait(w *world, d time.Duration) {
	w.barrier()
	time.Sleep(d)
	synctest.Wait()
	w.barrier()
}

func TestStatusIsSaidOnChangeOnly(t *testing.T) {
	said(t, busy, func(w *world, _ chan<- struct{}, lines *[]string) {
		wait(w, time.Hour)
		if n := len(*lines); n < 59 || n > 63 {
			t.Errorf("%d lines in an hour, want one for each minute", n)
		}
		for i, line := range *lines {
			if checkLine(t, line); i > 0 && line == (*lines)[i-1] {
				t.Errorf("said twice: %q", line)
			}
		}
	})
}

// The time that an interruption leaves is right within five seconds, and the
// agent does not read the store more often for it.
func TestStatusOfAnInterruptionIsRight(t *testing.T) {
	said(t, func(w *world) { resting(w); w.away = true; w.disk.memory = remembering(w) }, func(w *world, changed chan<- struct{}, lines *[]string) {
		wait(w, 20*time.Second)
		at := w.now().Add(2 * time.Minute)
		w.observed.InterruptionAt = at
		changed <- struct{}{}
		synctest.Wait()
		for left := 2 * time.Minute; left > 0; left -= time.Second {
			w.barrier()
			_, text, _ := strings.Cut((*lines)[len(*lines)-1], "machine in ")
			text, _, _ = strings.Cut(text, ";")
			told, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
			if off := (told - left).Abs(); err != nil || off > 5*time.Second {
				t.Fatalf("%s left, told %q: %v", left, (*lines)[len(*lines)-1], err)
			}
			wait(w, time.Second)
		}
	})
}

// A status line costs no step of a host at work, and few of others.
func TestStepsInAnHour(t *testing.T) {
	tests := map[string]struct {
		world func(w *world)
		most  int
	}{
		"busy":   {busy, 3600 + 750 + 250},
		"pooled": {func(w *world) { resting(w); w.record.Threshold = w.now().Add(2 * time.Hour) }, 7400 + 250},
		"store away": {func(w *world) {
			resting(w)
			w.away = true
			w.disk.memory = remembering(w)
			w.disk.memory.Record.Threshold = w.now().Add(2 * time.Hour)
		}, 1600},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			reads := 0
			steps := said(t, tt.world, func(w *world, _ chan<- struct{}, _ *[]string) { wait(w, time.Hour); reads = w.reads })
			t.Logf("%d steps and %d reads in an hour", steps, reads)
			if steps > tt.most {
				t.Errorf("%d steps in an hour, want at most %d", steps, tt.most)
			}
		})
	}
}
