//go:build testhost

package host_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/host/dockerstore"
	"github.com/remuda-ci/remuda/internal/host/units"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/tree"
)

// These run as root in a machine of their own that systemd has booted, one after
// the other: make test-host. This program is agentd for the units that it
// starts.
func init() {
	patience = time.Minute // internal/e2e/host ends all of them after five
	beforeTests = func() {
		args := os.Args[1:]
		switch {
		case len(args) > 0 && args[0] == "check-metadata":
			exit(units.CheckMetadata(context.Background()))
		case len(args) > 2 && args[0] == "prepare":
			exit(openUnits(args[2]).PrepareNow(context.Background()))
		case len(args) > 4 && args[0] == "clean":
			n, err := strconv.ParseInt(args[4], 10, 64)
			if err != nil {
				exit(err)
			}
			exit(openUnits(args[2]).CleanNow(context.Background(), n))
		}
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// fakeReset notes what it was asked to do, and renews two directories.
type fakeReset struct{ dir string }

func (p fakeReset) note(word string) error {
	f, err := os.OpenFile(filepath.Join(p.dir, "../reset"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, word)
	return err
}

func (p fakeReset) Record(context.Context) error { return p.note("record") }
func (p fakeReset) Run(_ context.Context, r *statement.Reset, _ bool) error {
	r.Did("units")
	return errors.Join(p.note("clean"), tree.Renew(filepath.Join(p.dir, "work"), tree.Owner{}, host.ModeWork),
		tree.Mirror(filepath.Join(p.dir, "../distribution"), filepath.Join(p.dir, "runner"), tree.Owner{}))
}
func (p fakeReset) KeepImages(context.Context, dockerstore.Cache) (dockerstore.Outcome, error) {
	return dockerstore.Outcome{}, p.note("keep images")
}
func (p fakeReset) RemoveImages(context.Context) error { return p.note("remove images") }
func (p fakeReset) Verify(_ context.Context, r *statement.Reset, _ bool) error {
	r.Check("directories", 0)
	if _, err := os.Stat(filepath.Join(p.dir, "../doubt")); err == nil {
		return fmt.Errorf("a doubt")
	}
	return p.note("check")
}

// optionsOf is the host of a directory; the path stands in for a configuration.
func optionsOf(dir string) host.Options {
	who, err := user.Lookup("runner")
	if err != nil {
		panic(err)
	}
	uid, _ := strconv.Atoi(who.Uid)
	gid, _ := strconv.Atoi(who.Gid)
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	o := host.Options{InstanceID: "i-1", Dir: dir, Config: dir, Program: program, Distribution: filepath.Join(dir, "../distribution"), Env: map[string]string{"https_proxy": "http://proxy"}, Systemd: &host.Systemd{
		User: "runner", UID: uid, GID: gid, Home: who.HomeDir, Secrets: filepath.Join(dir, "../secrets"),
		Reset: fakeReset{dir}, Limits: units.Limits{Tasks: 500, OpenFiles: 4096},
	}}
	if script := filepath.Join(dir, "../pre"); fileExists(script) {
		o.PreRunner = script
	}
	_, err = os.Stat(filepath.Join(dir, "../metadata"))
	o.Systemd.JobsReadMetadata = err == nil
	return o
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func openUnits(dir string) *host.Host {
	h, err := host.New(optionsOf(dir))
	if err != nil {
		exit(err)
	}
	return h
}

// newUnitBed is a bed of units, prepared.
func newUnitBed(t *testing.T) *bed {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this must run as root in a machine of its own: make test-host")
	}
	root, err := os.MkdirTemp("/var/lib", "remuda-test-")
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{T: t, id: "i-1", dir: filepath.Join(root, "host")}
	b.check(os.Chmod(root, 0o755))
	b.check(os.Mkdir(filepath.Join(root, "secrets"), 0o700))
	for name, script := range map[string]string{"config.sh": configScript, "bin/Runner.Listener": listenerScript} {
		script = strings.ReplaceAll(script, "../env", "env")
		b.write("../distribution/"+name, strings.Replace(script, "printf '", "touch .credentials; printf '", 1), 0o755)
	}
	b.options = optionsOf(b.dir)
	b.reopen()
	t.Cleanup(func() {
		b.systemctl("kill", "--signal=KILL", "remuda-*")
		b.systemctl("stop", "remuda-*")
		b.systemctl("reset-failed", "remuda-*")
		b.check(os.RemoveAll(root))
	})
	return b
}

func (b *bed) systemctl(args ...string) string {
	out, _ := exec.Command("systemctl", args...).CombinedOutput() // the caller looks at what it says
	return string(out)
}

func (b *bed) prepare() {
	b.Helper()
	b.check(b.Prepare(context.Background()))
	s := b.until("prepared", func(s agent.Observed) bool {
		return s.Prepared.Phase == agent.PhaseOK || s.Prepared.Phase == agent.PhaseFailed
	})
	if s.Prepared.Phase != agent.PhaseOK {
		b.Fatalf("prepared: %+v", s.Prepared)
	}
}

func TestUnitsOfARun(t *testing.T) {
	b := newUnitBed(t)
	b.prepare()
	info, err := os.Stat(b.path("runner"))
	b.check(err)
	if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != b.options.Systemd.UID || st.Gid != 0 || info.Mode().Perm() != 0o755 {
		t.Errorf("runner is %s of %d:%d", info.Mode(), st.Uid, st.Gid)
	}
	b.check(b.Allow(context.Background(), serving("101", "acme/app")))
	began := time.Now()
	b.register()
	t.Logf("registered after %s", time.Since(began))
	if shown := b.systemctl("show", "remuda-register-7.service"); strings.Contains(shown, "s3cret") {
		t.Errorf("the token can be seen: %s", shown)
	}
	began = time.Now()
	b.listen()
	t.Logf("listening after %s", time.Since(began))
	left, err := filepath.Glob(b.path("../secrets/*"))
	b.check(err)
	if len(left) > 0 {
		t.Errorf("secrets are left: %v", left)
	}
	shown := b.systemctl("show", "remuda-runner-7.service", "-p", "User,ControlGroup,NoNewPrivileges,KillMode,KillSignal,TimeoutStopUSec,TasksMax,LimitNPROC,LimitNOFILE,OOMPolicy")
	for _, want := range []string{
		"User=runner", "ControlGroup=/remuda.slice/remuda-runner-7.service", "NoNewPrivileges=yes", "KillMode=mixed",
		"KillSignal=2", "TimeoutStopUSec=45s",
		"TasksMax=500", "LimitNPROC=500", "LimitNOFILE=4096", "OOMPolicy=continue",
	} {
		if !strings.Contains(shown, want+"\n") {
			t.Errorf("not %s: %s", want, shown)
		}
	}
	if env := b.read("runner/env-listener"); !strings.Contains(env, "HOME=/home/runner\n") || strings.Contains(env, "TOKEN") {
		t.Errorf("the listener's environment: %s", env)
	}
	if err := b.PrepareNow(context.Background()); err == nil || !strings.Contains(err.Error(), "remuda-runner-7.service is running") {
		t.Errorf("prepared under a runner: %v", err)
	}
	b.adopted()
	b.check(b.Stop(context.Background()))
	s := b.until("it ended", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
	if s.Listener.Code != 0 || !s.Listener.Listened || !strings.Contains(s.Listener.Detail, "Listening for Jobs") {
		t.Errorf("listener %+v", s.Listener)
	}
}

// adopted: a new agent finds the listener, also when it has lost its files.
func (b *bed) adopted() {
	b.Helper()
	for _, lost := range []bool{false, true} {
		if lost {
			b.check(os.RemoveAll(b.path("state")))
		}
		b.reopen()
		l := b.until("adopted", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerListening }).Listener
		if l.Assignment != 7 || l.StartedAt.IsZero() {
			b.Errorf("files lost: %t; listener %+v", lost, l)
		}
	}
}

// TestBeginningOfAUnit: what a unit writes comes after the time of its beginning, also what it writes before systemd says that its program has started.
func TestBeginningOfAUnit(t *testing.T) {
	m := units.New(func() {})
	const name = "remuda-beginning.service"
	before := time.Now()
	err := m.Start(t.Context(), units.Unit{
		Name: name, Description: "a test", Identifier: "test", Dir: "/",
		Check: []string{"/bin/echo", "written at the beginning"}, Args: []string{"/bin/sleep", "60"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Signal(context.Background(), name, syscall.SIGKILL, true) })
	at, err := m.BegunAt(t.Context(), name)
	if err != nil || at.Before(before) || at.After(time.Now()) {
		t.Fatalf("begun at %s, %v; it is %s", at, err, time.Now())
	}
	for end := time.Now().Add(patience); !units.Said(t.Context(), name, at, []byte("written at the beginning")); {
		if time.Now().After(end) {
			t.Fatal("what it wrote is not found")
		}
	}
	if units.Said(t.Context(), name, time.Now(), []byte("written at the beginning")) {
		t.Error("what it wrote is found after its time, so that this proves nothing")
	}
}

func TestUnitsThatEndBadly(t *testing.T) {
	tests := map[string]struct {
		before string // a file of the runner's
		text   string
		code   int
	}{
		"exit code 7": {"exit", "7", 7},
		"exit code 1": {"exit", "1", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newUnitBed(t)
			b.prepare()
			b.register()
			b.write(test.before, test.text, 0o644)
			b.check(b.Listen(context.Background(), b.assignment()))
			s := b.until("it ended", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
			if s.Listener.Code != test.code {
				t.Errorf("listener %+v", s.Listener)
			}
			b.reopen() // an agent that did not hear it say so
			if s = b.look(); !s.Listener.Listened || s.Listener.Code != test.code {
				t.Errorf("to a new agent: %+v", s.Listener)
			}
			// Again, although one of that name has failed.
			b.check(os.Remove(b.path(test.before)))
			b.listen()
		})
	}
	t.Run("config.sh fails", func(t *testing.T) {
		b := newUnitBed(t)
		b.prepare()
		b.write("fail", "", 0o644)
		b.write("print", "Http response code: BadGateway from 'POST https://github/actions/runner-registration' (Request Id: 1)", 0o644)
		b.check(b.Register(context.Background(), b.assignment()))
		s := b.until("it failed", func(s agent.Observed) bool { return s.Registered.Phase == agent.PhaseFailed })
		if s.Registered.Cause != lifecycle.CauseGitHub || !strings.Contains(s.Registered.Detail, "BadGateway") {
			t.Errorf("registered %+v", s.Registered)
		}
	})
	t.Run("systemd was reloaded meanwhile", func(t *testing.T) {
		b := newUnitBed(t)
		b.prepare()
		b.register()
		b.listen()
		b.systemctl("daemon-reload")
		b.check(b.Stop(context.Background()))
		b.until("it ended", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
	})
	t.Run("killed", func(t *testing.T) {
		b := newUnitBed(t)
		b.prepare()
		b.register()
		b.listen()
		b.systemctl("kill", "--signal=KILL", "remuda-runner-7.service")
		s := b.until("it ended", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
		if s.Listener.Code != agent.CodeUnknown {
			t.Errorf("listener %+v", s.Listener)
		}
	})
	t.Run("the pre-runner script fails", func(t *testing.T) {
		b := newUnitBed(t)
		b.write("../pre", "echo nothing to be had; exit 3", 0o755)
		b.options = optionsOf(b.dir)
		b.reopen()
		b.check(b.Prepare(context.Background()))
		s := b.until("it failed", func(s agent.Observed) bool { return s.Prepared.Phase == agent.PhaseFailed })
		if !strings.Contains(s.Prepared.Detail, "nothing to be had") {
			t.Errorf("prepared %+v", s.Prepared)
		}
	})
}

// TestTakenJobOfAUnit reads from the journal that a listener has a job before there is a worker.
func TestTakenJobOfAUnit(t *testing.T) {
	followers := func() int { // also those of other tests
		out, _ := exec.Command("pgrep", "-f", "journalctl.*--follow").Output() // it fails where there are none
		return len(strings.Fields(string(out)))
	}
	before := followers()
	b := newUnitBed(t)
	b.write("../distribution/bin/Runner.Listener", takesJobs, 0o755)
	b.prepare()
	b.register()
	b.listen()
	for _, n := range []string{"1", "2"} {
		b.write("take"+n, "", 0o644)
		b.until("the job is taken", func(s agent.Observed) bool { return s.Taken && s.Busy })
		b.check(b.Stop(context.Background()))
		if s := b.look(); !s.Taken || s.Listener.Phase != agent.ListenerListening {
			t.Errorf("job %s after a stop that must not be: %+v", n, s)
		}
		b.write("gate"+n, "", 0o644)
		b.until("a worker lives", func(s agent.Observed) bool { return s.Busy && !s.Taken })
		b.write("end"+n, "", 0o644)
		b.until("the job is over", func(s agent.Observed) bool { return !s.Busy })
	}
	b.check(b.Stop(context.Background()))
	b.until("it ended", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
	b.until("the journal is not followed any more", func(agent.Observed) bool { return followers() <= before })
}

// endsItsWorker has a listener with a worker. It ends the worker itself when it is interrupted.
const endsItsWorker = `#!/bin/bash
trap 'echo interrupted; kill -0 "$worker" && echo its worker lives; kill "$worker"; exit 0' INT
trap 'echo terminated; exit 1' TERM
bash -c 'exec -a Runner.Worker sleep 1000' &
worker=$!
echo Listening for Jobs
while :; do sleep 0.01; done
`

// TestStopOfARunnersUnit stops the unit from outside: the listener alone is interrupted, and ends its worker in its own way.
func TestStopOfARunnersUnit(t *testing.T) {
	b := newUnitBed(t)
	b.write("../distribution/bin/Runner.Listener", endsItsWorker, 0o755)
	b.prepare()
	b.register()
	b.listen()
	b.systemctl("stop", "remuda-runner-7.service")
	s := b.until("it ended", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
	if s.Listener.Code != 0 || !strings.Contains(s.Listener.Detail, "interrupted\nits worker lives") {
		t.Errorf("listener %+v", s.Listener)
	}
}

// refusedUnit is a host with a listener whose worker has a job that the hook refuses.
func refusedUnit(t *testing.T, wait time.Duration) *bed {
	b := newUnitBed(t)
	b.write("../distribution/bin/Runner.Listener", strings.ReplaceAll(withForeignWorker, "../", ""), 0o755)
	b.prepare()
	b.options.RefusalWait = wait
	b.reopen()
	b.check(b.Allow(context.Background(), serving("101", "acme/app")))
	b.register()
	b.check(b.Listen(context.Background(), b.assignment()))
	return b
}

// The hook, as the user of jobs, ends the worker that it refused, and nothing else of the unit.
func TestRefusalInAUnit(t *testing.T) {
	b := refusedUnit(t, time.Millisecond)
	b.until("the job was refused, its worker is gone, and the listener goes on", func(s agent.Observed) bool {
		return s.Refused != "" && !s.Busy && s.Listener.Phase == agent.ListenerListening
	})
}

// The agent, as root without the right to signal others' processes, ends all of the unit when its hook did not end the worker.
func TestEndRefusedInAUnit(t *testing.T) {
	b := refusedUnit(t, time.Hour)
	b.until("the refused worker is seen", func(s agent.Observed) bool { return s.RefusedWorker != 0 })
	step := strings.TrimSpace(b.read("runner/step"))
	b.check(b.EndRefused(context.Background()))
	b.gone(step)
	s := b.until("all of it has ended", func(s agent.Observed) bool { return !s.Busy && s.Listener.Phase == agent.ListenerExited })
	if s.Listener.Code != agent.CodeUnknown || s.RefusedWorker != 0 {
		t.Errorf("scene %+v", s)
	}
	b.check(b.Listen(context.Background(), b.assignment())) // for its own run
	b.until("it listens again", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerListening })
}

// A removal token is good for every runner of its scope: a job that has changed
// what it found must not be given one, nor keep its runner registered.
func TestDeregistrationIsNoJobsAffair(t *testing.T) {
	b := newUnitBed(t)
	b.prepare()
	b.register()
	evil := "#!/bin/sh\nenv >" + b.path("work/stolen") + "\n"
	b.check(os.Remove(b.path("runner/config.sh")))
	b.write("runner/config.sh", evil, 0o755)
	b.check(os.Remove(b.path("runner/.runner")))
	if s := b.look(); !s.Registration {
		t.Errorf("a job took the registration away: %+v", s)
	}
	b.check(b.Deregister(context.Background(), 8, lifecycle.Registration{Kind: lifecycle.RegistrationRemove, Secret: "r3move"}))
	s := b.until("config.sh remove ends", func(s agent.Observed) bool {
		return s.Removed.Phase != agent.PhaseRunning && s.Removed.Phase != agent.PhaseNone
	})
	if s.Removed.Phase != agent.PhaseOK || s.Registration {
		t.Errorf("scene %+v", s)
	}
	if fileExists(b.path("work/stolen")) {
		t.Error("what a job had put there was run")
	}
	env := b.read("registered/env-config")
	for _, want := range []string{"ACTIONS_RUNNER_INPUT_TOKEN=r3move\n", "HOME=" + b.path("registered") + "\n", "https_proxy=http://proxy\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("%q is not in the environment of config.sh: %s", want, env)
		}
	}
}

func TestCleanUnit(t *testing.T) {
	b := newUnitBed(t)
	b.prepare()
	b.register()
	b.write("work/leftover", "", 0o644)
	b.write("runner/_diag/leftover", "said", 0o644)
	s := b.clean(8)
	if s.Cleaned.Phase != agent.PhaseOK || s.Cleaned.Assignment != 8 || s.Registration || s.Registered.Phase != agent.PhaseNone {
		t.Errorf("scene %+v", s)
	}
	for _, name := range []string{"work/leftover", "runner/_diag"} {
		if fileExists(b.path(name)) {
			t.Errorf("%s is left", name)
		}
	}
	if kept := b.read("state/diag/leftover"); kept != "said" {
		t.Errorf("kept of _diag: %q", kept)
	}
	if info, err := os.Stat(b.path("state/diag")); err != nil || info.Mode() != os.ModeDir|0o700 || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("state/diag: %v, %v", info, err)
	}
	if words := b.read("../reset"); words != "record\nclean\ncheck\n" {
		t.Errorf("asked of the reset: %q", words)
	}
	b.write("../pre", "echo x >>"+b.path("../pre-runs")+"; test $(wc -l <"+b.path("../pre-runs")+") = 1", 0o755)
	if s = b.clean(9); s.Cleaned.Phase != agent.PhaseOK {
		t.Errorf("with a pre-runner script: %+v", s.Cleaned)
	}
	if s = b.clean(10); s.Cleaned.Phase != agent.PhaseFailed || !strings.Contains(s.Cleaned.Detail, "make host ready: pre-runner script") {
		t.Errorf("with a pre-runner script that fails: %+v", s.Cleaned)
	}
	b.write("../doubt", "", 0o644)
	if s = b.clean(11); s.Cleaned.Phase != agent.PhaseFailed || !strings.Contains(s.Cleaned.Detail, "a doubt") {
		t.Errorf("with a doubt: %+v", s.Cleaned)
	}
}

// A kernel that filters by control group needs nothing else; the unit is not
// started where nothing keeps it off.
func TestMetadataIsOutOfReach(t *testing.T) {
	if out, err := exec.Command("ip", "addr", "add", "169.254.169.254/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "addr", "del", "169.254.169.254/32", "dev", "lo").Run() })
	service, err := net.Listen("tcp", "169.254.169.254:80")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Close() })
	b := newUnitBed(t)
	b.prepare()
	b.write("../distribution/bin/Runner.Listener", "#!/bin/bash\ntimeout 1 bash -c 'echo >/dev/tcp/169.254.169.254/80' && echo reached || echo kept off\n"+
		strings.TrimPrefix(listenerScript, "#!/bin/sh\n"), 0o755)
	b.prepareAgain()
	b.register()
	b.listen()
	b.check(b.Stop(context.Background()))
	s := b.until("it ended", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
	if !strings.Contains(s.Listener.Detail, "kept off") {
		t.Errorf("listener %+v", s.Listener)
	}
	if err := exec.Command("systemd-run", "--wait", "--quiet", "--uid=runner", b.options.Program, "check-metadata").Run(); err == nil {
		t.Error("a user whom nothing keeps off passes the check")
	}
}

// prepareAgain is what a boot does.
func (b *bed) prepareAgain() {
	b.Helper()
	b.check(b.PrepareNow(context.Background()))
}

// withPatientWorker has a listener that takes a job of run 101 at once. Its worker lives until its hook has ended well.
const withPatientWorker = `#!/bin/bash
trap 'exit 0' INT
echo Listening for Jobs
bash -c "exec -a Runner.Worker bash -c '
	GITHUB_RUN_ID=101 GITHUB_REPOSITORY=acme/app bash -e \"\$ACTIONS_RUNNER_HOOK_JOB_STARTED\" || while :; do sleep 0.01; done
'" &
while :; do sleep 0.01; done
`

// A host that registered ahead of need: its label is a secret, the hook, as the user of jobs, waits for the agent, and
// the runner can be discarded without GitHub.
func TestStandbyInUnits(t *testing.T) {
	b := newUnitBed(t)
	b.write("../distribution/bin/Runner.Listener", withPatientWorker, 0o755)
	b.prepare()
	b.options.StandbyWait = time.Hour
	b.reopen()
	ctx := context.Background()
	b.check(b.Allow(ctx, inStandby))
	b.check(b.Register(ctx, b.aheadOfNeed()))
	b.until("config.sh ends", func(s agent.Observed) bool { return s.Registered.Phase == agent.PhaseOK && s.Registration })
	if shown := b.systemctl("show", "remuda-register-7.service"); strings.Contains(shown, "l4bel") {
		t.Errorf("the label can be seen: %s", shown)
	}
	if env := b.read("runner/env-config"); !strings.Contains(env, "ACTIONS_RUNNER_INPUT_LABELS=l4bel-of-a-standby\n") {
		t.Errorf("environment of config.sh: %s", env)
	}
	b.check(b.Listen(ctx, b.aheadOfNeed()))
	b.until("a job waits in its hook", func(s agent.Observed) bool { return s.Busy && s.Listener.Phase == agent.ListenerListening })
	if s := b.look(); s.Jobs != 0 || s.Refused != "" || s.Allowed != inStandby {
		t.Errorf("scene while it waits %+v", s)
	}
	b.check(b.Allow(ctx, serving("101", "acme/app")))
	b.until("the job was let in and is over", func(s agent.Observed) bool { return s.Jobs == 1 && !s.Busy })
	b.check(b.Stop(ctx))
	b.until("it ended", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
	s := b.clean(8)
	if s.Cleaned.Phase != agent.PhaseOK || s.Registration || s.Registered.Phase != agent.PhaseNone || fileExists(b.path("registered/.credentials")) {
		t.Errorf("scene after the clean-up %+v", s)
	}
}
