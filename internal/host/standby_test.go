package host_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
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
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var inStandby = agent.Allowed{Standby: true}

// patientBed has a hook that waits for the claim for longer than any test.
func patientBed(t *testing.T) *bed {
	t.Helper()
	b := newBed(t, func(o *host.Options) { o.StandbyWait = time.Hour })
	b.check(b.Allow(context.Background(), inStandby))
	if got := b.look().Allowed; got != inStandby {
		t.Errorf("allowed %+v", got)
	}
	return b
}

// waitingJob is a job whose hook has said that it waits.
type waitingJob struct {
	*bed
	cmd  *exec.Cmd
	rest *bufio.Reader
}

func (b *bed) waitingJob(runID, repository string) waitingJob {
	b.Helper()
	cmd := exec.Command("bash", "-c", workerScript, b.path("hooks/job-started.sh"))
	cmd.Env = append(os.Environ(), "GITHUB_RUN_ID="+runID, "GITHUB_REPOSITORY="+repository, host.InstanceIDVariable+"="+b.id)
	out, err := cmd.StdoutPipe()
	b.check(err)
	b.check(cmd.Start())
	r := bufio.NewReader(out)
	if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, "waits for a run") {
		b.Fatalf("the hook says %q, %v", line, err)
	}
	if s := b.look(); s.Jobs != 0 || s.Job != "" || s.Refused != "" {
		b.Errorf("while it waits: %+v", s)
	}
	return waitingJob{b, cmd, r}
}

func (w waitingJob) ends() (output string, ok bool) {
	w.Helper()
	out, err := io.ReadAll(w.rest)
	w.check(err)
	return string(out), w.cmd.Wait() == nil
}

// A job that comes to a host in standby is judged by what the agent allows next.
func TestJobWaitsInStandby(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		next           agent.Allowed
		starts, taints bool
		says           string
	}{
		"its run claims the host":       {serving("101", "acme/app"), true, false, ""},
		"another run claims the host":   {serving("102", "acme/app"), false, true, "this host serves run 102 of acme/app"},
		"a job pool claims the host":    {oneOrFork("acme"), true, false, ""},
		"the registration is given up":  {agent.Allowed{}, false, true, "this host serves no run"},
		"the same run, of another name": {serving("101", "evil/app"), false, true, "this host serves run 101 of evil/app"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := patientBed(t)
			w := b.waitingJob("101", "acme/app")
			b.check(b.Allow(context.Background(), test.next))
			out, ok := w.ends()
			s := b.look()
			if ok != test.starts || (s.Jobs == 1) != test.starts || (s.Refused != "") != test.taints || !strings.Contains(out, test.says) {
				t.Errorf("starts: %t, jobs: %d, refused: %q; output %s", ok, s.Jobs, s.Refused, out)
			}
			if strings.Contains(out, "the worker goes on") {
				t.Errorf("a refusal left the worker alive: %s", out)
			}
		})
	}
}

// A hook that is interrupted lets nothing start: the worker would go on with the steps that run always.
func TestInterruptedHookRefuses(t *testing.T) {
	t.Parallel()
	b := patientBed(t)
	w := b.waitingJob("101", "acme/app")
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", w.cmd.Process.Pid))
	b.check(err)
	hook, err := strconv.Atoi(strings.TrimSpace(string(children)))
	b.check(err)
	b.check(syscall.Kill(hook, syscall.SIGTERM))
	out, ok := w.ends()
	if s := b.look(); ok || s.Jobs != 0 || s.Refused != "" || !strings.Contains(out, "was interrupted before") || strings.Contains(out, "the worker goes on") {
		t.Errorf("starts: %t, jobs: %d, refused: %q; output %s", ok, s.Jobs, s.Refused, out)
	}
}

// Without a claim a job waits for its time, and is refused.
func TestJobWithoutAClaimInStandby(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(o *host.Options) { o.StandbyWait = 250 * time.Millisecond })
	b.check(b.Allow(context.Background(), inStandby))
	begun := time.Now()
	out, ok := b.job("job-started.sh", "101", "acme/app")
	if took := time.Since(begun); took < 250*time.Millisecond {
		t.Errorf("refused after %s", took)
	}
	if s := b.look(); ok || s.Jobs != 0 || s.Refused != "101 of acme/app" || !strings.Contains(out, "this host serves no run") {
		t.Errorf("starts: %t, jobs: %d, refused: %q; output %s", ok, s.Jobs, s.Refused, out)
	}
	// It goes on waiting under an agent that is restarted, and a host that was released refuses at once.
	b.options.StandbyWait = time.Hour
	b.reopen()
	b.check(b.Allow(context.Background(), agent.Allowed{}))
	if out, ok := b.job("job-started.sh", "101", "acme/app"); ok || strings.Contains(out, "waits") {
		t.Errorf("a released host: starts %t: %s", ok, out)
	}
}

// A file that is gone, or that a job has spoiled, lets nothing start.
func TestJobInStandbyWithoutAnAllowance(t *testing.T) {
	t.Parallel()
	b := patientBed(t)
	w := b.waitingJob("101", "acme/app")
	b.check(os.Remove(b.path("job/allow")))
	if out, ok := w.ends(); ok || !strings.Contains(out, "this host serves no run") {
		t.Errorf("starts: %t: %s", ok, out)
	}
}

