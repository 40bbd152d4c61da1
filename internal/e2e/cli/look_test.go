package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/testrun"
)

// host is what these tests read of a host.
type host struct {
	ID    string `json:"instanceId" yaml:"instanceId"`
	State string `json:"state" yaml:"state"`
	Run   string `json:"runId" yaml:"runId"`
}

type hostList struct {
	Hosts []host `json:"instances" yaml:"instances"`
}

func (s *stage) hosts(args ...string) []host {
	s.Helper()
	var list hostList
	if err := json.Unmarshal([]byte(s.must(append([]string{"ps", "-o", "json"}, args...)...)), &list); err != nil {
		s.Fatal(err)
	}
	return list.Hosts
}

// TestLook: filters, formats and names of things that are shown.
func TestLook(t *testing.T) {
	s := newStage(t)
	if got := s.hosts(); len(got) != 0 {
		t.Fatalf("hosts of a new fleet: %v", got)
	}
	s.must("provision", "acme/shop/41")
	s.must("provision", "acme/app", "42", "--count", "2")
	for _, test := range []struct {
		args []string
		want int
	}{
		{nil, 3}, {[]string{"--repository", "acme/app"}, 2}, {[]string{"--repository", "acme"}, 3}, {[]string{"--run", "41"}, 1},
		{[]string{"--run", "acme/shop/42"}, 0}, {[]string{"--run", "https://github.com/acme/app/actions/runs/42"}, 2},
		{[]string{"--pool", "default", "--state", "running"}, 3}, {[]string{"--state", "pooled,ended"}, 0},
	} {
		if got := s.hosts(test.args...); len(got) != test.want {
			t.Errorf("ps %v: %v, want %d", test.args, got, test.want)
		}
	}
	for _, command := range []string{"ps", "runs", "events", "cost"} {
		s.fails(3, "there is no pool \"other\"; configured: [default]\n`remuda pools` lists the pools.", command, "--pool", "other")
	}
	var list hostList
	if err := yaml.Unmarshal([]byte(s.must("ps", "-o", "yaml")), &list); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.hosts(), list.Hosts); diff != "" {
		t.Errorf("(-json +yaml):\n%s", diff)
	}
	var runs struct{ Runs []struct{ RunID string } }
	if err := json.Unmarshal([]byte(s.must("runs", "-o", "json")), &runs); err != nil || len(runs.Runs) != 2 || runs.Runs[0].RunID != "42" {
		t.Errorf("runs: %+v, %v", runs, err)
	}
	if got := s.remuda("services"); got.code != 0 || got.stdout != "" || got.stderr != "No service is configured.\n" {
		t.Errorf("services: %+v", got)
	}
	for _, name := range []string{"42", "acme/app/42", "https://github.com/acme/app/actions/runs/42/job/7", list.Hosts[0].ID} {
		if got := s.must("why", name); !strings.Contains(got, "acme/app") && !strings.Contains(got, "asked for 2") {
			t.Errorf("why %s:\n%s", name, got)
		}
	}
}

// TestPlan: of a snapshot from a file and from standard input.
func TestPlan(t *testing.T) {
	s := newPerson(t)
	const file = "../../policy/testdata/plan/a-day-of-many-owners.json"
	if got := s.must("plan", "--snapshot", file); !strings.Contains(got, "i-o1  unmark orphan  scale_down  no orphan: ") {
		t.Errorf("from a file:\n%s", got)
	}
	snapshot, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	cmd := s.command("plan", "--snapshot", "-", "-o", "yaml")
	cmd.Stdin = snapshot
	if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), "- instanceId: i-o1\n    action: ACTION_UNMARK_ORPHAN\n") {
		t.Errorf("YAML: %v\n%s", err, out)
	}
}

// TestSnapshotOfDev: a snapshot of a fleet that runs is asked as the fleet is.
func TestSnapshotOfDev(t *testing.T) {
	s := newStage(t)
	s.must("provision", "acme/shop/41", "--count", "2")
	file := filepath.Join(t.TempDir(), "fleet.json")
	take := exec.CommandContext(s.ctx, filepath.Join(testrun.System.Dir(t), "controld"), "snapshot", "--state-dir", s.StateDir(), "--output", file)
	if out, err := take.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, args := range [][]string{{"pools", "-o", "json"}, {"events", "--run", "acme/shop/41", "--follow=false", "-o", "json"}} {
		want := s.must(args...)
		if diff := cmp.Diff(want, s.must(append(args, "--snapshot", file)...)); diff != "" || !strings.Contains(want, "{") {
			t.Errorf("%v (-controld +snapshot):\n%s", args, diff)
		}
	}
}

// TestHelp: completion and man pages need no controld, and are what shells and man take.
func TestHelp(t *testing.T) {
	s := newPerson(t)
	script := filepath.Join(t.TempDir(), "completion")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		text := s.must("completion", shell)
		if !strings.Contains(text, "remuda") {
			t.Errorf("%s: %s", shell, text)
		}
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not on this machine: its script is not parsed", shell)
			continue
		}
		if out, err := exec.CommandContext(s.ctx, path, "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
	dir := filepath.Join(t.TempDir(), "man")
	s.must("man", "--dir", dir)
	for _, name := range []string{"remuda", "remuda-ps", "remuda-context-use"} {
		text, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil || !strings.Contains(string(text), ".SH SYNOPSIS") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	if got := s.must("--version"); !strings.HasPrefix(got, "remuda ") || got != s.must("version") {
		t.Errorf("version: %q", got)
	}
}

// TestCompletion: hosts and contexts complete, and a controld that is away is no error.
func TestCompletion(t *testing.T) {
	s := newStage(t)
	s.must("provision", "acme/shop/41")
	if got := s.must("__complete", "hold", ""); !strings.HasPrefix(got, s.hosts()[0].ID+"\trunning acme/shop 41\n") {
		t.Errorf("hosts: %q", got)
	}
	if got := s.must("__complete", "ps", "--context", ""); !strings.HasPrefix(got, "dev\t"+s.GRPCAddr+"\n") {
		t.Errorf("contexts: %q", got)
	}
	if got := s.must("__complete", "ps", "--state", ""); !strings.Contains(got, "\nhot\nresting\nstopped\nresetting\nended\nheld\n") {
		t.Errorf("states: %q", got)
	}
	if got := s.must("__complete", "--address", "127.0.0.1:1", "why", ""); got != ":4\n" {
		t.Errorf("without a controld: %q", got)
	}
}
