package host_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func withScript(t *testing.T, text string, limit time.Duration) func(o *host.Options) {
	path := filepath.Join(t.TempDir(), "pre-runner.sh")
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return func(o *host.Options) { o.PreRunner, o.PreRunnerLimit = path, limit }
}

func TestPreRunnerScript(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		script string
		limit  time.Duration
		want   agent.Phase
		detail string
	}{
		"succeeds":                     {"echo fine; env >../env-script", time.Minute, agent.PhaseOK, ""},
		"fails":                        {"echo gone wrong; exit 3", time.Minute, agent.PhaseFailed, "exit code 3: gone wrong"},
		"a command fails":              {"echo before; false; echo after", time.Minute, agent.PhaseFailed, "exit code 1: before"},
		"a command in a pipe fails":    {"false | cat; echo after", time.Minute, agent.PhaseFailed, "exit code 1"},
		"takes too long":               {"echo waiting; sleep 1000 & wait", time.Second, agent.PhaseFailed, "did not end within 1s: waiting"},
		"says much before it fails":    {"printf 'x%.0s' {1..9999}; echo; echo the end; exit 1", time.Minute, agent.PhaseFailed, "the end"},
		"leaves something in the back": {"sleep 1000 & echo done", time.Minute, agent.PhaseOK, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, withScript(t, test.script, test.limit))
			if p := b.look().Prepared; p.Phase != agent.PhaseNone {
				t.Errorf("before: %+v", p)
			}
			b.check(b.Prepare(context.Background()))
			p := b.until("the script ends", func(s agent.Observed) bool {
				return s.Prepared.Phase == agent.PhaseOK || s.Prepared.Phase == agent.PhaseFailed
			}).Prepared
			if p.Phase != test.want || !strings.HasSuffix(p.Detail, test.detail) || len(p.Detail) > 9<<10 {
				t.Errorf("prepared: %+v", p)
			}
			if p.Phase == agent.PhaseFailed && p.Cause != lifecycle.CauseHost {
				t.Errorf("cause %q", p.Cause)
			}
			b.reopen()
			if again := b.look().Prepared; again.Phase != p.Phase || again.Detail != p.Detail {
				t.Errorf("a new agent sees %+v", again)
			}
		})
	}
}

func TestScriptOfAnotherBoot(t *testing.T) {
	t.Parallel()
	b := newBed(t, withScript(t, "true", time.Minute))
	b.check(b.Prepare(context.Background()))
	b.until("the script ends", func(s agent.Observed) bool { return s.Prepared.Phase == agent.PhaseOK })
	begun := b.read("state/tasks/prepare.json")
	b.write("state/tasks/prepare.json", strings.Replace(begun, b.look().BootID, "another-boot", 1), 0o600)
	if p := b.look().Prepared; p.Phase != agent.PhaseNone {
		t.Errorf("prepared: %+v", p)
	}
}

func TestNoScript(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if p := b.look().Prepared; p.Phase != agent.PhaseOK {
		t.Errorf("prepared: %+v", p)
	}
	b.check(b.Prepare(context.Background()))
}