// The worker of a job that is canceled ends. That is no refusal, and a later process with its pid is left alone.
func TestWorkerEndsWhileItsJobWaits(t *testing.T) {
	t.Parallel()
	b := patientBed(t)
	w := b.waitingJob("101", "acme/app")
	b.check(w.cmd.Process.Kill())
	_, err := w.cmd.Process.Wait()
	b.check(err)
	if out, err := io.ReadAll(w.rest); err != nil || strings.Contains(string(out), "refused") { // to the end of the hook
		t.Errorf("output %s, %v", out, err)
	}
	if s := b.look(); s.Refused != "" || s.Jobs != 0 {
		t.Errorf("scene %+v", s)
	}
}

// aheadOfNeed is a registration under a secret label.
func (b *bed) aheadOfNeed() agent.Assignment {
	a := b.assignment()
	a.RunID, a.Labels, a.Label = "", nil, "l4bel-of-a-standby"
	return a
}

// The label of a runner that waits for its run is in no argument, log or file. It replaces no other runner.
func TestRegistersAheadOfNeed(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.check(b.Allow(context.Background(), inStandby))
	b.check(b.Register(context.Background(), b.aheadOfNeed()))
	b.until("config.sh ends", func(s agent.Observed) bool { return s.Registered.Phase == agent.PhaseOK })
	want := "config.sh --unattended --disableupdate --no-default-labels --url http://github/acme/app --name remuda-7-i-1 --work " + b.path("work")
	if log := b.read("logs/runner.log"); !strings.Contains(log, want+"\n") {
		t.Errorf("config.sh was called otherwise: %s", log)
	}
	env := b.read("env-config")
	if !strings.Contains(env, "ACTIONS_RUNNER_INPUT_LABELS=l4bel-of-a-standby\n") || !strings.Contains(env, "ACTIONS_RUNNER_INPUT_TOKEN=s3cret\n") {
		t.Errorf("environment of config.sh: %s", env)
	}
	b.check(b.Listen(context.Background(), b.aheadOfNeed()))
	b.until("the listener listens", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerListening })
	if env := b.read("env-listener"); strings.Contains(env, "l4bel") || strings.Contains(env, "s3cret") {
		t.Errorf("environment of the listener: %s", env)
	}
	b.check(os.Remove(b.path("env-config"))) // the test's own
	b.check(filepath.WalkDir(b.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "l4bel") {
			t.Errorf("%s has the label", path)
		}
		return nil
	}))
}

// The runner with which a host waited is discarded without GitHub, and the host registers for its run.
func TestDiscardsARunner(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(b *bed){
		"that listened": func(b *bed) {
			b.check(b.Listen(context.Background(), b.aheadOfNeed()))
			b.until("the listener listens", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerListening })
			b.check(b.Stop(context.Background()))
			b.until("the listener ends", func(s agent.Observed) bool { return s.Listener.Phase == agent.ListenerExited })
		},
		"that was configured": func(*bed) {},
		"whose task is lost":  func(b *bed) { b.check(os.Remove(b.path("state/tasks/register.json"))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.check(b.Allow(context.Background(), inStandby))
			b.check(b.Register(context.Background(), b.aheadOfNeed()))
			b.until("config.sh ends", func(s agent.Observed) bool { return s.Registered.Phase == agent.PhaseOK })
			before(b)
			if s := b.look(); s.Registered.Assignment != 7 || !s.Registration {
				t.Errorf("scene before %+v", s)
			}
			s := b.clean(8)
			if s.Cleaned.Phase != agent.PhaseOK || s.Registration || s.Registered.Phase != agent.PhaseNone || s.Listener.Phase != agent.ListenerNone || s.Allowed != inStandby {
				t.Errorf("scene after the clean-up %+v", s)
			}
			b.check(b.Allow(context.Background(), serving("101", "acme/app")))
			a := b.assignment()
			a.Number, a.RunnerName = 8, "remuda-8-i-1"
			b.check(b.Register(context.Background(), a))
			s = b.until("config.sh ends", func(s agent.Observed) bool { return s.Registered.Phase == agent.PhaseOK })
			if s.Registered.Assignment != 8 || s.Registered.Attempt != 1 {
				t.Errorf("registered %+v", s.Registered)
			}
		})
	}
}

// A second registration under a name that is taken is GitHub's word: the answer to the first was lost.
func TestRegistrationOfANameThatIsTaken(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.write("print", "A runner exists with the same name remuda-7-i-1.\n", 0o644)
	b.write("fail", "", 0o644)
	b.check(b.Register(context.Background(), b.aheadOfNeed()))
	s := b.until("config.sh ends", func(s agent.Observed) bool { return s.Registered.Phase != agent.PhaseRunning })
	if p := s.Registered; p.Phase != agent.PhaseFailed || p.Cause != lifecycle.CauseGitHub {
		t.Errorf("registered %+v", p)
	}
}
