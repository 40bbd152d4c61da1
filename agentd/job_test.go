package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// jitRunner is a registration that GitHub made for one job.
type jitRunner struct {
	id     int64
	secret lifecycle.Secret
}

// jit registers a runner for one job, as controld does before a claim.
func (m *machine) jit(name, label string) jitRunner {
	m.t.Helper()
	var got struct {
		Runner struct {
			ID int64 `json:"id"`
		} `json:"runner"`
		Config string `json:"encoded_jit_config"`
	}
	m.post("/repos/"+repository+"/actions/runners/generate-jitconfig", map[string]any{
		"name": name, "runner_group_id": 1, "labels": []string{label}, "work_folder": "_work",
	}, &got)
	return jitRunner{got.Runner.ID, lifecycle.Secret(got.Config)}
}

func (m *machine) deleteRunner(id int64) {
	m.t.Helper()
	req, err := http.NewRequest(http.MethodDelete, fmt.Sprintf("%s/repos/%s/actions/runners/%d", m.github.URL, repository, id), nil)
	check(m.t, err)
	m.call(req, nil)
}

// readyForJob brings a new host to wait for one job of scope with the label.
func (m *machine) readyForJob(scope, label string) jitRunner {
	m.t.Helper()
	j := m.jit(lifecycle.RunnerName(1, m.id), label)
	m.create("job:7", func(r *lifecycle.Record) {
		r.JobsOf, r.GitHubRunnerID, r.Registration = scope, j.id, m.jitRegistration(j)
	})
	m.signaled(lifecycle.SignalRegOK)
	m.apply(lifecycle.ActionReady, false)
	return j
}

func (m *machine) jitRegistration(j jitRunner) *lifecycle.Registration {
	return &lifecycle.Registration{
		Kind: lifecycle.RegistrationJIT, URL: m.github.URL + "/" + repository, Secret: j.secret, ExpiresAt: time.Now().Add(time.Hour),
	}
}

// decided carries out what lifecycle says, as a sweep does, until the record
// has left its state.
func (m *machine) decided(want lifecycle.Action) {
	m.t.Helper()
	m.eventually(fmt.Sprintf("the decision to %s", want), func() bool {
		r, p := m.record(), m.report()
		d := lifecycle.Decide(lifecycle.Facts{Record: r, Report: &p}, time.Now(), m.policy)
		if !lifecycle.Allowed(r, d.Action) {
			return false
		}
		next, err := lifecycle.Apply(r, d, time.Now(), m.policy)
		check(m.t, err)
		_, err = m.store.UpdateInstance(context.Background(), next)
		check(m.t, err)
		return d.Action == want
	})
}

// secretsLeft are the files of the host that hold a JIT configuration. The agent and the runner replace files while it looks: a walk that met
// a file that has gone is made again, since the new one has another name.
func (m *machine) secretsLeft(j jitRunner) (found []string) {
	m.t.Helper()
	m.eventually("a walk through the files of the host finds all that it lists", func() bool {
		var err error
		found, err = filesWith(m.path("host"), j.secret.Reveal())
		if !errors.Is(err, fs.ErrNotExist) {
			check(m.t, err)
		}
		return err == nil
	})
	return found
}

// filesWith are the files below a directory that contain text, except the runner's programs.
func filesWith(dir, text string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || strings.HasPrefix(e.Name(), "Runner.") {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(content), text) {
			found = append(found, path)
		}
		return err
	})
	return found, err
}

// A host takes one job of a job pool, of whatever run, and goes back by its
// agent's word alone; then it serves a run, and no trace of the job is left.
func TestOneJobAndBack(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := newMachine(t)
	m.start()
	j := m.readyForJob("acme", "small")
	if got := m.report().RunnerVersion; got != "2.336.0" {
		t.Errorf("runner version %q", got)
	}
	m.startRun("4711", "small", "echo secret is ${ACTIONS_RUNNER_INPUT_JITCONFIG:-unset}")
	if done := m.finished("4711"); done.Conclusion != "success" || !strings.Contains(done.Log, "secret is unset") {
		t.Errorf("job: %s\n%s", done.Conclusion, done.Log)
	}
	m.eventually("the report says that the job is over", func() bool { p := m.report(); return p.Jobs == 1 && !p.Busy })
	m.decided(lifecycle.ActionRelease)
	if got := m.record(); got.Registration != nil || got.Reason != "its one job is done" {
		t.Errorf("record of the release: %+v", got)
	}
	m.decided(lifecycle.ActionPool)
	if names, pids, files := m.runners(), m.processes(), m.secretsLeft(j); len(names)+len(pids)+len(files) > 0 {
		t.Errorf("left are registrations %v, processes %v, secrets in %v", names, pids, files)
	}
	if text := m.log(); strings.Contains(text, j.secret.Reveal()) {
		t.Error("the configuration is in the agent's log")
	}
	m.claim("102")
	m.signaled(lifecycle.SignalRegOK)
	if diff := cmp.Diff([]string{lifecycle.RunnerName(3, m.id)}, m.runners()); diff != "" {
		t.Errorf("registrations (-want +got):\n%s", diff)
	}
}

