package jobs_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/openapitest"
	"github.com/remuda-ci/remuda/internal/githubsim/runner"
	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// endWithin is for the end of all hosts of a test.
const endWithin = time.Minute

// served is the configuration of a `controld serve` on this machine.
const served = `grpc:
  addr: 127.0.0.1:0
http:
  addr: 127.0.0.1:0
store:
  sqlite:
    path: %[1]s/remuda.db
compute:
  process:
    directory: %[1]s
    agentd: %[2]s/agentd
    runner: %[1]s/runner
%[4]sgithub:
  url: http://%[3]s/api/v3
  repositories: [acme/shop]
  apps:
`

// newServed starts a stand-in with GitHub Apps, and a `controld serve` that goes
// by them: unlike a token, an App can ask for deliveries that were missed, and
// two have twice the budget of one.
func newServed(t *testing.T, apps int, config string) *stage {
	t.Helper()
	s, _ := newServedBeside(t, apps, config)
	return s
}

// newServedBeside is newServed, with the stand-in for another `controld serve` beside it.
func newServedBeside(t *testing.T, apps int, config string) (*stage, *local.Standin) {
	t.Helper()
	s := emptyStage(t)
	return s, s.beginServed(apps, config)
}

// beginServed starts a stand-in with Apps, and a `controld serve` that goes by them.
func (s *stage) beginServed(apps int, config string) *local.Standin {
	t := s.T
	t.Helper()
	github := filepath.Join(s.dir, "github")
	if err := os.Mkdir(github, 0o700); err != nil {
		t.Fatal(err)
	}
	standin, err := local.StartStandin(s.ctx, testrun.System.Dir(t), github, s.log)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
	t.Cleanup(func() { s.nothingRuns(standin) })
	ids := make([]int64, apps)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	s.serve(standin, ids, config)
	s.deliver(local.Webhooks{})
	return standin
}

// serve starts a `controld serve` with new Apps of these ids on a stand-in that runs.
func (s *stage) serve(standin *local.Standin, apps []int64, config string) {
	t := s.T
	t.Helper()
	if err := runner.LayOut(filepath.Join(s.dir, "runner"), filepath.Join(testrun.System.Dir(t), "standin-runner")); err != nil {
		t.Fatal(err)
	}
	// Every call that controld makes is held against GitHub's description.
	checked := openapitest.Proxy(t, standin.GitHub.URL())
	text := fmt.Sprintf(served, s.dir, testrun.System.Dir(t), checked.Listener.Addr(), s.process)
	for _, id := range apps {
		text += fmt.Sprintf("    - app_id: %d\n      private_key_file: %s\n", id, s.app(standin.GitHub, id))
	}
	config = s.fill(config, standin)
	s.start(local.Options{Serve: true, GitHubAddr: standin.Addr, Config: s.write("controld.yaml", text+config+s.common())})
	t.Cleanup(s.endServed)
}

// What fill puts into a configuration.
const (
	repositoryID = "REPOSITORY_ID"
	standinURL   = "STANDIN_URL"
)

// fill puts in what only the stand-in knows.
func (s *stage) fill(config string, standin *local.Standin) string {
	s.Helper()
	config = strings.ReplaceAll(config, standinURL, standin.GitHub.URL())
	if !strings.Contains(config, repositoryID) {
		return config
	}
	if _, err := standin.GitHub.StartRun(s.ctx, repository, "1", workflow(1, "label-of-no-runner", "'true'")); err != nil {
		s.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, standin.GitHub.URL()+"/api/v3/repos/"+repository+"/actions/runs/1", nil)
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer any")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	var run struct {
		Repository struct {
			ID int64 `json:"id"`
		} `json:"repository"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&run); err != nil || run.Repository.ID == 0 {
		s.Fatalf("the id of %s: %d (%v)", repository, run.Repository.ID, err)
	}
	return strings.ReplaceAll(config, repositoryID, fmt.Sprint(run.Repository.ID))
}

// app installs an App and returns the path of its key.
func (s *stage) app(github *local.GitHub, id int64) string {
	s.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		s.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		s.Fatal(err)
	}
	owner, _, _ := strings.Cut(repository, "/")
	if err := github.InstallApp(s.ctx, id, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})), owner); err != nil {
		s.Fatal(err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return s.write("app.pem", string(private))
}

// endServed ends the hosts, which would outlive controld, and controld: also
// those of a test whose time is up.
func (s *stage) endServed() {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	s.ctx = ctx
	s.Cleanup(s.killHosts) // after what fails here
	if s.replaces {
		return
	}
	for _, i := range s.live() {
		_, err := s.Fleet.TerminateInstance(ctx, &remudav1.TerminateInstanceRequest{InstanceId: i.GetInstanceId(), Reason: "the test is over"})
		if err != nil {
			s.Errorf("end host %s: %v", i.GetInstanceId(), err)
		}
	}
	s.eventually(func() string { return s.running("hosts") })
}

// killHosts ends controld, and hosts that it did not end.
func (s *stage) killHosts() {
	if err := s.Stop(); err != nil {
		s.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	s.ctx = ctx
	s.eventually(s.killOnce)
}

// killOnce kills what runs of the hosts, and says what that was. One look is not enough: an init that is starting its
// agent may be killed between the two, and then the agent waits for its record for ten minutes.
func (s *stage) killOnce() string {
	left, err := local.Processes(filepath.Join(s.dir, "hosts"))
	for _, p := range left {
		killed := syscall.Kill(p.PID, syscall.SIGKILL)
		if !s.replaces {
			s.Errorf("killed, since it did not end: %v (%v)", p, killed)
		}
	}
	if err != nil || len(left) > 0 {
		return fmt.Sprintf("processes are left: %v %v", left, err)
	}
	return ""
}

// nothingRuns ends the stand-in, after which no process may be left.
func (s *stage) nothingRuns(standin *local.Standin) {
	if err := standin.Stop(); err != nil {
		s.Errorf("%v", err)
	}
	if left := s.running(""); left != "" {
		s.Error(left)
	}
	if s.Failed() {
		s.Logf("controld's log:\n%s", s.log)
	}
}

// running says which processes there are under a part of the directory, or "".
func (s *stage) running(part string) string {
	left, err := local.Processes(filepath.Join(s.dir, part))
	if err != nil || len(left) > 0 {
		return fmt.Sprintf("processes are left: %v %v", left, err)
	}
	return ""
}
