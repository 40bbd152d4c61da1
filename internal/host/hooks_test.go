package host_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
)

// job runs a hook as the runner's worker would, by a shell that ends at the
// first failing command.
func (b *bed) job(hook, runID, repository string) (output string, ok bool) {
	b.Helper()
	cmd := exec.Command("bash", "-e", b.path("hooks/"+hook))
	cmd.Env = append(os.Environ(), "GITHUB_RUN_ID="+runID, "GITHUB_REPOSITORY="+repository)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func serving(runID, repository string) agent.Allowed {
	return agent.Allowed{RunID: runID, Repository: repository}
}

func TestJobStartedHook(t *testing.T) {
	t.Parallel()
	none := agent.Allowed{}
	tests := map[string]struct {
		allowed           []agent.Allowed
		runID, repository string
		starts, taints    bool
		says              string
	}{
		"its own job":                 {[]agent.Allowed{serving("101", "acme/app")}, "101", "acme/app", true, false, ""},
		"its own job, other letters":  {[]agent.Allowed{serving("101", "acme/app")}, "101", "Acme/App", true, false, ""},
		"another run":                 {[]agent.Allowed{serving("101", "acme/app")}, "999", "acme/app", false, true, "this host serves run 101 of acme/app"},
		"a run that begins alike":     {[]agent.Allowed{serving("101", "acme/app")}, "1011", "acme/app", false, true, "This is a job of run 1011"},
		"the same id, other owner":    {[]agent.Allowed{serving("101", "acme/app")}, "101", "evil/app", false, true, "of evil/app"},
		"no run is allowed":           {nil, "101", "acme/app", false, true, "this host serves no run"},
		"no run at all":               {nil, "", "", false, true, "refused"},
		"its run was released":        {[]agent.Allowed{serving("101", "acme/app"), none}, "101", "acme/app", false, false, "this host was released from run 101"},
		"released twice":              {[]agent.Allowed{serving("101", "acme/app"), none, none}, "101", "acme/app", false, false, "this host was released from run 101"},
		"another after a release":     {[]agent.Allowed{serving("101", "acme/app"), none}, "999", "acme/app", false, true, "this host serves no run"},
		"the run before the last":     {[]agent.Allowed{serving("100", "acme/app"), none, serving("101", "acme/app")}, "100", "acme/app", false, true, "this host serves run 101"},
		"characters of the shell":     {[]agent.Allowed{serving("$(id)`id`*", "a'b/\"c\"")}, "$(id)`id`*", "a'b/\"c\"", true, false, ""},
		"a pattern is not a run's id": {[]agent.Allowed{serving("101", "acme/app")}, "*", "*", false, true, "refused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			for _, a := range test.allowed {
				b.check(b.Allow(context.Background(), a))
				if got := b.look().Allowed; got != a {
					t.Errorf("allowed %+v, want %+v", got, a)
				}
			}
			out, ok := b.job("job-started.sh", test.runID, test.repository)
			s := b.look()
			if ok != test.starts || (s.Jobs == 1) != test.starts || (s.Refused != "") != test.taints {
				t.Errorf("starts: %t, jobs: %d, refused: %q; output %s", ok, s.Jobs, s.Refused, out)
			}
			if !strings.Contains(out, test.says) {
				t.Errorf("%q is not said in %q", test.says, out)
			}
		})
	}
}

// A disk that takes nothing must not fail a job.
func TestJobStartedHookOnAFullDisk(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.check(b.Allow(context.Background(), agent.Allowed{RunID: "101", Repository: "acme/app"}))
	for _, name := range []string{"jobs", "busy"} { // which cannot be written now
		b.check(os.Mkdir(b.path("state/job/"+name), 0o755))
	}
	if out, ok := b.job("job-started.sh", "101", "acme/app"); !ok {
		t.Errorf("the job was refused: %s", out)
	}
}

func TestAllowRefusesLineBreaks(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if err := b.Allow(context.Background(), agent.Allowed{RunID: "101\nacme/app"}); err == nil {
		t.Error("no error")
	}
}

// A refusal is never forgotten, jobs are with the clean-up.
func TestMarkersAfterClean(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.check(b.Allow(context.Background(), agent.Allowed{RunID: "101", Repository: "acme/app"}))
	b.job("job-started.sh", "101", "acme/app")
	b.job("job-completed.sh", "101", "acme/app")
	b.job("job-started.sh", "999", "acme/app")
	if s := b.look(); s.Jobs != 1 || s.Refused != "999 of acme/app" {
		t.Errorf("scene %+v", s)
	}
	if s := b.clean(8); s.Jobs != 0 || s.Refused != "999 of acme/app" {
		t.Errorf("scene after the clean-up %+v", s)
	}
}

// A job can write where the hooks do. What it puts there neither stops the
// agent nor is taken for a host that refused nothing.
func TestMarkersReplacedByAJob(t *testing.T) {
	t.Parallel()
	put := map[string]func(path string) error{
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o755) },
		"a link":      func(path string) error { return os.Symlink("/dev/zero", path) },
		"a huge file": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 1<<40))
		},
	}
	for name, put := range put {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			b.check(put(b.path("state/job/refused")))
			b.check(put(b.path("state/job/allow")))
			b.check(put(b.path("runner/.runner")))
			b.check(put(b.path("logs/runner.log")))
			looked := make(chan agent.Scene)
			go func() {
				defer close(looked)
				if s, err := b.Look(context.Background()); err == nil {
					looked <- s
				}
			}()
			select {
			case s := <-looked:
				if s.Refused == "" || s.Allowed != (agent.Allowed{}) || s.Busy {
					t.Errorf("scene %+v", s)
				}
			case <-time.After(patience):
				t.Fatal("it is still being looked at")
			}
		})
	}
}