// A job that fails, or is cancelled, is one job too.
func TestOneJobHoweverItEnds(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	for name, end := range map[string]func(m *machine){
		"failed": func(m *machine) { check(m.t, os.WriteFile(m.path("gate"), nil, 0o600)) },
		"cancelled": func(m *machine) {
			m.eventually("the job runs", func() bool { return m.report().Busy })
			m.post("/_standin/runs/4711/cancel", nil, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.start()
			m.readyForJob(repository, "small")
			m.startRun("4711", "small", "while ! [ -e "+m.path("gate")+" ]; do sleep 0.02; done\nexit 1")
			end(m)
			if done := m.finished("4711"); done.Conclusion == "success" {
				t.Errorf("job: %s", done.Conclusion)
			}
			m.decided(lifecycle.ActionRelease)
			m.decided(lifecycle.ActionPool)
		})
	}
}

// A job that runs at the release of a job-scoped host may finish.
func TestReleaseDuringTheOneJob(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.readyForJob("acme", "small")
	m.startRun("4711", "small", "while ! [ -e "+m.path("gate")+" ]; do sleep 0.02; done")
	m.eventually("the report says busy", func() bool { return m.report().Busy })
	m.apply(lifecycle.ActionRelease, true)
	m.eventually("the release is acknowledged", func() bool { return m.report().Assignment == 2 })
	if p := m.report(); !p.Busy || p.Signal != lifecycle.SignalNone {
		t.Errorf("report of a draining host: %+v", p)
	}
	check(t, os.WriteFile(m.path("gate"), nil, 0o600))
	if done := m.finished("4711"); done.Conclusion != "success" {
		t.Errorf("job: %s\n%s", done.Conclusion, done.Log)
	}
	m.decided(lifecycle.ActionPool)
}

// A job of another repository does not start, whatever labels it asks for, and
// the host is not used again.
func TestForeignJobOfAJobPool(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.readyForJob("acme/web", "small") // its registration lets a job of acme/app come
	m.startRun("999", "small", "touch "+m.path("foreign"))
	if done := m.finished("999"); done.Conclusion != "failure" || !strings.Contains(done.Log, "this host serves one job of acme/web") {
		t.Errorf("foreign job: %s\n%s", done.Conclusion, done.Log)
	}
	if _, err := os.Stat(m.path("foreign")); err == nil {
		t.Error("a step of the foreign job ran")
	}
	m.decided(lifecycle.ActionRelease)
	p := m.signaled(lifecycle.SignalRemoveRegFailed)
	if p.Cause != lifecycle.CauseHost || !strings.Contains(p.Detail, "refused a job of run 999") {
		t.Errorf("report %+v", p)
	}
}

// A registration that is deleted on GitHub before a job came sends the host
// back. The listener deletes its files then, and the agent was killed in between.
func TestRegistrationDeletedOnGitHub(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := newMachine(t)
	m.start()
	j := m.readyForJob("acme", "small")
	m.deleteRunner(j.id)
	p := m.signaled(lifecycle.SignalRegFailed)
	if p.Cause != lifecycle.CauseGitHub || !strings.Contains(p.Detail, "its registration is gone from GitHub") {
		t.Errorf("report %+v", p)
	}
	m.kill()
	if _, err := os.Stat(m.path("host", "runner", ".runner")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the listener has left its files: %v", err)
	}
	m.decided(lifecycle.ActionRelease)
	m.start()
	m.decided(lifecycle.ActionPool)
	if files := m.secretsLeft(j); len(files) > 0 {
		t.Errorf("secrets are left in %v", files)
	}
}

// A JIT configuration that is of no use sends the host back, and tells why.
func TestBadJITConfiguration(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAHost")
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.create("job:7", func(r *lifecycle.Record) {
		r.JobsOf, r.Registration = "acme", m.jitRegistration(jitRunner{secret: "no-such-s3cret"})
	})
	p := m.signaled(lifecycle.SignalRegFailed)
	if p.Cause != lifecycle.CauseHost || !strings.Contains(p.Detail, "exit code 1") || strings.Contains(p.Detail, "s3cret") {
		t.Errorf("report %+v", p)
	}
}
