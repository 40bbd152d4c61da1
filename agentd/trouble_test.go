package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// jobBehind starts a job of run 101 that ends when the gate opens.
func (m *machine) jobBehind() (open func()) {
	m.t.Helper()
	gate := m.path("gate")
	m.startRun("101", "${{ github.run_id }}", "while ! [ -e "+gate+" ]; do sleep 0.02; done; echo done")
	m.eventually("the job has begun", func() bool { return m.report().Busy && m.report().Jobs == 1 })
	return func() { check(m.t, os.WriteFile(gate, nil, 0o600)) }
}

// heard waits for a heartbeat that is newer than now.
func (m *machine) heard() lifecycle.Report {
	m.t.Helper()
	now := time.Now()
	m.eventually("a heartbeat", func() bool { return m.report().HeartbeatAt.After(now) })
	return m.report()
}

// An agent that is killed over and over, whatever it is doing, gets its host
// through a life.
func TestAgentKilledOverAndOver(t *testing.T) {
	racepass.CoveredBy(t, "TestAgentKilledInTheMiddleOfAJob")
	t.Parallel()
	m := newMachine(t)
	m.start()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		pause, most := 7*time.Millisecond, 400*time.Millisecond
		for {
			select {
			case <-stop:
				return
			case <-time.After(pause + 20*time.Millisecond):
			}
			if pause = pause * 13 / 10; pause > most { // and longer each time, for machines on which it takes longer to begin
				pause, most = pause%most, 2*most
			}
			_ = m.agent.Process.Kill()
			_ = m.agent.Wait()
			m.start()
		}
	}()
	m.ready("101")
	open := m.jobBehind()
	m.release()
	m.eventually("the release is acknowledged", func() bool { return m.report().Assignment == 2 })
	open()
	m.signaled(lifecycle.SignalRemoveRegOK)
	close(stop)
	<-stopped
	if j := m.finished("101"); j.Conclusion != "success" {
		t.Errorf("job: %s\n%s", j.Conclusion, j.Log)
	}
	m.noRunners()
}

func TestStoppedAgentLeavesItsRunner(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.ready("101")
	open := m.jobBehind()
	check(t, m.agent.Process.Signal(syscall.SIGTERM))
	if code := m.exited(); code != 1 {
		t.Errorf("exit code %d, want 1: after 0 its init would power the host off", code)
	}
	open()
	if j := m.finished("101"); j.Conclusion != "success" {
		t.Errorf("job: %s\n%s", j.Conclusion, j.Log)
	}
}

func TestDamagedStateInTheMiddleOfAJob(t *testing.T) {
	racepass.CoveredBy(t, "TestAgentKilledInTheMiddleOfAJob")
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.ready("101")
	open := m.jobBehind()
	m.kill()
	state := m.path("host/state/agent.json")
	check(t, os.WriteFile(state, []byte(`{"record": {`), 0o600))
	for _, name := range []string{"register", "listen"} { // and all that is known of the runner
		check(t, os.WriteFile(m.path("host/state/tasks/"+name+".json"), []byte("\x00"), 0o600))
	}
	m.start()
	if p := m.heard(); !p.Busy || p.Signal != lifecycle.SignalRegOK || p.Assignment != 1 {
		t.Errorf("report: %+v", p)
	}
	if aside, err := filepath.Glob(state + ".damaged-*"); err != nil || len(aside) != 1 {
		t.Errorf("moved aside: %v, %v", aside, err)
	}
	if !strings.Contains(m.log(), "agent state unusable") {
		t.Errorf("nothing is said of it in %s", m.log())
	}
	open()
	if j := m.finished("101"); j.Conclusion != "success" {
		t.Errorf("job: %s\n%s", j.Conclusion, j.Log)
	}
	m.release()
	m.deregistered()
}

// A state directory that cannot be written is reported, and harms no job. It
// cannot be cleaned up either, so the host is not used again.
func TestReadOnlyState(t *testing.T) {
	racepass.CoveredBy(t, "TestAgentKilledInTheMiddleOfAJob")
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.ready("101")
	open := m.jobBehind()
	m.kill()
	dirs := []string{m.path("host/state"), m.path("host/state/tasks"), m.path("host/job"), m.path("host/hooks")}
	readOnly(t, dirs)
	m.start()
	time.Sleep(time.Second)
	open()
	m.eventually("the job has ended", func() bool { return !m.heard().Busy })
	if j := m.finished("101"); j.Conclusion != "success" {
		t.Errorf("job: %s\n%s", j.Conclusion, j.Log)
	}
	m.release()
	p := m.signaled(lifecycle.SignalRemoveRegFailed)
	if p.Cause != lifecycle.CauseHost || !strings.Contains(p.Detail, "deregister runner: ") {
		t.Errorf("report: %+v", p)
	}
	if n := strings.Count(m.log(), "agentd: started"); n != 2 {
		t.Errorf("agentd was started %d times, want 2: it must not crash", n)
	}
}

// readOnly makes directories unwritable until the test ends, for root too.
func readOnly(t *testing.T, dirs []string) {
	t.Helper()
	change := func(mode os.FileMode, attribute string) error {
		for _, dir := range dirs {
			if os.Geteuid() != 0 {
				if err := os.Chmod(dir, mode); err != nil {
					return err
				}
				continue
			}
			if out, err := exec.Command("chattr", attribute, dir).CombinedOutput(); err != nil {
				t.Logf("%s", out)
				return err
			}
		}
		return nil
	}
	check(t, change(0o500, "+i"))
	t.Cleanup(func() { check(t, change(0o700, "-i")) })
}

