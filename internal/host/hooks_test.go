package host_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host"
)

// workerScript runs a hook as the runner's worker does, by a shell that ends at
// the first failing command. Like the worker it goes on if the hook fails.
const workerScript = `bash -e "$0" || echo "the worker goes on"`

// job runs a hook in a worker, which a refusal must end. The job is of a push.
func (b *bed) job(hook, runID, repository string) (output string, ok bool) {
	b.Helper()
	return b.jobOf(hook, runID, repository, "push", `{"ref": "refs/heads/main"}`)
}

// jobOf is job of an event.
func (b *bed) jobOf(hook, runID, repository, event, payload string) (output string, ok bool) {
	b.Helper()
	cmd := exec.Command("bash", "-c", workerScript, b.path("hooks/"+hook))
	cmd.Env = append(os.Environ(), "GITHUB_RUN_ID="+runID, "GITHUB_REPOSITORY="+repository, "GITHUB_EVENT_NAME="+event,
		"GORACE=atexit_sleep_ms=0") // of check-fork
	if payload != "" {
		file := filepath.Join(b.TempDir(), "event.json")
		b.check(os.WriteFile(file, []byte(payload), 0o644))
		cmd.Env = append(cmd.Env, "GITHUB_EVENT_PATH="+file)
	}
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "the worker goes on") {
		b.Errorf("a refusal left the worker alive: %s", out)
	}
	return string(out), err == nil
}

func serving(runID, repository string) agent.Allowed {
	return agent.Allowed{RunID: runID, Repository: repository}
}

func oneOf(scope string) agent.Allowed { return agent.Allowed{JobsOf: scope} }

// oneOrFork is oneOf with the job of a fork let in too.
func oneOrFork(scope string) agent.Allowed { return agent.Allowed{JobsOf: scope, Forks: true} }

// A job that starts shows how its host came to the run, and one that is refused does not.
func TestJobStartedHookIntroducesTheHost(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ctx := context.Background()
	b.check(b.Allow(ctx, serving("101", "acme/app")))
	if out, ok := b.job("job-started.sh", "101", "acme/app"); !ok || out != "" {
		t.Errorf("before an introduction: %t, %q", ok, out)
	}
	const text = "::group::Remuda: host i-1\nAsked for.\n::endgroup::\n"
	b.check(b.Introduce(ctx, text))
	if out, ok := b.job("job-started.sh", "101", "acme/app"); !ok || out != text {
		t.Errorf("its own job: %t, %q", ok, out)
	}
	if out, ok := b.job("job-started.sh", "999", "acme/app"); ok || strings.Contains(out, "group") {
		t.Errorf("another run: %t, %q", ok, out)
	}
	b.check(b.Introduce(ctx, ""))
	if out, ok := b.job("job-started.sh", "101", "acme/app"); !ok || out != "" {
		t.Errorf("after the run: %t, %q", ok, out)
	}
}

// The summary of a job says how its host came to the run, where that is asked for, and what it says is text and no markup.
func TestJobStartedHookWritesTheSummary(t *testing.T) {
	const text = "::group::Remuda: host i-1, cold\nWhat kept it: no <b>capacity</b> & more.\n::endgroup::\n"
	const want = "# mine\n<details><summary>Remuda: host i-1, cold</summary>\n\n- What kept it: no &lt;b&gt;capacity&lt;/b&gt; &amp; more.\n\n</details>\n\n"
	file := filepath.Join(t.TempDir(), "summary")
	t.Setenv("GITHUB_STEP_SUMMARY", file)
	for name, tt := range map[string]struct {
		on         bool
		run        string
		introduced string
		want       string
	}{
		"on": {true, "101", text, want}, "off": {false, "101", text, "# mine\n"}, "refused": {true, "999", text, "# mine\n"},
		"nothing to say": {true, "101", "", "# mine\n"}, "no file": {true, "101", text, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(o *host.Options) { o.JobSummary = tt.on })
			b.check(b.Allow(t.Context(), serving("101", "acme/app")))
			b.check(b.Introduce(t.Context(), tt.introduced))
			if tt.want != "" {
				b.check(os.WriteFile(file, []byte("# mine\n"), 0o600))
			}
			if out, ok := b.job("job-started.sh", tt.run, "acme/app"); ok != (tt.run == "101") {
				t.Errorf("let in: %t, %q", ok, out)
			}
			if got, _ := os.ReadFile(file); string(got) != tt.want {
				t.Errorf("the summary is %q, want %q", got, tt.want)
			}
			_ = os.Remove(file)
		})
	}
}

