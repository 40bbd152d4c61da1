package githubsim_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/remuda-ci/remuda/internal/githubsim"
)

const sleeper = "on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'echo up; sleep 1000'}]}\n"

func TestRunnerLooksLikeTheRealOne(t *testing.T) {
	s := start(t)
	h, l := s.online("a", "one, two")
	for _, name := range []string{".runner", ".credentials", ".credentials_rsaparams"} {
		info, err := os.Stat(filepath.Join(h.dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	for name, want := range map[string]string{".env": "LANG=x.UTF-8\n", ".path": os.Getenv("PATH") + "\n", "svc.sh": "#!/bin/bash\n"} {
		if !strings.Contains(h.read(name), want) {
			t.Errorf("%s has not %q: %s", name, want, h.read(name))
		}
	}
	if logs, err := filepath.Glob(filepath.Join(h.dir, "_diag", "Runner_*-utc.log")); err != nil || len(logs) == 0 {
		t.Errorf("files below _diag: %q, %v", logs, err)
	}
	settings := h.read(".runner")
	for _, want := range []string{`"agentId": 1`, `"agentName": "a"`, `"gitHubUrl": "` + s.url + `/acme/app"`, `"workFolder": "_work"`} {
		if !strings.Contains(settings, want) {
			t.Errorf(".runner lacks %s: %s", want, settings)
		}
	}
	if !strings.Contains(l.output(), "√ Connected to GitHub\n\nCurrent runner version: '") {
		t.Error(l.output())
	}
	want := []runnerView{{ID: 1, Name: "a", Labels: []string{"self-hosted", "Linux", "X64", "one", "two"}, Status: "online"}}
	if d := cmp.Diff(want, s.runners(), cmpopts.IgnoreFields(runnerView{}, "Polling")); d != "" {
		t.Error(d)
	}
	out, err := h.command(nil, "config.sh", "--unattended", "--url", s.url+"/acme/app", "--token", "x").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "already configured") {
		t.Errorf("configure twice: %v: %s", err, out)
	}
}

func TestConfigureIsRefused(t *testing.T) {
	s := start(t)
	s.online("taken", "box")
	for name, tc := range map[string]struct {
		args []string
		env  []string
		says string
	}{
		"wrong token":     {[]string{"--url", s.url + "/acme/app"}, []string{"ACTIONS_RUNNER_INPUT_TOKEN=nonsense"}, "Not Found"},
		"token of others": {[]string{"--url", s.url + "/acme/other"}, []string{"ACTIONS_RUNNER_INPUT_TOKEN=" + s.token("registration")}, "Not Found"},
		"remove token":    {[]string{"--url", s.url + "/acme/app"}, []string{"ACTIONS_RUNNER_INPUT_TOKEN=" + s.token("remove")}, "Not Found"},
		"name taken":      {[]string{"--url", s.url + "/acme/app", "--name", "taken"}, []string{"ACTIONS_RUNNER_INPUT_TOKEN=" + s.token("registration")}, "A runner exists with the same name taken."},
		"no token":        {[]string{"--url", s.url + "/acme/app"}, nil, "Invalid configuration provided for token"},
		"no url":          {nil, []string{"ACTIONS_RUNNER_INPUT_TOKEN=x"}, "Invalid configuration provided for url"},
		"no labels":       {[]string{"--url", s.url + "/acme/app", "--no-default-labels"}, []string{"ACTIONS_RUNNER_INPUT_TOKEN=" + s.token("registration")}, "--no-default-labels without specifying --labels is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			h := s.newHost("h")
			cmd := h.command(tc.env, "config.sh", append([]string{"--unattended"}, tc.args...)...)
			out, err := cmd.CombinedOutput()
			if err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), tc.says) || strings.Contains(string(out), "nonsense") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// config.sh mentions options that it does not know, and goes on without them (src/Runner.Listener/Program.cs:106-119).
func TestUnknownOptionsAreMentioned(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	cmd := h.command([]string{"ACTIONS_RUNNER_INPUT_TOKEN=" + s.token("registration")}, "config.sh", "--unattended", "--url", s.url+"/acme/app", "--colour", "blue", "--fast")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "Unrecognized command-line input arguments for command configure: 'fast, colour'. For usage refer to: ") {
		t.Errorf("%v: %s", err, out)
	}
	if out, code := h.remove("--unattended"); code != 0 || !strings.HasPrefix(out, "Unrecognized command-line input arguments for command remove: 'unattended'. ") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// config.sh does not run as root unless RUNNER_ALLOW_RUNASROOT is set (src/Misc/layoutroot/config.sh:6).
func TestConfigureAsRoot(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	out, err := h.command([]string{"RUNNER_ALLOW_RUNASROOT="}, "config.sh", "--unattended").CombinedOutput()
	if refused := string(out) == "Must not run with sudo\n"; err == nil || refused != (os.Geteuid() == 0) {
		t.Errorf("as user %d: %v: %s", os.Geteuid(), err, out)
	}
}

func TestExpiredTokenIsRefused(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	token := s.token("registration")
	s.clock.advance(githubsim.TokenLife)
	out, err := h.command([]string{"ACTIONS_RUNNER_INPUT_TOKEN=" + token}, "config.sh", "--unattended", "--url", s.url+"/acme/app").CombinedOutput()
	if err == nil {
		t.Errorf("configured: %s", out)
	}
}

func TestReplaceTakesOverTheRegistration(t *testing.T) {
	s := start(t)
	_, old := s.online("a", "old")
	h := s.newHost("a")
	h.configure("new", "--replace")
	if got := s.runners(); len(got) != 1 || got[0].ID != 1 || !strings.Contains(fmt.Sprint(got[0].Labels), "new") {
		t.Errorf("%+v", got)
	}
	if code := old.exitCode(); code != 1 {
		t.Errorf("listener of the replaced registration: exit code %d:\n%s", code, old.output())
	}
}

func TestRemove(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	h.configure("box")
	remove := func(token string) (string, error) {
		out, err := h.command([]string{"ACTIONS_RUNNER_INPUT_TOKEN=" + token}, "config.sh", "remove").CombinedOutput()
		return string(out), err
	}
	if out, err := remove("nonsense"); err == nil || !strings.Contains(out, "Failed: Removing runner from the server") || len(s.runners()) != 1 {
		t.Errorf("with a wrong token: %v: %s", err, out)
	}
	if out, err := remove(s.token("remove")); err != nil || !strings.Contains(out, "√ Runner removed successfully") || !strings.Contains(out, "√ Removed .runner") {
		t.Errorf("%v: %s", err, out)
	}
	for _, name := range []string{".runner", ".credentials", ".credentials_rsaparams"} {
		if _, err := os.Stat(filepath.Join(h.dir, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	if got := s.runners(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestRemoveWithoutRunnerFileLeavesAGhost(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	h.configure("box")
	if err := os.Remove(filepath.Join(h.dir, ".runner")); err != nil {
		t.Fatal(err)
	}
	out, err := h.command([]string{"ACTIONS_RUNNER_INPUT_TOKEN=" + s.token("remove")}, "config.sh", "remove").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Skipping removing runner from the server") || len(s.runners()) != 1 {
		t.Errorf("%v, %+v: %s", err, s.runners(), out)
	}
}

func TestRemoveOfABusyRunnerIsRefused(t *testing.T) {
	s := start(t)
	h, _ := s.online("a", "box")
	id := s.startRun(sleeper)
	s.awaitLog(id, "up\n")
	out, err := h.command([]string{"ACTIONS_RUNNER_INPUT_TOKEN=" + s.token("remove")}, "config.sh", "remove").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is still running a job") {
		t.Errorf("config.sh remove: %v: %s", err, out)
	}
	s.call(422, "DELETE", "/repos/acme/app/actions/runners/1", nil, nil)
	if got := s.runners(); len(got) != 1 || !got[0].Busy {
		t.Errorf("%+v", got)
	}
}

func TestJITRunnerServesOneJob(t *testing.T) {
	s := start(t)
	h := s.newHost("jit")
	var made struct {
		Encoded string `json:"encoded_jit_config"`
	}
	s.call(201, "POST", "/api/v3/repos/acme/app/actions/runners/generate-jitconfig",
		map[string]any{"name": "jit", "runner_group_id": 1, "labels": []string{"box"}}, &made)
	one := "on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'test -z \"$ACTIONS_RUNNER_INPUT_JITCONFIG\"'}]}\n"
	first, second := s.startRun(one), s.startRun(one)
	l := h.listen("ACTIONS_RUNNER_INPUT_JITCONFIG=" + made.Encoded)
	if code := l.exitCode(); code != 0 || !strings.Contains(l.output(), "Job j completed with result: Succeeded") {
		t.Errorf("exit code %d:\n%s", code, l.output())
	}
	if v := s.completed(first); *v.Conclusion != "success" {
		t.Errorf("%+v", v)
	}
	if got := s.runners(); len(got) != 0 || s.run(second).Status != "queued" {
		t.Errorf("%+v, second run %s", got, s.run(second).Status)
	}
	if _, err := os.Stat(filepath.Join(h.dir, ".runner")); err == nil {
		t.Error(".runner is still there")
	}
}

func TestExitCodes(t *testing.T) {
	t.Run("0 when stopped idle", func(t *testing.T) {
		s := start(t)
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			_, l := s.online(sig.String(), "box")
			if err := l.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if code := l.exitCode(); code != 0 {
				t.Errorf("%s: exit code %d:\n%s", sig, code, l.output())
			}
		}
		for _, r := range s.runners() {
			if r.Status != "offline" {
				t.Errorf("%+v", r)
			}
		}
	})
	t.Run("1 when not configured", func(t *testing.T) {
		if l := start(t).newHost("a").listen(); l.exitCode() != 1 || !strings.Contains(l.output(), "Runner is not configured.") {
			t.Error(l.output())
		}
	})
	t.Run("0 when the registration goes while it listens", func(t *testing.T) {
		s := start(t)
		h, l := s.online("a", "box")
		s.call(204, "DELETE", "/repos/acme/app/actions/runners/1", nil, nil)
		if code := l.exitCode(); code != 0 || h.configured() ||
			!strings.Contains(l.output(), "The runner no longer exists on the server. Cleaning up local configuration.\n√ Removed .credentials\n√ Removed .runner\n") {
			t.Errorf("exit code %d, configured %t:\n%s", code, h.configured(), l.output())
		}
	})
	t.Run("1 when the registration is gone", func(t *testing.T) {
		s := start(t)
		h := s.newHost("a")
		h.configure("box")
		s.call(204, "DELETE", "/repos/acme/app/actions/runners/1", nil, nil)
		again := h.listen()
		if code := again.exitCode(); code != 1 || !strings.Contains(again.output(), "The runner registration has been deleted from the server") {
			t.Errorf("started again: exit code %d:\n%s", code, again.output())
		}
	})
	t.Run("2 when the server is away", func(t *testing.T) {
		s := start(t)
		h := s.newHost("a")
		h.configure("box")
		s.stop()
		if l := h.listen(); l.exitCode() != 2 {
			t.Error(l.output())
		}
	})
	t.Run("5 when another listens", func(t *testing.T) {
		s := start(t)
		h, first := s.online("a", "box")
		if l := h.listen(); l.exitCode() != 5 || !strings.Contains(l.output(), "A session for this runner already exists.") {
			t.Error(l.output())
		}
		if err := first.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		first.exitCode()
		h.listen().awaitOutput("Listening for Jobs")
	})
}

func TestStoppedListenerFailsItsJob(t *testing.T) {
	s := start(t)
	_, l := s.online("a", "box")
	id := s.startRun(sleeper)
	s.awaitLog(id, "up\n")
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	v := s.completed(id)
	if *v.Conclusion != "failure" || !strings.Contains(v.Jobs[0].Log, "The runner has received a shutdown signal.") {
		t.Errorf("%+v", v)
	}
	if code := l.exitCode(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, l.output())
	}
}

func TestJobOfAKilledListenerFails(t *testing.T) {
	s := start(t)
	_, l := s.online("a", "box")
	id := s.startRun(sleeper)
	s.awaitLog(id, "up\n")
	if err := syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.exitCode()
	// The silence counts from when the server noticed, which is some real time from now.
	s.awaitRunner("silent", func(r runnerView) bool { return !r.Polling })
	s.clock.advance(s.opts.Times.Offline)
	s.awaitRunner("offline and busy", func(r runnerView) bool { return r.Status == "offline" && r.Busy })
	if v := s.run(id); v.Status != "in_progress" {
		t.Errorf("before its time: %+v", v)
	}
	s.clock.advance(lockTime - s.opts.Times.Offline)
	v := s.completed(id)
	if *v.Conclusion != "failure" || !strings.Contains(v.Jobs[0].Log, "##[error]The self-hosted runner lost communication with the server.") {
		t.Errorf("%+v", v)
	}
	if r := s.runners()[0]; r.Busy {
		t.Errorf("%+v", r)
	}
}

func TestWorkerWithoutItsListenerEndsItsJob(t *testing.T) {
	s := start(t)
	_, l := s.online("a", "box")
	id := s.startRun(sleeper)
	s.awaitLog(id, "up\n")
	if err := l.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	v := s.completed(id)
	if *v.Conclusion != "failure" || !strings.Contains(v.Jobs[0].Log, "The runner has received a shutdown signal.") {
		t.Errorf("%+v", v)
	}
}

func (s *standin) awaitRunner(what string, ok func(runnerView) bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		got := s.runners()
		if len(got) > 0 && ok(got[0]) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("runner is not %s: %+v", what, got)
		}
	}
}

func TestJobOfAKilledWorkerFails(t *testing.T) {
	s := start(t)
	_, l := s.online("a", "box")
	id := s.startRun("on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'kill -9 $PPID'}]}\n")
	v := s.completed(id)
	if *v.Conclusion != "failure" || !strings.Contains(v.Jobs[0].Log, "The worker ended before its job did.") {
		t.Errorf("%+v", v)
	}
	l.awaitOutput("Job j completed with result: Failed")
	id = s.startRun("on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'echo \"its last words\" >>/proc/$PPID/fd/2; kill -9 $PPID'}]}\n")
	if v := s.completed(id); *v.Conclusion != "failure" || !strings.Contains(v.Jobs[0].Log, "##[error]its last words\n") {
		t.Errorf("%+v", v)
	}
	next := s.startRun("on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'true'}]}\n")
	if v := s.completed(next); *v.Conclusion != "success" {
		t.Errorf("the listener did not go on: %+v", v)
	}
}

func TestRestartOfTheServerInMidJob(t *testing.T) {
	s := start(t)
	h, l := s.online("a", "box")
	id := s.startRun("on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'echo before; until [ -e go ]; do sleep 0.01; done; echo after'}]}\n")
	queued := s.startRun("on: push\njobs:\n  k: {runs-on: [self-hosted, box], steps: [{run: 'true'}]}\n")
	s.awaitLog(id, "before\n")
	s.stop()
	l.awaitOutput("Retrying until reconnected.") // or it might not notice
	if err := os.WriteFile(filepath.Join(h.dir, "_work/app/app/go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.up()
	v := s.completed(id)
	if *v.Conclusion != "success" || strings.Count(v.Jobs[0].Log, "\nbefore\n") != 1 || !strings.Contains(v.Jobs[0].Log, "\nbefore\nafter\n") {
		t.Errorf("%+v", v)
	}
	if v := s.completed(queued); *v.Conclusion != "success" {
		t.Errorf("%+v", v)
	}
	l.awaitOutput("Runner reconnected.")
	if r := s.runners(); len(r) != 1 || r[0].Status != "online" {
		t.Errorf("%+v", r)
	}
}

func TestSecretsStayOutOfSight(t *testing.T) {
	s := start(t)
	h := s.newHost("a")
	token := s.token("registration")
	cmd := h.command([]string{"ACTIONS_RUNNER_INPUT_TOKEN=" + token}, "config.sh", "--unattended", "--url", s.url+"/acme/app", "--name", "a", "--labels", "box")
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), token) {
		t.Fatalf("%v: %s", err, out)
	}
	h.listen("ACTIONS_RUNNER_INPUT_TOKEN=" + token).awaitOutput("Listening")
	id := s.startRun("on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'env; cat /proc/$PPID/cmdline /proc/$PPID/environ | tr \"\\0\" \"\\n\"'}]}\n")
	if v := s.completed(id); strings.Contains(v.Jobs[0].Log, token) {
		t.Error("a job can read the registration token")
	}
	state, err := os.ReadFile(filepath.Join(s.opts.StateDir, "journal.jsonl"))
	if err != nil || strings.Contains(string(state), token) {
		t.Errorf("the token is in the state: %v", err)
	}
}