func TestSecondAgent(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.create("101")
	m.signaled(lifecycle.SignalRegOK)
	second := exec.Command(m.path("agentd"), "--config", m.path("agentd.yaml"))
	out, err := second.CombinedOutput()
	if second.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "another agentd works on this host") {
		t.Errorf("second agentd: %v\n%s", err, out)
	}
	m.heard()
}

func TestPreRunnerScript(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	tests := map[string]struct {
		script string
		want   lifecycle.Signal
	}{
		"succeeds": {"echo ran >>$HOME/../ran", lifecycle.SignalRegOK},
		"fails":    {"echo no network | cat\nfalse\n", lifecycle.SignalFailed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "pre.sh")
			check(t, os.WriteFile(script, []byte(test.script), 0o600))
			m := newMachine(t, func(c map[string]any) { c["pre_runner"] = map[string]any{"script": script} })
			m.start()
			m.create("101")
			p := m.signaled(test.want)
			if test.want == lifecycle.SignalFailed {
				if p.Cause != lifecycle.CauseHost || !strings.Contains(p.Detail, "no network") {
					t.Errorf("report: %+v", p)
				}
				return
			}
			m.apply(lifecycle.ActionReady, false)
			m.release()
			m.signaled(lifecycle.SignalRemoveRegOK)
			m.apply(lifecycle.ActionPool, false)
			m.claim("102")
			m.signaled(lifecycle.SignalRegOK)
			if ran, err := os.ReadFile(m.path("host/ran")); err != nil || string(ran) != "ran\n" {
				t.Errorf("the script ran not once in this boot: %q, %v", ran, err)
			}
		})
	}
}

// A token that GitHub does not take is not held against the host, and is not in the report.
func TestRegistrationRefused(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.create("101", func(r *lifecycle.Record) { r.Registration.Secret = "a-token-that-is-not-one" })
	p := m.signaled(lifecycle.SignalRegFailed)
	if p.Cause != lifecycle.CauseGitHub || strings.Contains(p.Detail, "a-token-that-is-not-one") {
		t.Errorf("report: %+v", p)
	}
}

// tattler stands in for config.sh and writes down its arguments and those of
// the process that started it.
const tattler = `#!/bin/bash
cd "${0%/*}" || exit 1
tr '\0' ' ' </proc/$$/cmdline >>../arguments
tr '\0' ' ' </proc/$PPID/cmdline >>../arguments
exec ./config-itself.sh "$@"
`

// No process has a secret in its arguments, and no log has one at all.
func TestSecretsStaySecret(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := newMachine(t)
	check(t, os.Rename(m.path("distribution/config.sh"), m.path("distribution/config-itself.sh")))
	syscall.ForkLock.RLock()
	err := os.WriteFile(m.path("distribution/config.sh"), []byte(tattler), 0o700)
	syscall.ForkLock.RUnlock()
	check(t, err)
	m.start()
	m.create("101")
	secrets := []string{m.record().Registration.Secret.Reveal()}
	m.signaled(lifecycle.SignalRegOK)
	m.apply(lifecycle.ActionReady, false)
	m.startRun("101", "${{ github.run_id }}", "env | sort\ncat /proc/[0-9]*/cmdline | tr '\\0' ' '")
	j := m.finished("101")
	m.release()
	secrets = append(secrets, m.record().Registration.Secret.Reveal())
	p := m.signaled(lifecycle.SignalRemoveRegOK)
	places := map[string]string{"the log of the job": j.Log, "the report": p.Detail}
	for _, name := range []string{"host/arguments", "agentd.log", "host/logs/runner.log", "host/state/agent.json"} {
		text, err := os.ReadFile(m.path(name))
		check(t, err)
		places[name] = string(text)
	}
	for place, text := range places {
		for i, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("secret %d is in %s", i, place)
			}
		}
	}
	for _, want := range []string{"--unattended", "config.sh remove"} {
		if !strings.Contains(places["host/arguments"], want) {
			t.Errorf("%q was not seen in the arguments, so nothing was proven:\n%s", want, places["host/arguments"])
		}
	}
}

// What drops the host's mark but stays in the session of its init is ended
// with the host.
func TestUnmarkedProcessOfTheSession(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	script := filepath.Join(t.TempDir(), "pre.sh")
	check(t, os.WriteFile(script, []byte("env -i sleep 1000 &\necho $! >../left\n"), 0o600))
	m := newMachine(t, func(c map[string]any) { c["pre_runner"] = map[string]any{"script": script} })
	m.init = true
	m.start()
	m.ready("101")
	text, err := os.ReadFile(m.path("host/left"))
	check(t, err)
	args := filepath.Join("/proc", strings.TrimSpace(string(text)), "cmdline")
	alive := func() bool { a, err := os.ReadFile(args); return err == nil && strings.Contains(string(a), "sleep") }
	m.eventually("what the script leaves is there", alive) // or nothing could be proven
	m.release()
	m.signaled(lifecycle.SignalRemoveRegOK)
	if alive() {
		t.Error("a process of the session is left")
	}
	m.heard() // and neither agentd nor its init were ended
}
