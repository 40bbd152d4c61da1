package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestTheQueueByHand runs the lines of docs/services.md against a fleet on this
// machine, with curl and grpcurl.
func TestTheQueueByHand(t *testing.T) {
	const token = "the-token-of-the-workers-of-render"
	file := write(t, "tokens", token+"\n")
	s := startDev(t, "services: {render: {worker_token_file: "+file+", requeue: true}}\n")
	cmd := exec.CommandContext(s.ctx, "bash", "-euo", "pipefail", "-c", shellOf(t, filepath.Join("..", "docs", "services.md"), "TestTheQueueByHand"))
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "TOKEN="+token, "HTTP=http://"+s.HTTPAddr, "GRPC="+s.GRPCAddr, "PATH="+grpcurl(t)+":"+os.Getenv("PATH"))
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

// grpcurl builds the pinned one, and is the directory that has it.
func grpcurl(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "github.com/fullstorydev/grpcurl/cmd/grpcurl")
	cmd.Dir = filepath.Join("..", "internal", "tools")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build grpcurl: %v\n%s", err, out)
	}
	return dir
}

// TestWorkerTokensAtStart: controld does not start with workers that nobody
// could tell apart.
func TestWorkerTokensAtStart(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"no file": {filepath.Join(t.TempDir(), "none"), "services.render.worker_token_file: read tokens: open "},
		"short":   {write(t, "tokens", "too-short\n"), "has a token of 9 bytes in line 1; write at least 32"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &config.Config{Services: map[string]config.Service{"render": {WorkerTokenFile: test.file}, "archive": {}}}
			_, err := workerTokens(c)
			var wrong *configError
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "too-short") {
				t.Errorf("got error %v, want %s", err, test.want)
			}
		})
	}
}

// TestServicesWithAQueue are those whose jobs are not elsewhere.
func TestServicesWithAQueue(t *testing.T) {
	elsewhere := config.Service{Queue: config.ServiceQueue{PostgREST: &config.PostgREST{}}}
	o := workerOptions(&config.Config{Services: map[string]config.Service{"render": {Requeue: true, QueueTimeout: time.Hour}, "archive": {}, "elsewhere": elsewhere}}, nil)
	if diff := cmp.Diff(map[string]lifecycle.WorkPolicy{"render": {QueueTime: time.Hour, Requeue: true}, "archive": {}}, o.Services); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
	if o := workerOptions(&config.Config{Services: map[string]config.Service{"elsewhere": elsewhere}}, nil); o != nil {
		t.Errorf("without a queue here: got %v, want nothing", o)
	}
}
