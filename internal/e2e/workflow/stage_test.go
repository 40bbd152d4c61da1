package workflow_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/remuda-ci/remuda/internal/githubsim/runner"
	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	owner      = "acme"
	repository = "acme/shop"
	// hooked is a repository whose hosts come by webhook. Which workflow a run is
	// of only an ID token tells, so its rule does not ask for one.
	hooked   = "acme/hooked"
	audience = "https://remuda.test"
	appID    = 4711
	// secret signs the webhooks.
	secret = "what the stand-in and controld share"
	// within bounds each test; a healthy one takes seconds, and many times that
	// where much else runs.
	within = 8 * time.Minute
	// endWithin is for hosts to end, which takes a second.
	endWithin = time.Minute
)

// stage is one system under test on a directory of its own.
type stage struct {
	*testing.T
	ctx       context.Context
	dir       string
	log       *local.Log // of controld and of GitHub's machines
	authority *authority
	daemon    *local.System
	github    *local.GitHub
	// admin has every right.
	admin remudav1.FleetServiceClient
}

// newStage starts a system. At the end of the test it must stop in time and
// leave no process behind.
func newStage(t *testing.T) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	t.Cleanup(cancel)
	s := &stage{T: t, ctx: ctx, dir: t.TempDir(), log: &local.Log{}, authority: newAuthority(t)}
	t.Cleanup(s.nothingLeft)
	s.startGitHub()
	key, public := appKey(t)
	if err := s.github.InstallApp(ctx, appID, public, owner); err != nil {
		t.Fatal(err)
	}
	if err := runner.LayOut(filepath.Join(s.dir, "runner"), filepath.Join(testrun.System.Dir(s.T), "standin-runner")); err != nil {
		t.Fatal(err)
	}
	s.startControld(key)
	s.admin = s.caller(s.authority.client(s.authority, "alice"))
	t.Cleanup(s.endHosts)
	return s
}

func (s *stage) startGitHub() {
	s.Helper()
	standin, err := local.StartStandin(s.ctx, testrun.System.Dir(s.T), filepath.Join(s.dir, "github"), s.log)
	if err != nil {
		s.Fatalf("%v\n%s", err, s.log)
	}
	s.Cleanup(func() {
		if err := standin.Stop(); err != nil {
			s.Error(err)
		}
	})
	s.github = standin.GitHub
}

func (s *stage) startControld(appKey string) {
	s.Helper()
	path := filepath.Join(s.dir, "controld.yaml")
	if err := os.WriteFile(path, []byte(s.configuration(appKey)), 0o600); err != nil {
		s.Fatal(err)
	}
	var err error
	s.daemon, err = local.Start(s.ctx, local.Options{
		Bin: testrun.System.Dir(s.T), StateDir: s.dir, Config: path, Serve: true, Stderr: s.log, GitHubAddr: strings.TrimPrefix(s.github.URL(), "http://"),
	})
	if err != nil {
		s.Fatalf("%v\n%s", err, s.log)
	}
	s.Cleanup(func() {
		if err := s.daemon.Stop(); err != nil {
			s.Errorf("%v", err)
		}
	})
}

