package main

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// exited waits for agentd to end and returns its exit code.
func (m *machine) exited() int {
	m.t.Helper()
	done := make(chan struct{})
	go func() { _ = m.agent.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		m.t.Fatal("agentd does not end")
	}
	code := m.agent.ProcessState.ExitCode()
	m.agent = nil
	return code
}

func TestLifeOfAHost(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.ready("101")
	if diff := cmp.Diff([]string{"remuda-1-" + m.id}, m.runners()); diff != "" {
		t.Errorf("registrations (-want +got):\n%s", diff)
	}
	m.startRun("101", "${{ github.run_id }}", "echo left >left-by-101\ntouch \"$HOME/home-101\"\nsleep 0.1")
	if j := m.finished("101"); j.Conclusion != "success" {
		t.Errorf("job of run 101: %s\n%s", j.Conclusion, j.Log)
	}
	m.eventually("the report counts the job", func() bool { p := m.report(); return p.Jobs == 1 && !p.Busy })

	m.release()
	m.leavesNothing()
	m.apply(lifecycle.ActionPool, false)

	m.claim("102")
	m.signaled(lifecycle.SignalRegOK)
	m.apply(lifecycle.ActionReady, false)
	m.startRun("102", "${{ github.run_id }}", "ls -la . \"$HOME\"\n! ls left-by-101 \"$HOME/home-101\" 2>/dev/null")
	if j := m.finished("102"); j.Conclusion != "success" {
		t.Errorf("job of run 102 found what run 101 left: %s\n%s", j.Conclusion, j.Log)
	}
	m.apply(lifecycle.ActionTerminate, false)
	if code := m.exited(); code != 0 {
		t.Errorf("agentd exited with %d, want 0", code)
	}
	if pids := m.processes(); len(pids) > 0 {
		t.Errorf("processes are left: %v", pids)
	}
}

func TestReleaseWhileBusy(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.ready("101")
	gate := m.path("gate")
	m.startRun("101", "${{ github.run_id }}", "while ! [ -e "+gate+" ]; do sleep 0.02; done")
	m.eventually("the report says busy", func() bool { return m.report().Busy })
	m.release()
	m.eventually("the release is acknowledged", func() bool { return m.report().Assignment == 2 })
	if p := m.report(); !p.Busy || p.Signal != lifecycle.SignalNone {
		t.Errorf("report of a draining host: %+v", p)
	}
	check(t, os.WriteFile(gate, nil, 0o600))
	m.signaled(lifecycle.SignalRemoveRegOK)
	if j := m.finished("101"); j.Conclusion != "success" {
		t.Errorf("the job was not left to finish: %s\n%s", j.Conclusion, j.Log)
	}
}

// TestReleaseBetweenAJobAndItsWorker releases a host whose listener has acquired a job and renews the job's lock before it starts a worker. A
// listener that is stopped then tells GitHub nothing, and the job hangs until it is lost.
func TestReleaseBetweenAJobAndItsWorker(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	const renew = "/_standin/runner/jobs/{id}/renew"
	m := newMachine(t)
	m.start()
	m.ready("101")
	m.post("/_standin/faults", map[string]any{"route": renew, "delay_ms": patience.Milliseconds(), "count": 100}, nil)
	m.startRun("101", "${{ github.run_id }}", "echo done")
	m.eventually("the job's lock is being renewed", func() bool {
		var got struct{ Calls []struct{ Route string } }
		m.get("/_standin/calls", &got)
		return slices.ContainsFunc(got.Calls, func(c struct{ Route string }) bool { return c.Route == renew })
	})
	m.eventually("the report says busy", func() bool { return m.report().Busy })
	m.release()
	m.eventually("the release is acknowledged", func() bool { return m.report().Assignment == 2 })
	if p := m.report(); !p.Busy || p.Signal != lifecycle.SignalNone {
		t.Errorf("report of a draining host: %+v", p)
	}
	req, err := http.NewRequest(http.MethodDelete, m.github.URL+"/_standin/faults", nil)
	check(t, err)
	m.call(req, nil)
	m.signaled(lifecycle.SignalRemoveRegOK)
	if j := m.finished("101"); j.Conclusion != "success" {
		t.Errorf("the job was not left to run: %s\n%s", j.Conclusion, j.Log)
	}
}

// GitHub has assigned a job, and the listener has not acquired it yet: nothing on the host shows that there is a job. The
// registration stays until the job is over, and the job runs.
func TestReleaseWhileAJobIsAssigned(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.ready("101")
	m.acquiring.Lock()
	m.startRun("101", "${{ github.run_id }}", "echo ran")
	<-m.asked
	m.release()
	m.eventually("the removal is tried", func() bool { return strings.Contains(m.log(), "effect=deregister") })
	m.acquiring.Unlock()
	if j := m.finished("101"); j.Conclusion != "success" {
		t.Errorf("the assigned job: %s\n%s", j.Conclusion, j.Log)
	}
	m.deregistered()
}

func TestForeignJobIsRefused(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.ready("101")
	m.startRun("999", "101", "touch "+m.path("foreign"))
	j := m.finished("999")
	if j.Conclusion != "failure" || !strings.Contains(j.Log, "refused. This is a job of run 999 of acme/app, and this host serves run 101") {
		t.Errorf("foreign job: %s\n%s", j.Conclusion, j.Log)
	}
	if _, err := os.Stat(m.path("foreign")); err == nil {
		t.Error("a step of the foreign job ran")
	}
	m.startRun("101", "${{ github.run_id }}", "echo own")
	if j := m.finished("101"); j.Conclusion != "success" {
		t.Errorf("its own job: %s\n%s", j.Conclusion, j.Log)
	}
	m.release()
	p := m.signaled(lifecycle.SignalRemoveRegFailed)
	if p.Cause != lifecycle.CauseHost || !strings.Contains(p.Detail, "refused a job of run 999") {
		t.Errorf("report: %+v", p)
	}
}

func TestAgentKilledInTheMiddleOfAJob(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.ready("101")
	gate := m.path("gate")
	m.startRun("101", "${{ github.run_id }}", "while ! [ -e "+gate+" ]; do sleep 0.02; done; echo done")
	m.eventually("the job has begun", func() bool { return m.report().Busy && m.report().Jobs == 1 })
	m.kill()
	m.start()
	before := m.report().HeartbeatAt
	m.eventually("the new agent reports", func() bool { return m.report().HeartbeatAt.After(before) })
	if p := m.report(); !p.Busy || p.Signal != lifecycle.SignalRegOK || p.Jobs != 1 {
		t.Errorf("report after the restart: %+v", p)
	}
	m.kill()
	check(t, os.WriteFile(gate, nil, 0o600)) // the job ends while no agent is there
	if j := m.finished("101"); j.Conclusion != "success" {
		t.Errorf("job: %s\n%s", j.Conclusion, j.Log)
	}
	m.start()
	m.eventually("no longer busy", func() bool { return !m.report().Busy })
	m.release()
	m.signaled(lifecycle.SignalRemoveRegOK)
}
