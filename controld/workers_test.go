package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/inputs"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/testrun"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// TestTheQueueByHand runs the lines of docs/services.md against a fleet on this
// machine, with curl and grpcurl.
func TestTheQueueByHand(t *testing.T) {
	racepass.CoveredBy(t, "TestServicesGoFromZeroAndBack")
	t.Parallel()
	const token = "the-token-of-the-workers-of-render"
	file := write(t, "tokens", token+"\n")
	s := startDev(t, "services: {render: {worker_token_file: "+file+", requeue: true}}\n")
	cmd := exec.CommandContext(s.ctx, "bash", "-euo", "pipefail", "-c", shellOf(t, filepath.Join("..", "docs", "services.md"), "TestTheQueueByHand"))
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "TOKEN="+token, "HTTP=http://"+s.HTTPAddr, "GRPC="+s.GRPCAddr, "PATH="+testrun.GRPCurl.Dir(t)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, s.log)
	}
	said := strings.Join(strings.Fields(string(out)), "")
	for _, want := range []string{
		`"state":"WORKER_JOB_STATE_WAITING","payload":"aGVsbG8="`, // submitted
		`"version":"1.4.0","online":true`,                         // the heartbeat
		`"attempt":1`,                                             // claimed
		`"log_bytes":"13"`, `"log_bytes":"26"`,
		`"state":"WORKER_JOB_STATE_SUCCEEDED"`, `"log_tail":"frame1of2\nframe2of2\n"`,
		`"state":"WORKER_JOB_STATE_FAILED"`, `"reason":"thereisnofilm"`, `"logTail":"nofilm\n"`, // by gRPC
		`"workers":[{"workerId":"task-1"`,
		`{"jobs":[{"job_id":"film-1"`, `"awaited":"nothing:itiskeptuntil`, // listed over HTTP
		`"reason":"itisnotscaledhere:theconfigurationnamesnocluster","workers":[{"version":"1.4.0","onlineCount":1}]}]}`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %s in:\n%s", want, out)
		}
	}
	if strings.Contains(s.log.String(), token) {
		t.Error("the log tells the token")
	}
}

// shellOf is the block of shell behind the comment that names a test.
func shellOf(t *testing.T, path, test string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "<!-- "+test)
	_, block, begins := strings.Cut(after, "```sh\n")
	block, _, ends := strings.Cut(block, "```\n")
	if !found || !begins || !ends {
		t.Fatalf("%s has no block of shell behind the comment of %s", path, test)
	}
	return block
}

// TestTokensOfServices: a check reports the files that controld would not start
// with, and both services whose workers share a token.
func TestTokensOfServices(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	short, one := write(t, "short", "too-short\n"), write(t, "one", strings.Repeat("a", 32)+"\n")
	two := write(t, "two", strings.Repeat("b", 32)+"\n"+strings.Repeat("a", 32)+"\n"+strings.Repeat("a", 32)+"\n")
	const apart = "any caller that shows it may submit, take and end the jobs of each of them; give each a token of its own"
	for name, test := range map[string]struct {
		services string
		want     []string // lines that a check tells
		code     int
	}{
		"no file":        {"{render: {worker_token_file: " + none + "}, archive: {}}", []string{"services.render.worker_token_file: " + none + " does not exist; make it, or write another path"}, exitFailure},
		"a short token":  {"{render: {worker_token_file: " + short + "}}", []string{"services.render.worker_token_file: read tokens: " + short + " has a token of 9 bytes in line 1; write at least 32"}, exitFailure},
		"no nudge file":  {"{render: {cluster: c, ecs_service: s, region: eu-west-1, nudge_token_file: " + none + "}}", []string{"services.render.nudge_token_file: " + none}, exitFailure},
		"one of each":    {"{b: {worker_token_file: " + none + "}, a: {worker_token_file: " + short + "}}", []string{"services.a.worker_token_file: "}, exitFailure},
		"one of its own": {"{render: {worker_token_file: " + two + "}}", []string{"ok"}, 0},
		"one in common":  {"{render: {worker_token_file: " + two + "}, archive: {worker_token_file: " + one + "}}", []string{"ok", "warning: services archive and render have a worker token in common: " + apart}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, "controld.yaml", "services: "+test.services+"\n")
			got := controld(t, "config", "check", "--dev", file)
			for _, line := range test.want {
				if !strings.Contains(got.stdout, line) {
					t.Errorf("a check says\n%s%s\nwant %s", got.stdout, got.stderr, line)
				}
			}
			if got.code != test.code || strings.Contains(got.stdout, "too-short") || strings.Contains(got.stdout, "in common") != (name == "one in common") {
				t.Errorf("a check ends with %d: %s", got.code, got.stdout)
			}
		})
	}
	c := config.Default()
	c.Services = map[string]config.Service{"b": {WorkerTokenFile: none}, "a": {WorkerTokenFile: short}}
	_, err := inputs.Of("controld.yaml", c)
	if err == nil || !strings.Contains(err.Error(), "services.a.") || !strings.Contains(err.Error(), "services.b.") {
		t.Errorf("at start: got %v", err)
	}
}

// TestServicesWithAQueue are those whose jobs are not elsewhere.
func TestServicesWithAQueue(t *testing.T) {
	elsewhere := config.Service{Queue: config.ServiceQueue{PostgREST: &config.PostgREST{}}}
	o := workerOptions(&config.Config{Services: map[string]config.Service{"render": {Requeue: true, QueueTimeout: time.Hour}, "archive": {}, "elsewhere": elsewhere}}, nil)
	if diff := cmp.Diff(map[string]model.JobPolicy{"render": {QueueTime: time.Hour, Requeue: true}, "archive": {}}, o.Services); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
	if o := workerOptions(&config.Config{Services: map[string]config.Service{"elsewhere": elsewhere}}, nil); o != nil {
		t.Errorf("without a queue here: got %v, want nothing", o)
	}
}