func (s *stage) configuration(appKey string) string {
	s.Helper()
	cert, key := s.authority.files("controld")
	secretFile := filepath.Join(s.dir, "webhook-secret")
	if err := os.WriteFile(secretFile, []byte(secret+"\n"), 0o600); err != nil {
		s.Fatal(err)
	}
	return fmt.Sprintf(`
grpc: {addr: "127.0.0.1:0", tls: {cert_file: %[2]s, key_file: %[3]s, client_ca_file: %[4]s}}
http: {addr: "127.0.0.1:0"}
store: {sqlite: {path: %[1]s/remuda.db}}
compute: {process: {directory: %[1]s/cloud, agentd: %[5]s/agentd, runner: %[1]s/runner}}
github:
  url: %[6]s/api/v3
  apps: [{app_id: %[7]d, private_key_file: %[8]s}]
  repositories: [%[9]s]
webhooks: {secret_file: %[10]s}
callers:
  audience: %[11]s
  issuer: %[6]s
  operators:
    - {subject: CN=alice, role: admin}
    - {subject: CN=dashboard, role: viewer}
  repositories:
    - repository_id: %[12]s
      repository: %[9]s
      events: [workflow_dispatch, pull_request]
      workflows: ["%[9]s/.github/workflows/*@**"]
      max_hosts: 2
      max_runtime: 1h
    - {repository_id: %[13]s, repository: %[14]s, webhook: true}
sweeps: {due: 500ms}
log: {format: json}
`, s.dir, cert, key, s.authority.file, testrun.System.Dir(s.T), s.github.URL(), appID, appKey, repository, secretFile, audience,
		s.claims(s.token(map[string]any{"repository": repository}))["repository_id"],
		s.claims(s.token(map[string]any{"repository": hooked}))["repository_id"], hooked)
}

// caller is a client of controld.
func (s *stage) caller(config *tls.Config) remudav1.FleetServiceClient {
	s.Helper()
	conn, err := grpc.NewClient(s.daemon.GRPCAddr, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { conn.Close() })
	return remudav1.NewFleetServiceClient(conn)
}

// hear has webhooks sent to controld.
func (s *stage) hear() {
	s.Helper()
	if err := s.github.SetWebhooks(s.ctx, local.Webhooks{Target: s.hookURL(), Secret: secret}); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) hookURL() string { return "http://" + s.daemon.HTTPAddr + "/webhooks/github" }

// hosts lists the hosts that are not terminated.
func (s *stage) hosts() []*remudav1.Instance {
	s.Helper()
	got, err := s.admin.ListInstances(s.ctx, &remudav1.ListInstancesRequest{States: []remudav1.State{
		remudav1.State_STATE_CREATED, remudav1.State_STATE_RUNNING, remudav1.State_STATE_IDLE, remudav1.State_STATE_CLAIMED,
	}})
	if err != nil {
		s.Fatal(err)
	}
	return got.GetInstances()
}

// endHosts ends the hosts, which outlive `controld serve`. Their runs are
// released first: a request that still waits for a host would get another one.
func (s *stage) endHosts() {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	s.ctx = ctx // the test's own may be over
	for _, i := range s.hosts() {
		if i.GetRunId() != "" {
			if _, err := s.admin.Release(s.ctx, &remudav1.ReleaseRequest{Repository: i.GetRepository(), RunId: i.GetRunId()}); err != nil {
				s.Errorf("release run %s: %v", i.GetRunId(), err)
			}
		}
	}
	for _, i := range s.hosts() {
		if _, err := s.admin.TerminateInstance(s.ctx, &remudav1.TerminateInstanceRequest{InstanceId: i.GetInstanceId(), Reason: "end of the test"}); err != nil {
			s.Errorf("end host %s: %v", i.GetInstanceId(), err)
		}
	}
	s.eventually(func() string {
		left, err := local.Processes(filepath.Join(s.dir, "cloud"))
		if err != nil || len(left) > 0 {
			return fmt.Sprintf("processes of hosts are left: %v %v", left, err)
		}
		return ""
	})
}

func (s *stage) nothingLeft() {
	left, err := local.Processes(s.dir)
	if err != nil || len(left) > 0 {
		s.Errorf("processes left after the end: %v %v", left, err)
	}
	for _, p := range left {
		_ = syscall.Kill(p.PID, syscall.SIGKILL) // it has ended by now: that is fine
	}
	if s.Failed() {
		for line := range strings.Lines(s.log.String()) {
			if !strings.Contains(line, "/ListInstances") { // the test's own looking
				s.Log(strings.TrimSpace(line))
			}
		}
	}
}

// eventually waits until check returns "", and fails with what it said last.
func (s *stage) eventually(check func() string) {
	s.Helper()
	for {
		complaint := check()
		if complaint == "" {
			return
		}
		select {
		case <-s.ctx.Done():
			s.Fatalf("still: %s", complaint)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
