package host_test

import (
	"os"
	"strings"
	"testing"
)

func TestRunnerVersion(t *testing.T) {
	t.Parallel()
	listing := func(names ...string) string {
		return `{"runtimeTarget": {}, "libraries": {"Newtonsoft.Json/13.0.3": {}, "` + strings.Join(names, `": {}, "`) + `": {}}}`
	}
	tests := map[string]struct{ manifest, want string }{
		"as actions/runner ships it": {listing("Runner.Listener/2.330.0", "Runner.Sdk/2.330.0"), "2.330.0"},
		"not there":                  {"", ""},
		"without the listener":       {listing("Runner.Worker/2.330.0"), ""},
		"two of them":                {listing("Runner.Listener/2.330.0", "Runner.Listener/2.331.0"), ""},
		"no version":                 {listing("Runner.Listener/"), ""},
		"a preview":                  {listing("Runner.Listener/2.330.0-beta"), ""},
		"two numbers":                {listing("Runner.Listener/2.330"), ""},
		"with a line break":          {listing(`Runner.Listener/2.330.0\n`), ""},
		"endless":                    {listing("Runner.Listener/2." + strings.Repeat("3", 1000) + ".0"), ""},
		"not JSON":                   {"2.330.0", ""},
		"of another shape":           {`{"libraries": ["Runner.Listener/2.330.0"]}`, ""},
		"too large":                  {listing("Runner.Listener/2.330.0") + strings.Repeat(" ", 1<<20), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			if test.manifest != "" {
				b.write("runner/bin/Runner.Listener.deps.json", test.manifest, 0o644)
			}
			b.reopen()
			if got := b.look().RunnerVersion; got != test.want {
				t.Errorf("version %q, want %q", got, test.want)
			}
		})
	}
}

// It is read before every registration: by then the runner was renewed.
func TestRunnerVersionAfterAnUpdate(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if got := b.look().RunnerVersion; got != "" {
		t.Errorf("version %q of a runner without manifest", got)
	}
	b.write("../distribution/bin/Runner.Listener.deps.json", `{"libraries": {"Runner.Listener/2.331.0": {}}}`, 0o644)
	b.clean(8)
	if got := b.register().RunnerVersion; got != "2.331.0" {
		t.Errorf("version %q", got)
	}
	b.check(os.Remove(b.path("runner/bin/Runner.Listener.deps.json"))) // a job did it
	if got := b.look().RunnerVersion; got != "2.331.0" {
		t.Errorf("version %q after a look", got)
	}
}

// What a job puts in the place of the manifest stops no report.
func TestRunnerVersionReplacedByAJob(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.check(os.Symlink("/dev/zero", b.path("runner/bin/Runner.Listener.deps.json")))
	b.reopen()
	if got := b.look().RunnerVersion; got != "" {
		t.Errorf("version %q", got)
	}
}
