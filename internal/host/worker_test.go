package host_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
)

// withWorker has a listener that takes a job at once. Its worker runs the
// started hook when a file opens the gate, and writes down how that ended.
const withWorker = `#!/bin/bash
trap 'exit 0' INT
echo Listening for Jobs
bash -c "exec -a Runner.Worker bash -c '
	until [ -e ../gate ]; do sleep 0.01; done
	GITHUB_RUN_ID=101 GITHUB_REPOSITORY=acme/app GITHUB_EVENT_PATH=../event.json bash -e \"\$ACTIONS_RUNNER_HOOK_JOB_STARTED\"
	echo \$? >../result.new; mv ../result.new ../result
	until [ -e ../end ]; do sleep 0.01; done
'" &
while :; do sleep 0.01; done
`

// A job that was taken before the release may start after it, and its listener
// is not stopped under it.
func TestJobTakenBeforeTheRelease(t *testing.T) {
	t.Parallel()
	for _, allowed := range []agent.Allowed{serving("101", "acme/app"), oneOf("acme/app"), oneOf("acme"), oneOrFork("acme")} {
		t.Run(allowed.String(), func(t *testing.T) {
			t.Parallel()
			takenBeforeTheRelease(t, allowed)
		})
	}
}

func takenBeforeTheRelease(t *testing.T, allowed agent.Allowed) {
	b := newBed(t)
	ctx := context.Background()
	b.check(os.RemoveAll(b.path("runner")))
	b.write("../distribution/bin/Runner.Listener", withWorker, 0o755)
	b.write("event.json", "{}", 0o644)
	if allowed.Forks {
		b.write("event.json", `{"pull_request": {"head": {"repo": {"id": 8}}, "base": {"repo": {"id": 7}}}}`, 0o644)
	}
	b.check(b.Allow(ctx, allowed))
	b.register()
	b.listen()
	b.until("a worker lives", func(s agent.Observed) bool { return s.Busy })
	b.check(b.Allow(ctx, agent.Allowed{}))
	b.check(b.Allow(ctx, agent.Allowed{})) // by an agent that was killed in between
	b.write("gate", "", 0o644)
	s := b.until("the hook has run", func(agent.Observed) bool { _, err := os.Stat(b.path("result")); return err == nil })
	if result := b.read("result"); result != "0\n" || s.Refused != "" {
		t.Errorf("the hook ended with %q, refused %q: %s", result, s.Refused, b.read("logs/runner.log"))
	}
	if out, ok := b.job("job-started.sh", "101", "acme/app"); ok {
		t.Errorf("another job of the run started: %s", out)
	}
	b.check(b.Stop(ctx))
	if s := b.look(); s.Listener.Phase != agent.ListenerListening || !s.Busy || s.Jobs != 1 {
		t.Errorf("scene after a stop that must not be: %+v", s)
	}
	for range len(b.Changed()) {
		<-b.Changed()
	}
	b.write("end", "", 0o644)
	select {
	case <-b.Changed():
	case <-time.After(patience):
		t.Error("the end of the worker wakes no reader")
	}
	b.until("no worker lives", func(s agent.Observed) bool { return !s.Busy })
	b.check(b.Stop(ctx))
	b.until("the listener ends", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
}

// A worker whose listener was killed still counts.
func TestOrphanedWorker(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.check(os.RemoveAll(b.path("runner")))
	b.write("../distribution/bin/Runner.Listener", withWorker, 0o755)
	b.register()
	b.listen()
	b.until("a worker lives", func(s agent.Observed) bool { return s.Busy })
	listener := strings.Fields(b.childrenOf(strings.TrimSpace(b.pidOf("listen"))))
	b.kill(append([]string{b.pidOf("listen")}, listener...)...) // the wrapper first, which would write down how the listener ended
	s := b.until("the listener is gone", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
	if !s.Busy || s.Listener.Code != agent.CodeUnknown {
		t.Errorf("scene %+v", s)
	}
}

func (b *bed) kill(pids ...string) {
	b.Helper()
	for _, text := range pids {
		pid, err := strconv.Atoi(strings.TrimSpace(text))
		b.check(err)
		b.check(syscall.Kill(pid, syscall.SIGKILL))
	}
}

func (b *bed) childrenOf(pid string) string {
	b.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	b.check(err)
	return string(data)
}

// A listener that does not end when asked is killed when asked again, and what
// was started with it.
func TestStubbornListener(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.write("../distribution/bin/Runner.Listener", "#!/bin/sh\ntrap '' INT\necho Listening for Jobs\nwhile :; do sleep 0.05; done\n", 0o755)
	b.check(os.RemoveAll(b.path("runner")))
	b.register()
	b.listen()
	b.check(b.Stop(context.Background()))
	b.until("the listener is stopping", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerStopping })
	b.reopen()
	b.check(b.Stop(context.Background()))
	s := b.until("the listener is killed", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
	if s.Listener.Code != agent.CodeUnknown {
		t.Errorf("listener: %+v", s.Listener)
	}
}

func TestExitCodesOfTheListener(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"0", "1", "2", "5", "7"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.register()
			b.write("exit", code, 0o644)
			b.check(b.Listen(context.Background(), b.assignment()))
			s := b.until("the listener ends", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
			if got := s.Listener.Code; string(rune('0'+got)) != code || !strings.Contains(s.Listener.Detail, "Listening for Jobs") {
				t.Errorf("listener: %+v", s.Listener)
			}
			b.reopen()
			if again := b.look().Listener; again.Code != s.Listener.Code || again.Phase != agent.ListenerExited {
				t.Errorf("a new agent sees %+v", again)
			}
		})
	}
}

