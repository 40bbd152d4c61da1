// Package jobs_test proves webhooks, job pools and re-runs with real processes:
// controld, agentd, the GitHub stand-in and its runner.
package jobs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	// secret signs the webhooks.
	secret = "what the stand-in and controld share"
	// within bounds each test; a healthy one takes seconds to a minute, and many
	// times that where much else runs.
	within = 8 * time.Minute
)

func TestMain(m *testing.M) {
	testrun.Together()
	code := m.Run()
	testrun.System.Remove()
	os.Exit(code)
}

// stage is one system under test on a directory of its own.
type stage struct {
	*testing.T
	*local.System
	ctx context.Context
	dir string
	log *journal
	// replaces is set where a pool has a minimum of hosts: controld launches another for each that ends, so they
	// are killed when it has stopped.
	replaces bool
	// process has more lines for compute.process of a `controld serve`.
	process string
}

// newStage starts `controld dev` with a configuration to which log and webhooks
// are added. At the end of the test it must stop in time and leave no process
// behind.
func newStage(t *testing.T, config string) *stage {
	t.Helper()
	s := emptyStage(t)
	s.start(local.Options{Config: s.write("controld.yaml", config+s.common())})
	t.Cleanup(s.finish)
	return s
}

// emptyStage is a stage on which nothing runs yet.
func emptyStage(t *testing.T) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	t.Cleanup(cancel)
	s := &stage{T: t, ctx: ctx, dir: filepath.Join(t.TempDir(), "state"), log: &journal{}}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// common is what the configuration of every stage has.
func (s *stage) common() string {
	return "log:\n  format: json\nwebhooks:\n  secret_file: " + s.write("webhook-secret", secret+"\n") + "\n"
}

// write makes a file and returns its path.
func (s *stage) write(name, text string) string {
	s.Helper()
	path := filepath.Join(s.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}

func (s *stage) start(o local.Options) {
	s.Helper()
	o.Bin, o.StateDir, o.Stderr = testrun.System.Dir(s.T), s.dir, s.log
	var err error
	if s.System, err = local.Start(s.ctx, o); err != nil {
		s.Fatalf("%v\n%s", err, s.log)
	}
}

func (s *stage) finish() {
	if err := s.Stop(); err != nil {
		s.Errorf("%v", err)
	}
	if left := s.running(""); left != "" {
		s.Error(left)
	}
	if s.Failed() {
		s.Logf("controld's log:\n%s", s.log)
	}
}

// deliver changes how webhooks go from now on.
func (s *stage) deliver(w local.Webhooks) {
	s.Helper()
	w.Target, w.Secret = "http://"+s.HTTPAddr+"/webhooks/github", secret
	if err := s.GitHub.SetWebhooks(s.ctx, w); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) provision(runID string, count int32) *remudav1.ProvisionResponse {
	s.Helper()
	got, err := s.Fleet.Provision(s.ctx, &remudav1.ProvisionRequest{
		Repository: repository, RunId: runID, InstanceCount: proto.Int32(count), Timeout: durationpb.New(5 * time.Minute),
	})
	if err != nil {
		s.Fatalf("provision %s: %v", runID, err)
	}
	return got
}

func (s *stage) run(runID, workflow string) local.Run {
	s.Helper()
	run, err := s.GitHub.StartRun(s.ctx, repository, runID, workflow)
	if err != nil {
		s.Fatal(err)
	}
	return run
}

// succeeds waits for the end of runs. Each of their jobs must succeed. between,
// if any, is called again and again.
func (s *stage) succeeds(between func(), runIDs ...string) {
	s.Helper()
	for _, id := range runIDs {
		s.eventually(func() string {
			if between != nil {
				between()
			}
			return s.runIs(id, "completed")
		})
		run, err := s.GitHub.Run(s.ctx, id)
		if err != nil {
			s.Fatal(err)
		}
		for _, j := range run.Jobs {
			if j.Conclusion != "success" {
				s.Errorf("job %s of run %s came out as %q:\n%s", j.Name, id, j.Conclusion, j.Log)
			}
		}
	}
}

func (s *stage) runIs(runID, status string) string {
	run, err := s.GitHub.Run(s.ctx, runID)
	if err != nil {
		return err.Error()
	}
	if run.Status != status {
		return fmt.Sprintf("run %s is %s: %s", runID, run.Status, tally(run))
	}
	return ""
}

// tally is how many jobs of a run have which status.
func tally(run local.Run) string {
	count := map[string]int{}
	for _, j := range run.Jobs {
		count[j.Status]++
	}
	return fmt.Sprint(count)
}

// hosts lists the hosts of these states; none: all there ever were.
func (s *stage) hosts(states ...remudav1.State) []*remudav1.Instance {
	s.Helper()
	if len(states) == 0 { // which would leave out those that have ended
		states = append(slices.Clone(living), remudav1.State_STATE_TERMINATED)
	}
	got, err := s.Fleet.ListInstances(s.ctx, &remudav1.ListInstancesRequest{States: states, PageSize: 1000})
	if err != nil {
		s.Fatal(err)
	}
	return got.GetInstances()
}

// charged checks that a run had at least so many hosts, and that its time is charged to it and to its workflow, whose name
// GitHub's webhooks have.
func (s *stage) charged(runID string, hosts int64) {
	s.Helper()
	if complaint := func() string {
		got, err := s.Fleet.GetCost(s.ctx, &remudav1.GetCostRequest{By: remudav1.CostBy_COST_BY_RUN, RunId: runID})
		if err != nil {
			return err.Error()
		}
		rows := got.GetRows()
		if len(rows) != 1 || rows[0].GetHosts() < hosts || rows[0].GetRepository() != repository || rows[0].GetWorkflow() == "" || rows[0].GetBoot().AsDuration()+rows[0].GetBusy().AsDuration() <= 0 {
			return fmt.Sprintf("charged to run %s: %v", runID, rows)
		}
		return ""
	}(); complaint != "" {
		s.Error(complaint)
	}
}

// living are the states of hosts that are not terminated.
var living = []remudav1.State{
	remudav1.State_STATE_CREATED, remudav1.State_STATE_RUNNING, remudav1.State_STATE_IDLE, remudav1.State_STATE_CLAIMED,
}

// live lists the hosts that are not terminated.
func (s *stage) live() []*remudav1.Instance {
	s.Helper()
	return s.hosts(living...)
}

// atRest waits until every live host is in the pool, and nothing is registered except hosts that wait there.
func (s *stage) atRest() {
	s.Helper()
	s.eventually(func() string {
		for _, i := range s.live() {
			if i.GetPooledTime() == nil || i.GetBusy() {
				return fmt.Sprintf("host %s is %s (busy: %v): %s", i.GetInstanceId(), i.GetState(), i.GetBusy(), i.GetReason())
			}
		}
		runners, err := s.GitHub.Runners(s.ctx)
		if left := local.OfRuns(runners); err != nil || len(left) > 0 {
			return fmt.Sprintf("registrations are left: %v %v", left, err)
		}
		return ""
	})
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
			s.Fatalf("still: %s\n%s", complaint, s.log)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