// Bash 5.2 fails if a trap comes while it reads a command in $( ), so there is none: an interrupted job would go on. About one in a thousand
// interruptions did so.
func TestJobStartedHookHasNoCommandSubstitution(t *testing.T) {
	text, err := os.ReadFile("job-started.sh")
	if err != nil {
		t.Fatal(err)
	}
	for n, line := range strings.Split(string(text), "\n") {
		if code, _, _ := strings.Cut(line, "# "); regexp.MustCompile("\\$\\([^(]|`").MatchString(code) {
			t.Errorf("line %d: %s", n+1, line)
		}
	}
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
		"one of a repository":         {[]agent.Allowed{oneOf("acme/app")}, "7", "acme/app", true, false, ""},
		"one of it, other letters":    {[]agent.Allowed{oneOf("acme/App")}, "7", "ACME/app", true, false, ""},
		"one of another repository":   {[]agent.Allowed{oneOf("acme/app")}, "7", "acme/web", false, true, "this host serves one job of acme/app"},
		"a repository begins alike":   {[]agent.Allowed{oneOf("acme/app")}, "7", "acme/apple", false, true, "this host serves one job of acme/app"},
		"a repository ends alike":     {[]agent.Allowed{oneOf("acme/app")}, "7", "evil/acme/app", false, true, "of its own repository or owner"},
		"one of an owner":             {[]agent.Allowed{oneOf("acme")}, "7", "acme/web", true, false, ""},
		"one of it, in small letters": {[]agent.Allowed{oneOf("Acme")}, "7", "acme/web", true, false, ""},
		"one of another owner":        {[]agent.Allowed{oneOf("acme")}, "7", "evil/acme", false, true, "this host serves one job of acme."},
		"an owner begins alike":       {[]agent.Allowed{oneOf("acme")}, "7", "acme2/app", false, true, "refused"},
		"an owner without a name":     {[]agent.Allowed{oneOf("acme")}, "7", "acme/", false, true, "refused"},
		"an owner is no repository":   {[]agent.Allowed{oneOf("acme")}, "7", "acme", false, true, "refused"},
		"no scope, and no owner":      {nil, "7", "/app", false, true, "this host serves no run"},
		"one of no repository":        {[]agent.Allowed{oneOf("acme")}, "7", "", false, true, "refused"},
		"a pattern is no owner":       {[]agent.Allowed{oneOf("*")}, "7", "acme/app", false, true, "refused"},
		"a pattern is no repository":  {[]agent.Allowed{oneOf("*/*")}, "7", "acme/app", false, true, "refused"},
		"its scope was released":      {[]agent.Allowed{oneOf("acme"), none}, "7", "acme/app", false, false, "this host was released and takes no further job"},
		"its scope, released twice":   {[]agent.Allowed{oneOf("acme/app"), none, none}, "7", "acme/app", false, false, "this host was released and takes no further job"},
		"another scope, released":     {[]agent.Allowed{oneOf("acme"), none}, "7", "evil/app", false, true, "this host serves no run"},
		"a run after a scope":         {[]agent.Allowed{oneOf("acme"), none, serving("101", "acme/app")}, "7", "acme/app", false, true, "this host serves run 101"},
		"a scope after a run":         {[]agent.Allowed{serving("101", "acme/app"), none, oneOf("acme")}, "101", "acme/app", true, false, ""},
		"two lines are no repository": {[]agent.Allowed{oneOf("acme/web")}, "7", "acme/app\nacme/app", false, true, "refused"},
		"its own name in two lines":   {[]agent.Allowed{serving("101", "acme/app")}, "101", "acme/app\nacme/app", false, true, "refused"},
		"an owner in two lines":       {[]agent.Allowed{oneOf("evil")}, "7", "acme\nacme/app", false, true, "refused"},
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

// A job-scoped host has one job until it is clean, whether its first one runs,
// is over, or was of another run. The second one is no fault of the host.
func TestOneJobOnly(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.check(b.Allow(context.Background(), oneOf("acme")))
	if out, ok := b.job("job-started.sh", "7", "acme/app"); !ok {
		t.Fatalf("the first job was refused: %s", out)
	}
	refused := func(when string) {
		t.Helper()
		for _, runID := range []string{"7", "8"} {
			out, ok := b.job("job-started.sh", runID, "acme/app")
			if s := b.look(); ok || s.Jobs != 1 || s.Refused != "" || !strings.Contains(out, "serves one job, and has had it") {
				t.Errorf("%s, another job: starts %t, jobs %d, refused %q: %s", when, ok, s.Jobs, s.Refused, out)
			}
		}
	}
	refused("while it runs")
	b.job("job-completed.sh", "7", "acme/app")
	refused("after it")
	b.reopen()
	b.check(b.Allow(context.Background(), oneOf("acme")))
	refused("after it, allowed again")
	b.check(b.Allow(context.Background(), agent.Allowed{}))
	b.clean(8)
	b.check(b.Allow(context.Background(), oneOf("acme/app")))
	if out, ok := b.job("job-started.sh", "9", "acme/app"); !ok {
		t.Errorf("the job of the next assignment was refused: %s", out)
	}
}

// Payloads of pull requests within a repository and from a fork. What else a payload can be: see package forkcheck.
const (
	ownPull  = `{"action": "opened", "pull_request": {"head": {"repo": {"id": 7, "fork": true}}, "base": {"repo": {"id": 7}}}}`
	forkPull = `{"action": "opened", "pull_request": {"head": {"repo": {"id": 8}}, "base": {"repo": {"id": 7}}}}`
)

// TestForkJobs: the job of a fork starts on a job-scoped host only where that is allowed. What it is, the payload of its event says.
func TestForkJobs(t *testing.T) {
	t.Parallel()
	const isFork, unreadable = "this job is of a fork", "cannot be read"
	tests := map[string]struct {
		event, payload, says string // says nothing: the job starts
	}{
		"of a branch":               {"pull_request", ownPull, ""},
		"of a fork":                 {"pull_request", forkPull, isFork},
		"of a fork, on the base":    {"pull_request_target", forkPull, isFork},
		"a push":                    {"push", `{"ref": "refs/heads/main", "commits": []}`, ""},
		"no payload":                {"push", "", unreadable},
		"a payload that is cut off": {"push", `{"ref": "refs/heads/main"`, unreadable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			for _, a := range []agent.Allowed{oneOf("acme"), oneOrFork("acme/app")} {
				b.check(b.Allow(context.Background(), a))
				if got := b.look().Allowed; got != a {
					t.Errorf("allowed %+v, want %+v", got, a)
				}
				out, ok := b.jobOf("job-started.sh", "7", "acme/app", test.event, test.payload)
				// A refused one counts as the host's job, and is no fault of the host.
				if s := b.look(); ok != (a.Forks || test.says == "") || s.Jobs != 1 || s.Refused != "" {
					t.Errorf("%s: starts %t, jobs %d, refused %q: %s", a, ok, s.Jobs, s.Refused, out)
				}
				if !a.Forks && !strings.Contains(strings.ToLower(out), test.says) {
					t.Errorf("%q is not said in %q", test.says, out)
				}
				if out, ok := b.jobOf("job-started.sh", "7", "acme/app", "pull_request", ownPull); ok || !strings.Contains(out, "has had it") {
					t.Errorf("a second job: starts %t: %s", ok, out)
				}
				b.check(b.Allow(context.Background(), agent.Allowed{}))
				b.clean(8)
			}
		})
	}
}

