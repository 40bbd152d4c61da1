package host_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/proc"
)

// withForeignWorker has a listener that takes a job of run 999 at once. Its worker has a step in the background, as one whose
// condition holds has after a hook that failed.
const withForeignWorker = `#!/bin/bash
trap 'exit 0' INT
echo Listening for Jobs
bash -c "exec -a Runner.Worker bash -c '
	while :; do echo step >>../loot; sleep 0.01; done &
	echo \$! >../step
	GITHUB_RUN_ID=999 GITHUB_REPOSITORY=evil/app bash -e \"\$ACTIONS_RUNNER_HOOK_JOB_STARTED\"
	until [ -e ../end ]; do sleep 0.01; done
'" &
while :; do sleep 0.01; done
`

// foreignWorker has a worker whose job is refused, and whose hook waits for an hour before it ends it.
func foreignWorker(t *testing.T) *bed {
	t.Helper()
	b := newBed(t, func(o *host.Options) { o.RefusalWait = time.Hour })
	b.check(os.RemoveAll(b.path("runner")))
	b.write("../distribution/bin/Runner.Listener", withForeignWorker, 0o755)
	b.check(b.Allow(context.Background(), serving("101", "acme/app")))
	b.register()
	b.check(b.Listen(context.Background(), b.assignment()))
	return b
}

// The agent ends a worker that its hook did not end, and what its job runs, even if the job deleted the hook's file after it was
// seen.
func TestEndRefused(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(b *bed){
		"with its listener": func(*bed) {},
		"without the file":  func(b *bed) { b.check(os.Remove(b.path("job/box/refused-worker"))) },
		"without its listener": func(b *bed) {
			b.kill(append([]string{b.pidOf("listen")}, strings.Fields(b.childrenOf(strings.TrimSpace(b.pidOf("listen"))))...)...)
			b.until("the listener is gone", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := foreignWorker(t)
			s := b.until("the refused worker is seen", func(s agent.Observed) bool { return s.RefusedWorker != 0 && s.Refused == "999 of evil/app" }) // the hook writes one after the other, and each a moment after it has made the file
			if !s.Busy || proc.Default.Program(s.RefusedWorker) != "Runner.Worker" {
				t.Errorf("scene %+v", s)
			}
			before(b)
			b.check(b.EndRefused(context.Background()))
			s = b.until("no worker lives", func(s agent.Observed) bool { return !s.Busy })
			if s.RefusedWorker != 0 || s.Refused == "" {
				t.Errorf("scene after its end %+v", s)
			}
			b.gone(strings.TrimSpace(b.read("step")))
			b.check(b.EndRefused(context.Background())) // which finds nothing to end
		})
	}
}

// gone waits for the end of a process that was killed.
func (b *bed) gone(pid string) {
	b.Helper()
	n, err := strconv.Atoi(pid)
	b.check(err)
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		if s, err := proc.Default.Stat(n); err != nil || s.Dead() {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("process %s lives", pid)
		}
	}
}

