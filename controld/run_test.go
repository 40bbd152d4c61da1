package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunSuggestsWhatWorks: the lines that make run prints have the addresses, the
// directory and the configuration of the dev that runs.
func TestRunSuggestsWhatWorks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script, err := os.ReadFile("../scripts/run")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"scripts/run":  string(script),
		"bin/controld": "#!/bin/sh\necho \"$@\"\necho ready grpc=127.0.0.1:1 http=127.0.0.1:2 github=127.0.0.1:3 state=/s\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	boots := write(t, "boots.yaml", "compute: {process: {boot_delay: 1s}}\n")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"none":           {nil, "snapshot --state-dir /s |"},
		"the page":       {nil, "In a browser: http://127.0.0.1:2/ui/\n"},
		"another flag":   {[]string{"--state-dir", "/s"}, "snapshot --state-dir /s |"},
		"one":            {[]string{"--config", "my pools.yaml"}, `snapshot --state-dir /s --config my\ pools.yaml |`},
		"one that boots": {[]string{"--config", boots}, "dev --config " + boots + "\n"},
		"a boot":         {nil, "dev --boot-time 5s\n"},
		"its own boot":   {[]string{"--boot-time", "1m"}, "Hosts take 1m to boot: "},
		"boot with =":    {[]string{"-boot-time=0"}, "Hosts take 0 to boot: "},
		"with an =":      {[]string{"--state-dir=/s", "-config=pools.yaml"}, "snapshot --state-dir /s --config pools.yaml |"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "scripts", "run"), test.args...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), test.want) {
				t.Errorf("%v, it does not say %q:\n%s", err, test.want, out)
			}
		})
	}
}