// TestForkCheckThatFails: a job starts by the answer of agentd alone. Whatever else becomes of that program lets nothing in.
func TestForkCheckThatFails(t *testing.T) {
	t.Parallel()
	const isFork, unreadable = "this job is of a fork", "cannot be read"
	tests := map[string]struct{ program, says string }{ // program is a script; says nothing: the job starts
		"exits with 0":              {`test "$*" = check-fork`, ""},
		"exits with 1":              {"exit 1", isFork},
		"exits with 2":              {"exit 2", unreadable},
		"does not know the command": {"exit 78", unreadable},
		"is killed":                 {"kill -KILL $$", unreadable},
		"is missing":                {"", unreadable},
		"crashes":                   {"kill -ABRT $$", unreadable},
		"exits with a high status":  {"exit 255", unreadable},
		"says yes, and fails":       {"echo 0; exit 3", unreadable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, func(o *host.Options) { o.Program = filepath.Join(o.Dir, "../program/an agent's program") })
			if test.program != "" {
				b.write("../program/an agent's program", "#!/bin/sh\n"+test.program+"\n", 0o755)
			}
			b.check(b.Allow(context.Background(), oneOf("acme")))
			out, ok := b.jobOf("job-started.sh", "7", "acme/app", "pull_request", ownPull)
			if s := b.look(); ok != (test.says == "") || s.Jobs != 1 || s.Refused != "" {
				t.Errorf("starts %t, jobs %d, refused %q: %s", ok, s.Jobs, s.Refused, out)
			}
			if !strings.Contains(strings.ToLower(out), test.says) {
				t.Errorf("%q is not said in %q", test.says, out)
			}
		})
	}
}