// A worker whose job was let in is never ended, whatever a job of the run, or a refusal before it, has left in the box.
func TestEndRefusedSparesAJobThatWasLetIn(t *testing.T) {
	t.Parallel()
	left := map[string]func(worker proc.ID) string{
		"an old refusal":          func(proc.ID) string { return "1 1\n" },
		"one with its pid":        func(w proc.ID) string { return fmt.Sprintf("%d %d\n", w.PID, w.Start-1) },
		"one without a start":     func(w proc.ID) string { return fmt.Sprintf("%d \n", w.PID) },
		"one without a pid":       func(w proc.ID) string { return fmt.Sprintf(" %d\n", w.Start) },
		"nothing":                 func(proc.ID) string { return "" },
		"more than one, the last": func(w proc.ID) string { return fmt.Sprintf("1 1\n%d %d\n", w.PID, w.Start) },
	}
	b := newBed(t)
	b.check(os.RemoveAll(b.path("runner")))
	b.write("../distribution/bin/Runner.Listener", withWorker, 0o755)
	b.check(b.Allow(context.Background(), serving("101", "acme/app")))
	b.job("job-started.sh", "999", "evil/app") // of another worker, which is gone
	b.register()
	b.listen()
	b.until("a worker lives", func(s agent.Observed) bool { return s.Busy })
	b.write("gate", "", 0o644)
	b.until("its job is let in", func(s agent.Observed) bool { return s.Jobs == 1 })
	worker := b.worker()
	look := func(when string) {
		t.Helper()
		if s := b.look(); s.RefusedWorker != 0 || !s.Busy {
			t.Errorf("%s: scene %+v", when, s)
		}
		b.check(b.EndRefused(context.Background()))
		if !proc.Default.Alive(worker) {
			t.Fatalf("%s: the worker was ended", when)
		}
	}
	look("after a refusal of another job")
	for name, text := range left {
		b.write("job/box/refused-worker", text(worker), 0o644)
		look(name)
	}
	b.check(os.Remove(b.path("job/box/refused-worker")))
	b.check(syscall.Mkfifo(b.path("job/box/refused-worker"), 0o644))
	look("a pipe")
	b.write("end", "", 0o644)
}

// worker finds the worker of the running listener.
func (b *bed) worker() proc.ID {
	b.Helper()
	for _, pid := range b.processes() {
		if proc.Default.Program(pid) == "Runner.Worker" {
			s, err := proc.Default.Stat(pid)
			b.check(err)
			return s.ID
		}
	}
	b.Fatal("there is no worker")
	return proc.ID{}
}

// Nothing that a job left in the box keeps a refusal from ending the worker.
func TestRefusalInABoxThatAJobSpoiled(t *testing.T) {
	t.Parallel()
	put := map[string]func(path string) error{
		"pipes":       func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"directories": func(path string) error { return os.MkdirAll(filepath.Join(path, "more"), 0o755) },
		"links":       func(path string) error { return os.Symlink("/nowhere/at/all", path) },
		"links to pipes": func(path string) error {
			if err := syscall.Mkfifo(path+".pipe", 0o644); err != nil {
				return err
			}
			return os.Symlink(path+".pipe", path)
		},
		"no box": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	}
	for name, put := range put {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.check(b.Allow(context.Background(), serving("101", "acme/app")))
			for _, file := range []string{"refused", "refused-worker"} {
				b.check(put(b.path("job/box/" + file)))
			}
			out, ok := b.job("job-started.sh", "999", "evil/app")
			if ok || !strings.Contains(out, "This is a job of run 999 of evil/app") {
				t.Errorf("starts %t: %s", ok, out)
			}
		})
	}
}

// A worker that is gone before the hook would end it is not looked for by its pid alone, and an output that cannot be written to
// does not spare it.
func TestRefusalWhileTheWorkerEnds(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(o *host.Options) { o.RefusalWait = 50 * time.Millisecond })
	b.check(b.Allow(context.Background(), serving("101", "acme/app")))
	run := func(worker string) error {
		cmd := exec.Command("bash", "-c", worker, b.path("hooks/job-started.sh"))
		cmd.Env = append(os.Environ(), "GITHUB_RUN_ID=999", "GITHUB_REPOSITORY=evil/app")
		return cmd.Run()
	}
	// Its parent is killed by another; the hook, which outlives it, ends too.
	if err := run(`bash -e "$0" & kill -KILL $$`); err == nil {
		t.Error("the worker was not killed")
	}
	if err := run(`bash -e "$0" >&- 2>&-; exit 0`); err == nil {
		t.Error("a hook without an output spared its worker")
	}
	if err := run(`bash -e "$0" >/dev/full 2>&1; exit 0`); err == nil {
		t.Error("a hook with a full output spared its worker")
	}
	if err := run(`PATH=/nowhere /bin/bash -e "$0"; exit 0`); err == nil {
		t.Error("a hook without programs spared its worker")
	}
}
