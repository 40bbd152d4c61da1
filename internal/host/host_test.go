package host_test

import (
	"context"
	"crypto/rand"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/host/forkcheck"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestMain: where the tests were started in the background SIGINT is ignored,
// and shells cannot trap what was ignored when they began. What is caught here
// is not ignored by those that are started from here. For the job-started hook
// this program is agentd.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], []string{"check-fork"}) {
		os.Exit(forkcheck.ExitCode(forkcheck.FromEnvironment()))
	}
	if len(os.Args) > 1 && os.Args[1] == "attach" {
		os.Exit(attachHere(os.Args[2:]))
	}
	beforeTests()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT)
	go func() { <-interrupted; os.Exit(1) }()
	os.Exit(m.Run())
}

// beforeTests may end this program, where it is something else than tests.
var beforeTests = func() {}

// patience is for processes on a machine that is busy; the tests on a machine of their own have less.
var patience = 8 * time.Minute

// The programs of a runner that does what a test tells it by files beside it.
const (
	configScript = `#!/bin/sh
cd "$(dirname "$0")" || exit 1
echo "config.sh $*"
[ ! -e ../print ] || cat ../print
[ ! -e ../hang ] || sleep 1000
[ ! -e ../fail ] || exit 1
if [ "$1" = remove ]; then [ -e ../keep ] || rm -f .runner; else
	printf '\357\273\277{"agentName": "%s"}' "remuda-7-i-1" >.runner
fi
env >"../env-config"
`
	listenerScript = `#!/bin/sh
trap 'exit 0' INT
env >../env-listener
[ ! -e ../print ] || cat ../print
echo "2026-01-01 12:00:00Z: Listening for Jobs"
[ ! -e ../exit ] || exit "$(cat ../exit)"
while :; do sleep 0.01; done
`
)

// bed is a host with a runner of scripts.
type bed struct {
	*testing.T
	*host.Host
	id, dir string
	options host.Options
}

func newBed(t *testing.T, edits ...func(o *host.Options)) *bed {
	t.Helper()
	b := &bed{T: t, id: "i-" + rand.Text(), dir: filepath.Join(t.TempDir(), "it's a host")}
	for name, script := range map[string]string{"config.sh": configScript, "bin/Runner.Listener": listenerScript} {
		b.write("../distribution/"+name, script, 0o755)
	}
	program, err := os.Executable()
	b.check(err)
	b.options = host.Options{
		InstanceID: b.id, Dir: b.dir, Program: program, Distribution: filepath.Join(b.dir, "../distribution"), RefusalWait: time.Millisecond,
	}
	for _, edit := range edits {
		edit(&b.options)
	}
	b.reopen()
	t.Cleanup(func() { // until none is left: what lives may write while its directory is removed
		if err := b.PowerOff(context.Background(), "end of the test"); err != nil {
			t.Error(err)
		}
	})
	return b
}

// reopen is what a new agent does.
func (b *bed) reopen() {
	b.Helper()
	h, err := host.New(b.options)
	b.check(err)
	b.Host = h
}

func (b *bed) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) path(name string) string { return filepath.Join(b.dir, name) }

// write writes a file. A process that starts at the same time would hold it
// open, and a file that is open for writing cannot be run.
func (b *bed) write(name, text string, mode os.FileMode) {
	b.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	b.check(os.MkdirAll(filepath.Dir(b.path(name)), 0o755))
	b.check(os.WriteFile(b.path(name), []byte(text), mode))
}

func (b *bed) read(name string) string {
	b.Helper()
	data, err := os.ReadFile(b.path(name))
	b.check(err)
	return string(data)
}

func (b *bed) look() agent.Observed {
	b.Helper()
	s, err := b.Observe(context.Background())
	b.check(err)
	return s
}

// until looks until the scene is as f wants it.
func (b *bed) until(what string, f func(s agent.Observed) bool) agent.Observed {
	b.Helper()
	var s agent.Observed
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if s = b.look(); f(s) {
			return s
		}
	}
	b.Fatalf("not within %s: %s; scene %+v", patience, what, s)
	return s
}