// What the agent of a version before wrote is read as it was meant.
func TestAllowanceOfAnOlderAgent(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.write("job/allow", "101\nacme/app\n100\n0\n", 0o644)
	if got := b.look().Allowed; got != serving("101", "acme/app") {
		t.Errorf("allowed %+v", got)
	}
	if out, ok := b.job("job-started.sh", "102", "acme/app"); ok {
		t.Errorf("a job of another run started: %s", out)
	}
	if out, ok := b.job("job-started.sh", "101", "acme/app"); !ok {
		t.Errorf("its job was refused: %s", out)
	}
	b.write("job/allow", "\n\n\n0\nacme\n\n", 0o644)
	b.check(os.Remove(b.path("job/box/jobs")))
	if out, ok := b.jobOf("job-started.sh", "7", "acme/app", "pull_request", `{}`); ok {
		t.Errorf("a job that may be of a fork started: %s", out)
	}
}

// A disk that takes nothing must not fail a job.
func TestJobStartedHookOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, a := range []agent.Allowed{serving("101", "acme/app"), oneOf("acme")} {
		b := newBed(t)
		b.check(b.Allow(context.Background(), a))
		for _, name := range []string{"jobs", "busy"} { // which cannot be written now
			b.check(os.Mkdir(b.path("job/box/"+name), 0o755))
		}
		if out, ok := b.job("job-started.sh", "101", "acme/app"); !ok {
			t.Errorf("%s: the job was refused: %s", a, out)
		}
	}
}

func TestAllowRefusesLineBreaks(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, a := range []agent.Allowed{serving("101\nacme/app", ""), serving("101", "acme/app\n"), oneOf("acme\nevil")} {
		if err := b.Allow(context.Background(), a); err == nil {
			t.Errorf("%+v: no error", a)
		}
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
			b.check(put(b.path("job/box/refused")))
			b.check(put(b.path("job/allow")))
			b.check(put(b.path("runner/.runner")))
			b.check(put(b.path("logs/runner.log")))
			looked := make(chan agent.Observed)
			go func() {
				defer close(looked)
				if s, err := b.Observe(context.Background()); err == nil {
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
