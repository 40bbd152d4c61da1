package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const (
	repository = "acme/shop"
	// within bounds a test with processes; a healthy one takes a few seconds,
	// and many times that where much else runs.
	within = 5 * time.Minute
)

// buffer may be written by a process while a test reads it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// stage is a `controld dev` and what a test asks of it.
type stage struct {
	*local.System
	t       *testing.T
	ctx     context.Context
	options local.Options
	log     *buffer
}

func startDev(t *testing.T, config string) *stage {
	t.Helper()
	programs := programsBesideEachOther(t) // may compile for minutes
	ctx, cancel := context.WithTimeout(context.Background(), within)
	t.Cleanup(cancel)
	s := &stage{t: t, ctx: ctx, log: &buffer{}}
	s.options = local.Options{Bin: programs, StateDir: filepath.Join(t.TempDir(), "state"), Stderr: s.log}
	if config != "" {
		s.options.Config = write(t, "controld.yaml", config)
	}
	s.start()
	t.Cleanup(s.finish)
	return s
}

func (s *stage) start() {
	s.t.Helper()
	var err error
	if s.System, err = local.Start(s.ctx, s.options); err != nil {
		s.t.Fatalf("%v\n%s", err, s.log)
	}
}

// finish: at its end dev leaves no process behind, and takes no longer than it
// may.
func (s *stage) finish() {
	if err := s.Stop(); err != nil {
		s.t.Error(err)
	}
	s.nothingRuns()
	if s.t.Failed() {
		s.t.Logf("controld's log:\n%s", s.log)
	}
}

func (s *stage) nothingRuns() {
	s.t.Helper()
	if left := s.processes(""); len(left) > 0 {
		s.t.Errorf("processes left: %v", left)
	}
}

// processes are those below a directory of the state directory.
func (s *stage) processes(below string) []local.Process {
	s.t.Helper()
	list, err := local.Processes(filepath.Join(s.options.StateDir, below))
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

func (s *stage) provision(runID string) *remudav1.ProvisionResponse {
	s.t.Helper()
	got, err := s.Fleet.Provision(s.ctx, &remudav1.ProvisionRequest{
		Repository: repository, RunId: runID, InstanceCount: proto.Int32(1), Timeout: durationpb.New(time.Minute),
	})
	if err != nil {
		s.t.Fatalf("provision %s: %v", runID, err)
	}
	if len(got.GetInstances()) != 1 {
		s.t.Fatalf("provision %s: %d hosts, want 1", runID, len(got.GetInstances()))
	}
	return got
}

func (s *stage) release(runID string) *remudav1.ReleaseResponse {
	s.t.Helper()
	got, err := s.Fleet.Release(s.ctx, &remudav1.ReleaseRequest{Repository: repository, RunId: runID, Wait: true})
	if err != nil {
		s.t.Fatalf("release %s: %v", runID, err)
	}
	return got
}

// job runs a workflow of one job on the run's host.
func (s *stage) job(runID, script string) local.Job {
	s.t.Helper()
	workflow := "on: push\njobs:\n  only:\n    runs-on: \"${{ github.run_id }}\"\n    steps:\n      - run: " + script + "\n"
	if _, err := s.GitHub.StartRun(s.ctx, repository, runID, workflow); err != nil {
		s.t.Fatal(err)
	}
	run, err := s.GitHub.WaitRun(s.ctx, runID, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return run.Jobs[0]
}

func (s *stage) get(path string) string {
	s.t.Helper()
	response, err := http.Get("http://" + s.HTTPAddr + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(body)
}
