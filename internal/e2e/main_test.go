// Package e2e_test proves the whole system with real processes: controld,
// agentd, the GitHub stand-in and its runner, killed at bad moments.
package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/local"
	"github.com/remuda-ci/remuda/internal/testrun"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	repository = "acme/shop"
	// within bounds each test; a healthy one takes seconds, and many times that
	// where much else runs.
	within = 8 * time.Minute
)

// bin is the directory with the binaries under test.
func bin(t testing.TB) string {
	if dir := os.Getenv(binVariable); dir != "" { // this process runs one test once more
		return dir
	}
	return testrun.System.Dir(t)
}

func TestMain(m *testing.M) {
	if os.Getenv(binVariable) != "" { // a test that runs once more, on a small disk
		if err := mountSmallDisk(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(cannotMount)
		}
		os.Exit(m.Run())
	}
	testrun.Together()
	code := m.Run()
	testrun.System.Remove()
	testrun.Older.Remove()
	os.Exit(code)
}

// stage is one system under test on a directory of its own.
type stage struct {
	*testing.T
	*local.System
	ctx    context.Context
	dir    string
	bin    string // the programs
	config string
	log    *local.Log
}

// newStage starts a system. At the end of the test it must stop in time and
// leave no process behind.
func newStage(t *testing.T, config string) *stage {
	t.Helper()
	return newStageIn(t, filepath.Join(t.TempDir(), "state"), config)
}

// newStageIn is newStage on a state directory that the test chose.
func newStageIn(t *testing.T, dir, config string) *stage {
	t.Helper()
	return newStageWith(t, bin(t), dir, config)
}

// newStageWith is newStageIn with the programs of a directory.
func newStageWith(t *testing.T, programs, dir, config string) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	t.Cleanup(cancel)
	s := &stage{T: t, ctx: ctx, dir: dir, bin: programs, log: &local.Log{}}
	if config != "" {
		s.config = filepath.Join(t.TempDir(), "controld.yaml")
		if err := os.WriteFile(s.config, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.start()
	t.Cleanup(s.finish)
	return s
}

func (s *stage) start() {
	s.Helper()
	var err error
	s.System, err = local.Start(s.ctx, local.Options{Bin: s.bin, StateDir: s.dir, Config: s.config, Stderr: s.log})
	if err != nil {
		s.Fatalf("%v\n%s", err, s.log)
	}
}

// crash kills controld with SIGKILL and starts it again on the same directory.
func (s *stage) crash() {
	s.Helper()
	s.Kill()
	s.start()
}

func (s *stage) finish() {
	if err := s.Stop(); err != nil {
		s.Errorf("%v", err)
	}
	left, err := local.Processes(s.dir)
	if err != nil || len(left) > 0 {
		s.Errorf("processes left after the end: %v %v", left, err)
	}
	if s.Failed() {
		s.Logf("controld's log:\n%s", s.log)
	}
}

// provision asks for hosts; a request id that was used before resumes.
func (s *stage) provision(runID, requestID string, count int32) (*remudav1.ProvisionResponse, error) {
	return s.Fleet.Provision(s.ctx, &remudav1.ProvisionRequest{
		Repository: repository, RunId: runID, RequestId: requestID, InstanceCount: proto.Int32(count),
		Timeout: durationpb.New(5 * time.Minute),
	})
}

func (s *stage) mustProvision(runID, requestID string, count int32) *remudav1.ProvisionResponse {
	s.Helper()
	got, err := s.provision(runID, requestID, count)
	if err != nil {
		s.Fatalf("provision %s: %v", requestID, err)
	}
	if len(got.GetInstances()) != int(count) {
		s.Fatalf("provision %s: %d hosts, want %d", requestID, len(got.GetInstances()), count)
	}
	return got
}

func (s *stage) release(runID string, wait bool) *remudav1.ReleaseResponse {
	s.Helper()
	got, err := s.Fleet.Release(s.ctx, &remudav1.ReleaseRequest{Repository: repository, RunId: runID, Wait: wait})
	if err != nil {
		s.Fatalf("release %s: %v", runID, err)
	}
	return got
}

// instances lists the hosts that are not terminated.
func (s *stage) instances() []*remudav1.Instance {
	s.Helper()
	got, err := s.Fleet.ListInstances(s.ctx, &remudav1.ListInstancesRequest{States: []remudav1.State{
		remudav1.State_STATE_CREATED, remudav1.State_STATE_RUNNING, remudav1.State_STATE_IDLE, remudav1.State_STATE_CLAIMED,
	}})
	if err != nil {
		s.Fatal(err)
	}
	return got.GetInstances()
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
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// workflow is one job with one step on a runner of the run.
func workflow(script string) string {
	return "on: push\njobs:\n  work:\n    runs-on: \"${{ github.run_id }}\"\n    steps:\n      - run: |\n          " +
		strings.ReplaceAll(strings.TrimSpace(script), "\n", "\n          ") + "\n"
}
