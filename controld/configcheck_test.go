package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
)

// TestEveryExampleCanBeChecked by the command for which it is.
func TestEveryExampleCanBeChecked(t *testing.T) {
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	for _, file := range files {
		args := []string{"config", "check", "--elsewhere", file}
		if file == "../examples/job-pool.yaml" {
			args = []string{"config", "check", "--dev", file}
		}
		got := controld(t, args...)
		if line, _, _ := strings.Cut(got.stdout, "\n"); got.code != 0 || line != file+": ok" {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// TestConfigurationsOfPagesCanBeChecked: a block of YAML that begins with a section of controld.yaml is a whole configuration.
func TestConfigurationsOfPagesCanBeChecked(t *testing.T) {
	page, err := os.ReadFile("../docs/organization.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```yaml\n(grpc:.*?)^```").FindAllSubmatch(page, -1)
	if len(blocks) != 1 {
		t.Fatalf("%d configurations", len(blocks))
	}
	for _, block := range blocks {
		file := write(t, "controld.yaml", string(block[1]))
		got := controld(t, "config", "check", "--elsewhere", file)
		if line, _, _ := strings.Cut(got.stdout, "\n"); got.code != 0 || line != file+": ok" {
			t.Errorf("%+v of\n%s", got, block[1])
		}
	}
}

// TestConfigCheckOfDev: a file for dev is checked as dev reads it, and without
// --dev the output names that flag.
func TestConfigCheckOfDev(t *testing.T) {
	file := "../examples/job-pool.yaml"
	if got, hint := controld(t, "config", "check", file), file+": `controld dev` takes it, with what it has by itself: for that, check it with --dev\n"; got.code != exitFailure || !strings.HasSuffix(got.stdout, hint) {
		t.Errorf("without --dev: %+v, want %q", got, hint)
	}
	wrong := write(t, "wrong.yaml", "sweeps: {due: 5}\n")
	want := result{code: exitFailure, stdout: wrong + `:1:15: sweeps.due: "5" is not a duration; write a number with its unit, such as 90s or 6h` + "\n"}
	if diff := cmp.Diff(want, controld(t, "config", "check", "--dev", wrong), cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("a wrong one (-want +got):\n%s", diff)
	}
	want = result{code: exitFailure, stdout: awsExample + ":21:1: aws: is there, and dev keeps everything on this machine; remove it, or run `controld serve`\n"}
	if diff := cmp.Diff(want, controld(t, "config", "check", "--dev", "--elsewhere", awsExample), cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("one for AWS (-want +got):\n%s", diff)
	}
	open := write(t, "open.yaml", "grpc: {addr: \"0.0.0.0:7443\"}\nstore: {sqlite: {path: /var/lib/x.db}}\n")
	ignored := open + ": warning: ignored, since controld dev has its own (its flags have the addresses and the directory): grpc, store\n"
	if got := controld(t, "config", "check", "--dev", open); got.code != 0 || !strings.Contains(got.stdout, ignored) {
		t.Errorf("what dev ignores: %+v, want %q", got, ignored)
	}
}

// TestUnreadable: root is warned of a file of a secret that controld.service, which has a user of its own, may not be able to read.
func TestUnreadable(t *testing.T) {
	secret := write(t, "token", "any\n")
	for mode, warned := range map[os.FileMode]bool{0o600: os.Geteuid() == 0, 0o644: false} {
		if err := os.Chmod(secret, mode); err != nil {
			t.Fatal(err)
		}
		c := config.Default()
		c.GitHub.TokenFile = secret
		for flags, want := range map[checkFlags]bool{{}: warned, {elsewhere: true}: false, {dev: true}: false} {
			if got := flags.unreadable(c); (len(got) > 0) != want {
				t.Errorf("mode %o, %+v: %q", mode, flags, got)
			}
		}
		c.GitHub.TokenFile = secret + "-gone"
		if got := (&checkFlags{}).unreadable(c); len(got) > 0 {
			t.Errorf("of a file that is not there: %q", got)
		}
	}
}
