package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// gated starts a job of the run, whose step is under way when gated returns,
// and which ends well once the gate is open.
func (s *stage) gated(runID string) (open func()) {
	s.Helper()
	begun, gate := filepath.Join(s.T.TempDir(), "begun"), filepath.Join(s.T.TempDir(), "gate")
	step := "touch " + begun + "\nuntil [ -e " + gate + " ]; do sleep 0.05; done\necho survived"
	if _, err := s.GitHub.StartRun(s.ctx, repository, runID, workflow(step)); err != nil {
		s.Fatal(err)
	}
	s.eventually(func() string {
		if _, err := os.Stat(begun); err != nil {
			return "the step has not begun"
		}
		return ""
	})
	s.eventually(func() string {
		for _, i := range s.instances() {
			if i.GetRunId() == runID && i.GetBusy() {
				return ""
			}
		}
		return "no host of the run says that it is busy"
	})
	return func() {
		s.Helper()
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			s.Fatal(err)
		}
		run, err := s.GitHub.WaitRun(s.ctx, runID, nil)
		if err != nil || run.Conclusion != "success" || !strings.Contains(run.Jobs[0].Log, "survived") {
			s.Errorf("the job came out as %q (%v): %v", run.Conclusion, err, run.Jobs)
		}
	}
}

// The disk of a host is full while a job runs: the job lives, agentd comes back
// after it was killed, and a host that cannot be cleaned is not pooled but
// ended, with what is wrong and what to do. With room again all goes on.
func TestFullDiskOfAHost(t *testing.T) {
	t.Parallel()
	onSmallDisk(t, func(d *smallDisk) {
		if d.limited { // which holds for the store as well, so no report would get out
			d.t.Log("NOT PROVEN HERE, since nothing may be mounted: the full disk of a host; agentd's TestReadOnlyState comes next to it")
			return
		}
		state, elsewhere := filepath.Join(d.dir, "state"), d.t.TempDir()
		for _, dir := range []string{state, filepath.Join(elsewhere, "github")} {
			if err := os.Mkdir(dir, 0o700); err != nil {
				d.t.Fatal(err)
			}
		}
		for _, name := range []string{"remuda.db", "github"} {
			if err := os.Symlink(filepath.Join(elsewhere, name), filepath.Join(state, name)); err != nil {
				d.t.Fatal(err)
			}
		}
		s := newStageIn(d.t, state, "")
		host := s.mustProvision("8001", "a", 1).GetInstances()[0].GetInstanceId()
		finish := s.gated("8001")
		d.fill()
		s.killAgentd(host)
		s.eventually(func() string {
			if len(s.agentds(host)) == 0 {
				return "agentd has not come back"
			}
			return ""
		})
		s.release("8001", false)
		finish()
		s.eventually(func() string { return s.isEnded(host) })
		got, err := s.Fleet.GetInstance(s.ctx, &remudav1.GetInstanceRequest{InstanceId: host})
		if err != nil {
			d.t.Fatal(err)
		}
		reason := got.GetInstance().GetReason()
		for _, want := range []string{"free some space", filepath.Join("hosts", host, "host")} {
			if !strings.Contains(reason, want) {
				d.t.Errorf("the host was ended for %q, which does not say %q", reason, want)
			}
		}
		d.room()
		s.mustProvision("8002", "b", 1)
		s.gated("8002")()
	})
}

func (s *stage) isEnded(host string) string {
	got, err := s.Fleet.GetInstance(s.ctx, &remudav1.GetInstanceRequest{InstanceId: host})
	if err != nil {
		return err.Error()
	}
	if i := got.GetInstance(); i.GetState() != remudav1.State_STATE_TERMINATED {
		return "the host is " + i.GetState().String() + ": " + i.GetReason()
	}
	return ""
}

// The disk of everything is full: what cannot be written is UNAVAILABLE with
// the reason, reads go on, no job and no host is lost, and with room again the
// same requests succeed.
func TestFullDiskOfTheStore(t *testing.T) {
	t.Parallel()
	onSmallDisk(t, func(d *smallDisk) {
		s := newStageIn(d.t, filepath.Join(d.dir, "state"), "")
		s.mustProvision("9001", "a", 2)
		s.mustProvision("9002", "b", 1)
		finish := s.gated("9002")
		before := s.instances()

		d.fill()
		refused := ""
		for n := 0; refused == "" && n < 20; n++ { // a small write may fit into what the database has
			d.fill()
			run := fmt.Sprint(9100 + n)
			if s.onFullDisk(d, "provision", func(ctx context.Context) error {
				_, err := s.Fleet.Provision(ctx, &remudav1.ProvisionRequest{Repository: repository, RunId: run, RequestId: run})
				return err
			}) == codes.Unavailable {
				refused = run
			}
		}
		if refused == "" {
			d.t.Fatal("no provision was refused")
		}
		s.onFullDisk(d, "release", func(ctx context.Context) error {
			_, err := s.Fleet.Release(ctx, &remudav1.ReleaseRequest{Repository: repository, RunId: "9002"})
			return err
		})
		s.stillThere(before)

		d.room()
		s.mustProvision(refused, refused, 1)
		s.stillThere(before)
		finish()
		s.release("9002", true)
	})
}

// stillThere fails when one of the hosts is no longer live.
func (s *stage) stillThere(hosts []*remudav1.Instance) {
	s.Helper()
	live := map[string]bool{}
	for _, i := range s.instances() {
		live[i.GetInstanceId()] = true
	}
	for _, i := range hosts {
		if !live[i.GetInstanceId()] {
			s.Errorf("host %s is lost", i.GetInstanceId())
		}
	}
}

// onFullDisk makes a call that may succeed, or fail with an answer that names
// the database or the file, what is wrong and what to do: UNAVAILABLE when it
// has done nothing, DEADLINE_EXCEEDED when a write of it had room and the next
// had none.
func (s *stage) onFullDisk(d *smallDisk, what string, call func(ctx context.Context) error) codes.Code {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second) // twice a call's patience
	defer cancel()
	err := call(ctx)
	switch code := status.Code(err); {
	case code == codes.OK:
	case code != codes.Unavailable && code != codes.DeadlineExceeded:
		s.Errorf("%s on a full disk: %v", what, err)
	case code == codes.Unavailable:
		for _, want := range []string{d.dir, d.remedyOfStore} {
			if !strings.Contains(err.Error(), want) {
				s.Errorf("%s on a full disk: %v does not say %q", what, err, want)
			}
		}
	}
	return status.Code(err)
}