// takesJobs has a listener that prints that it has a job, and starts a worker for it when a file opens the gate.
const takesJobs = `#!/bin/bash
trap 'exit 0' INT
stamp() { date -u '+%Y-%m-%d %H:%M:%SZ'; }
echo "$(stamp): Listening for Jobs"
for n in 1 2; do
	until [ -e ../take$n ]; do sleep 0.01; done
	echo "$(stamp): Running job: job $n"
	until [ -e ../gate$n ]; do sleep 0.01; done
	bash -c "exec -a Runner.Worker bash -c 'until [ -e ../end$n ]; do sleep 0.01; done'" &
	wait "$!"
	echo "$(stamp): Job job $n completed with result: Succeeded"
done
while :; do sleep 0.01; done
`

// TestJobTakenAndNotStarted looks at a listener between "Running job:" and its worker, for two jobs in a row and after the agent was
// restarted: it counts as busy and is not stopped.
func TestJobTakenAndNotStarted(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ctx := context.Background()
	b.check(os.RemoveAll(b.path("runner")))
	b.write("../distribution/bin/Runner.Listener", takesJobs, 0o755)
	b.register()
	b.listen()
	for _, n := range []string{"1", "2"} {
		if s := b.look(); s.Busy || s.Taken {
			t.Errorf("before job %s: %+v", n, s)
		}
		b.write("take"+n, "", 0o644)
		b.until("the job is taken", func(s agent.Observed) bool { return s.Taken && s.Busy })
		b.reopen()
		b.check(b.Stop(ctx))
		if s := b.look(); !s.Taken || !s.Busy || s.Listener.Phase != agent.ListenerListening {
			t.Errorf("job %s after a stop that must not be: %+v", n, s)
		}
		b.write("gate"+n, "", 0o644)
		b.until("a worker lives", func(s agent.Observed) bool { return s.Busy && !s.Taken })
		b.write("end"+n, "", 0o644)
		b.until("the job is over", func(s agent.Observed) bool { return !s.Busy })
	}
	b.check(b.Stop(ctx))
	b.until("the listener ends", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
}

// TestJobTakenAndNeverStarted has a job that the listener took long ago and gave to no worker: it has given it up.
func TestJobTakenAndNeverStarted(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.check(os.RemoveAll(b.path("runner")))
	long := strings.ReplaceAll(takesJobs, "date -u", "date -u -d '2 minutes ago'")
	b.write("../distribution/bin/Runner.Listener", long, 0o755)
	b.register()
	b.listen()
	b.write("take1", "", 0o644)
	b.until("the job is taken", func(agent.Observed) bool { return strings.Contains(b.read("logs/runner.log"), "Running job") })
	if s := b.look(); s.Busy || s.Taken {
		t.Errorf("scene %+v", s)
	}
	b.check(b.Stop(context.Background()))
	b.until("the listener ends", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
}
