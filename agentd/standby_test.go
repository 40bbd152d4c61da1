package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// standbyMachine is one whose hosts register ahead of need. Jobs wait there for so long.
func standbyMachine(t *testing.T, wait time.Duration) *machine {
	t.Helper()
	m := newMachine(t)
	m.policy.Standby = lifecycle.StandbyListening
	m.env = append(m.env, standbyWaitVariable+"="+wait.String())
	m.start()
	m.ready("101")
	m.release()
	m.signaled(lifecycle.SignalRemoveRegOK)
	return m
}

// poolInStandby is the one write that pools a host which is to register ahead of need.
func (m *machine) poolInStandby() {
	m.t.Helper()
	reg := m.token("registration", lifecycle.RegistrationToken)
	m.update(func(r lifecycle.Record) lifecycle.Record {
		r, err := lifecycle.Apply(r, lifecycle.Decision{
			Action: lifecycle.ActionPool, StandsBy: true, Standby: &lifecycle.Standby{Assignment: r.Assignment, Label: "standby-label"},
		}, time.Now(), m.policy)
		check(m.t, err)
		r.Registration = &reg
		return r
	})
}

// hot pools the host and waits until it listens.
func (m *machine) hot() {
	m.t.Helper()
	m.poolInStandby()
	m.signaled(lifecycle.SignalRegOK)
	m.update(func(r lifecycle.Record) lifecycle.Record {
		r, err := lifecycle.Apply(r, lifecycle.Decision{Action: lifecycle.ActionStandBy, RunnerID: m.runner(r.RunnerName).ID}, time.Now(), m.policy)
		check(m.t, err)
		return r
	})
}

// listedRunner is a runner as GitHub lists it.
type listedRunner struct {
	ID     int64
	Name   string
	Labels []struct{ Name string }
}

func (m *machine) runner(name string) listedRunner {
	m.t.Helper()
	var got struct{ Runners []listedRunner }
	m.get("/repos/"+repository+"/actions/runners", &got)
	for _, r := range got.Runners {
		if r.Name == name {
			return r
		}
	}
	m.t.Fatalf("GitHub has no runner %s", name)
	return listedRunner{}
}

// setLabels gives the runner of the host the labels of a run, as a claim does.
func (m *machine) setLabels(labels ...string) {
	m.t.Helper()
	text, err := json.Marshal(map[string]any{"labels": labels})
	check(m.t, err)
	id := m.runner(m.record().RunnerName).ID
	req, err := http.NewRequest(http.MethodPut, fmt.Sprintf("%s/repos/%s/actions/runners/%d/labels", m.github.URL, repository, id), bytes.NewReader(text))
	check(m.t, err)
	m.call(req, nil)
}

// configurations is how often agentd has begun config.sh.
func (m *machine) configurations() int { return strings.Count(m.log(), "effect=register") }