func (b *bed) processes() []int {
	entries, err := os.ReadDir("/proc")
	b.check(err)
	var pids []int
	for _, e := range entries {
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && strings.Contains(string(env), host.InstanceIDVariable+"="+b.id) {
			var pid int
			for _, c := range e.Name() {
				pid = pid*10 + int(c-'0')
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

func (b *bed) assignment() agent.Assignment {
	return agent.Assignment{
		Number: 7, RunID: "101", Repository: "acme/app", RunnerName: "remuda-7-i-1", Labels: []string{"101", "gpu"},
		Registration: lifecycle.Registration{Kind: lifecycle.RegistrationToken, URL: "http://github/acme/app", Secret: "s3cret"},
	}
}

func (b *bed) register() agent.Observed {
	b.Helper()
	b.check(b.Register(context.Background(), b.assignment()))
	return b.until("config.sh ends", func(s agent.Observed) bool { return s.Registered.Phase != agent.PhaseRunning })
}

func (b *bed) listen() agent.Observed {
	b.Helper()
	b.check(b.Listen(context.Background(), b.assignment()))
	return b.until("the listener listens", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerListening })
}

func TestRegisterListenStopDeregisterClean(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ctx := context.Background()
	if s := b.look(); s.Registered.Phase != agent.PhaseNone || s.Listener.Phase != agent.ListenerNone || s.Busy {
		t.Errorf("scene of a new host: %+v", s)
	}
	s := b.register()
	if s.Registered.Phase != agent.PhaseOK || s.Registered.Assignment != 7 || s.Registered.Attempt != 1 || !s.Registration {
		t.Errorf("scene after registration: %+v", s)
	}
	want := "config.sh --unattended --disableupdate --replace --no-default-labels --url http://github/acme/app --name remuda-7-i-1 --labels 101,gpu --work " + b.path("work")
	if log := b.read("logs/runner.log"); !strings.Contains(log, want+"\n") {
		t.Errorf("config.sh was called otherwise: %s", log)
	}
	if env := b.read("env-config"); !strings.Contains(env, "ACTIONS_RUNNER_INPUT_TOKEN=s3cret\n") {
		t.Errorf("config.sh got no token: %s", env)
	}
	s = b.listen()
	if s.Listener.Assignment != 7 {
		t.Errorf("scene: %+v", s)
	}
	b.reopen()
	if s = b.look(); s.Listener.Phase != agent.ListenerListening || s.Listener.Assignment != 7 || s.Registered.Phase != agent.PhaseOK {
		t.Errorf("scene of an adopted runner: %+v", s)
	}
	b.check(b.Stop(ctx))
	s = b.until("the listener ends", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
	if s.Listener.Code != 0 {
		t.Errorf("listener: %+v", s.Listener)
	}
	b.check(b.Deregister(ctx, 8, lifecycle.Registration{Kind: lifecycle.RegistrationRemove, Secret: "r3move"}))
	s = b.until("config.sh remove ends", func(s agent.Observed) bool { return s.Removed.Phase != agent.PhaseRunning })
	if s.Removed.Phase != agent.PhaseOK || s.Removed.Assignment != 8 || s.Registration {
		t.Errorf("scene after removal: %+v", s)
	}
	b.check(b.Clean(ctx, agent.CleanUp{Assignment: 8}))
	s = b.until("the clean-up ends", func(s agent.Observed) bool { return s.Cleaned.Phase != agent.PhaseRunning })
	if s.Cleaned.Phase != agent.PhaseOK || s.Cleaned.Assignment != 8 || s.Registered.Phase != agent.PhaseNone || s.Listener.Phase != agent.ListenerNone {
		t.Errorf("scene after clean-up: %+v", s)
	}
	for _, name := range []string{"agent.log", "logs/runner.log"} {
		if data, err := os.ReadFile(b.path(name)); err == nil && (strings.Contains(string(data), "s3cret") || strings.Contains(string(data), "r3move")) {
			t.Errorf("%s has a secret in it", name)
		}
	}
}

// The runner's environment is its own: nothing of the agent's, no secret.
func TestEnvironment(t *testing.T) {
	b := newBed(t, func(o *host.Options) { o.Env = map[string]string{"HTTPS_PROXY": "http://proxy:3128"} })
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cret-of-the-agent")
	b.register()
	b.listen()
	env := b.read("env-listener")
	for _, want := range []string{
		"REMUDA_INSTANCE_ID=" + b.id, "HOME=" + b.path("home"), "TMPDIR=" + b.path("tmp"), "HTTPS_PROXY=http://proxy:3128",
		"ACTIONS_RUNNER_HOOK_JOB_STARTED=" + b.path("hooks/job-started.sh"),
		"ACTIONS_RUNNER_HOOK_JOB_COMPLETED=" + b.path("hooks/job-completed.sh"),
	} {
		if !strings.Contains(env, want+"\n") {
			t.Errorf("%s is missing in %s", want, env)
		}
	}
	if strings.Contains(env, "s3cret") {
		t.Errorf("a secret is in %s", env)
	}
}

func (b *bed) pidOf(task string) string {
	data, err := os.ReadFile(b.path("state/tasks/" + task + ".pid"))
	if err != nil {
		return ""
	}
	return string(data)
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	configured := filepath.Join(t.TempDir(), "configured")
	b.check(os.Mkdir(configured, 0o755))
	b.check(os.WriteFile(filepath.Join(configured, ".runner"), nil, 0o644))
	tests := map[string]struct {
		options host.Options
		want    []string
	}{
		"relative":         {host.Options{InstanceID: "i", Dir: "here"}, []string{`directory "here" is not absolute`}},
		"relative program": {host.Options{InstanceID: "i", Dir: t.TempDir(), Program: "agentd"}, []string{`program "agentd" is not absolute`}},
		"files": {host.Options{InstanceID: "i", Dir: t.TempDir(), Program: "/usr/bin/agentd", Distribution: configured, PreRunner: "/no/such/script"},
			[]string{"config.sh", "bin/Runner.Listener", "is a configured runner", "/no/such/script"}},
	}
	for name, test := range tests {
		_, err := host.New(test.options)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in %v", name, want, err)
			}
		}
	}
}

// A host with a runner is opened also when what it was made of is gone: a job
// may be running.
func TestDistributionIsGone(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.register()
	b.listen()
	b.check(os.RemoveAll(b.options.Distribution))
	b.reopen()
	if s := b.look(); s.Listener.Phase != agent.ListenerListening {
		t.Errorf("scene %+v", s)
	}
}
