package aws_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	repository = "acme/shop"
	// within bounds the test; it takes a minute, and many times that where much
	// else runs.
	within = 8 * time.Minute
)

// stage is a fleet in an account of its own.
type stage struct {
	testing.TB
	ctx      context.Context
	account  *account
	machines *machines
	fleet    remudav1.FleetServiceClient
	github   *local.GitHub
	setup    setup
	config   string // controld's
	programs string // the directory of controld's
	controld *process
	log      *buffer
}

func newStage(t testing.TB) *stage {
	t.Helper()
	return newStageOf(t, testrun.System.Dir(t))
}

// newStageOf is newStage with the programs of a directory.
func newStageOf(t testing.TB, programs string) *stage {
	t.Helper()
	return newStageWith(t, programs, setup{pools: pools, more: quickSweeps})
}

// setup is what the configurations of stages differ by, in lines of YAML: the pools, and more keys.
type setup struct{ pools, more string }

// quickSweeps keep the tests short.
const quickSweeps = "sweeps: {due: 500ms}\n"

// newStageWith is newStageOf with a setup.
func newStageWith(t testing.TB, programs string, with setup) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	t.Cleanup(cancel)
	s := &stage{TB: t, ctx: ctx, account: newAccount(t), programs: programs, setup: with, log: &buffer{}}
	s.github = startGitHub(t)
	s.configure()
	s.startControld()
	s.Cleanup(func() {
		s.controld.kill()
		if s.Failed() {
			s.Logf("controld's log:\n%s", s.log)
		}
	})
	s.machines = startMachines(t, s.account, programs)
	return s
}

// startGitHub starts a stand-in for GitHub.
func startGitHub(t testing.TB) *local.GitHub {
	t.Helper()
	log := &buffer{}
	p := start(t, log, nil, testrun.System.Dir(t), "controld", "github-standin", "--addr", "127.0.0.1:0", "--state-dir", t.TempDir())
	t.Cleanup(p.kill)
	return local.NewGitHub(p.ready(t, log, "github")[0])
}

// pools: hosts of the pool brief expire at once, and all else has time. Those of the other pool outlive a new launch template,
// such as another version makes.
const pools = `
  default: {resource_classes: [large], idle_time: 1h, drift: ignore}
  brief: {resource_classes: [large], idle_time: 2s}
`

const settings = `
aws:
  region: %s
  instance_profile: %s
  ec2:
    images: {x86_64: %s}
    subnets: [%s]
    security_groups: [%s]
grpc: {addr: "127.0.0.1:0"}
http: {addr: "127.0.0.1:0"}
github: {url: "%s/api/v3", token_file: %s}
pools:%s
timeouts: {claim_margin: 1s}
%s`

func (s *stage) configure() {
	s.Helper()
	token := filepath.Join(s.TempDir(), "token")
	check(s.TB, os.WriteFile(token, []byte("standin\n"), 0o600))
	image, subnets, group := s.account.network()
	s.config = filepath.Join(s.TempDir(), "controld.yaml")
	text := fmt.Sprintf(settings, region, profile, image, strings.Join(subnets, ", "), group, s.github.URL(), token, s.setup.pools, s.setup.more)
	check(s.TB, os.WriteFile(s.config, []byte(text), 0o600))
}

func (s *stage) startControld() {
	s.Helper()
	out := &buffer{also: s.log}
	s.controld = start(s.TB, out, s.account.controld.Environ(), s.programs, "controld", "serve", "--config", s.config)
	conn, err := grpc.NewClient(s.controld.ready(s.TB, out, "grpc")[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(s.TB, err)
	s.Cleanup(func() { _ = conn.Close() }) // closing twice is its only error
	s.fleet = remudav1.NewFleetServiceClient(conn)
}

// ask is a request with what most have in common.
func ask(runID string, count int32, change ...func(*remudav1.ProvisionRequest)) *remudav1.ProvisionRequest {
	req := &remudav1.ProvisionRequest{
		Repository: repository, RunId: runID, RequestId: "request-" + runID, InstanceCount: proto.Int32(count), Timeout: durationpb.New(5 * time.Minute),
	}
	for _, c := range change {
		c(req)
	}
	return req
}

func (s *stage) provision(req *remudav1.ProvisionRequest) *remudav1.ProvisionResponse {
	s.Helper()
	got, err := s.fleet.Provision(s.ctx, req)
	if err != nil {
		s.Fatalf("provision run %s: %v", req.GetRunId(), err)
	}
	return got
}

func (s *stage) release(runID string) *remudav1.ReleaseResponse {
	s.Helper()
	got, err := s.fleet.Release(s.ctx, &remudav1.ReleaseRequest{Repository: repository, RunId: runID, Wait: true})
	if err != nil {
		s.Fatalf("release run %s: %v", runID, err)
	}
	return got
}

// work runs a workflow of so many jobs on the run's hosts.
func (s *stage) work(runID, script string) {
	s.Helper()
	workflow := "on: push\njobs:\n  work:\n    runs-on: \"${{ github.run_id }}\"\n    steps:\n      - run: " + script + "\n"
	if _, err := s.github.StartRun(s.ctx, repository, runID, workflow); err != nil {
		s.Fatal(err)
	}
	run, err := s.github.WaitRun(s.ctx, runID, nil)
	if err != nil || run.Conclusion != "success" {
		s.Fatalf("run %s came out as %q (%v): %+v", runID, run.Conclusion, err, run.Jobs)
	}
}

// living is how many instances EC2 has that are not ending.
func (s *stage) living() int {
	s.Helper()
	return s.account.living(s.ctx)
}

// eventually waits until something holds.
func (s *stage) eventually(what string, holds func() bool) {
	s.Helper()
	for !holds() {
		select {
		case <-s.ctx.Done():
			s.Fatalf("still not: %s", what)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func ids(instances []*remudav1.Instance) map[string]bool {
	set := map[string]bool{}
	for _, i := range instances {
		set[i.GetInstanceId()] = true
	}
	return set
}