// A host listens ahead of need, under one label that no job names, and serves the run that claims it by that runner.
func TestLifeOfAHotHost(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := standbyMachine(t, time.Minute)
	m.hot()
	waits := "remuda-2-" + m.id
	if diff := cmp.Diff([]string{waits}, m.runners()); diff != "" {
		t.Errorf("registrations (-want +got):\n%s", diff)
	}
	if r := m.runner(waits); len(r.Labels) != 1 || r.Labels[0].Name != "standby-label" {
		t.Errorf("labels %+v", r.Labels)
	}
	m.kill()
	m.start() // which finds the listener again
	m.claim("102")
	m.setLabels("102")
	m.apply(lifecycle.ActionReady, false) // controld does not wait for the agent
	m.startRun("102", "${{ github.run_id }}", "echo ran >ran-102")
	if j := m.finished("102"); j.Conclusion != "success" {
		t.Errorf("job of run 102: %s\n%s", j.Conclusion, j.Log)
	}
	m.signaled(lifecycle.SignalRegOK)
	if n := m.configurations(); n != 2 {
		t.Errorf("config.sh ran %d times, want once for run 101 and once ahead of need", n)
	}
	m.release()
	m.deregistered()
	m.hot() // under another name
	if diff := cmp.Diff([]string{"remuda-4-" + m.id}, m.runners()); diff != "" {
		t.Errorf("registrations of the next round (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(m.path("host/work/ran-102")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("run 102 has left its files: %v", err)
	}
}

// GitHub gives the host a job before the agent has read the claim: the job waits and runs.
func TestJobBeforeTheClaimIsRead(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := standbyMachine(t, patience)
	m.hot()
	m.setLabels("102")
	m.startRun("102", "${{ github.run_id }}", "echo ran")
	m.eventually("the job waits in its hook", func() bool {
		return m.report().Busy && strings.Contains(m.run("102").Jobs[0].Log, "this host waits for a run")
	})
	if p := m.report(); p.Jobs != 0 || p.Signal != lifecycle.SignalRegOK {
		t.Errorf("report while the job waits: %+v", p)
	}
	m.claim("102")
	if j := m.finished("102"); j.Conclusion != "success" {
		t.Errorf("job: %s\n%s", j.Conclusion, j.Log)
	}
	m.eventually("the report counts the job", func() bool { p := m.report(); return p.Jobs == 1 && !p.Busy && p.Assignment == 3 })
}

// No run claims the host: nothing of the job runs, and the host is not used again.
func TestJobThatNoClaimFollows(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := standbyMachine(t, 300*time.Millisecond)
	m.hot()
	m.setLabels("999")
	m.startRun("999", "${{ github.run_id }}", "touch "+m.path("foreign")+"\n      - if: always()\n        run: touch "+m.path("foreign"))
	j := m.finished("999")
	if j.Conclusion != "failure" || !strings.Contains(j.Log, "refused. This is a job of run 999 of acme/app, and this host serves no run") {
		t.Errorf("job: %s\n%s", j.Conclusion, j.Log)
	}
	p := m.signaled(lifecycle.SignalRegFailed)
	if p.Cause != lifecycle.CauseHost || !strings.Contains(p.Detail, "refused a job of run 999") || p.Jobs != 0 {
		t.Errorf("report %+v", p)
	}
	m.leaveStandby()
	m.signaled(lifecycle.SignalRemoveRegFailed)
	m.noRunners()
	if _, err := os.Stat(m.path("foreign")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a step of the job ran")
	}
}

// leaveStandby gives the registration up, with a remove token in the same write.
func (m *machine) leaveStandby() {
	m.t.Helper()
	remove := m.token("remove", lifecycle.RegistrationRemove)
	m.update(func(r lifecycle.Record) lifecycle.Record {
		r, err := lifecycle.Apply(r, lifecycle.Decision{Action: lifecycle.ActionLeaveStandby}, time.Now(), m.policy)
		check(m.t, err)
		r.Registration = &remove
		return r
	})
}

// A host that is claimed while it registers goes on, and serves the run by that registration.
func TestClaimWhileItRegisters(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := standbyMachine(t, time.Minute)
	m.poolInStandby()
	m.claim("102")
	m.signaled(lifecycle.SignalRegOK)
	m.setLabels("102")
	m.apply(lifecycle.ActionReady, false)
	m.startRun("102", "${{ github.run_id }}", "echo ran")
	if j := m.finished("102"); j.Conclusion != "success" {
		t.Errorf("job: %s\n%s", j.Conclusion, j.Log)
	}
	if diff := cmp.Diff([]string{"remuda-2-" + m.id}, m.runners()); diff != "" {
		t.Errorf("registrations (-want +got):\n%s", diff)
	}
}

// A registration that cannot be used is discarded without a word to GitHub, and the host registers for its run.
func TestRegistrationAheadOfNeedIsDiscarded(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := standbyMachine(t, time.Minute)
	m.hot()
	m.claim("102")
	m.deleteRunner(m.runner(m.record().RunnerName).ID)
	m.apply(lifecycle.ActionReregister, false)
	m.signaled(lifecycle.SignalRegOK)
	m.apply(lifecycle.ActionReady, false)
	m.startRun("102", "${{ github.run_id }}", "echo ran")
	if j := m.finished("102"); j.Conclusion != "success" {
		t.Errorf("job: %s\n%s", j.Conclusion, j.Log)
	}
	if diff := cmp.Diff([]string{"remuda-4-" + m.id}, m.runners()); diff != "" {
		t.Errorf("registrations (-want +got):\n%s", diff)
	}
	m.release()
	m.signaled(lifecycle.SignalRemoveRegOK)
}

// A host that gives its registration up while it listens is clean again, and waits without one.
func TestHostThatLeavesStandby(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := standbyMachine(t, time.Minute)
	m.poolInStandby()
	m.leaveStandby() // before it has begun, or while it registers
	m.signaled(lifecycle.SignalRemoveRegOK)
	m.hot()
	m.leaveStandby()
	m.leavesNothing()
	m.apply(lifecycle.ActionPool, false)
	m.claim("102")
	m.signaled(lifecycle.SignalRegOK)
}
