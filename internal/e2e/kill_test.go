package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// moments are when controld is killed after a call was begun: before, in and
// after each of its steps, on a machine of any speed.
var moments = []time.Duration{0, 3, 10, 25, 60, 150, 400, 900}

// everyHostOnce waits until no machine runs that no record knows, and fails
// when a host that is owned has no live record. A machine outlives its record
// for a moment, since it is ended after that.
func (s *stage) everyHostOnce(owned map[string]string) {
	s.Helper()
	s.eventually(func() string {
		// Machines first: one that is launched in between has its record.
		machines, err := filepath.Glob(filepath.Join(s.dir, "hosts", "i-*"))
		if err != nil {
			s.Fatal(err)
		}
		live := map[string]bool{}
		for _, i := range s.instances() {
			live[i.GetInstanceId()] = true
		}
		for host, owner := range owned {
			if !live[host] {
				s.Fatalf("host %s of %s is not live", host, owner)
			}
		}
		for _, dir := range machines {
			processes, err := local.Processes(dir)
			if err != nil {
				s.Fatal(err)
			}
			if len(processes) > 0 && !live[filepath.Base(dir)] {
				return fmt.Sprintf("machine %s runs without a live record: %v", filepath.Base(dir), processes)
			}
		}
		return ""
	})
}

func TestKillControldDuringProvision(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	owned := map[string]string{}
	for n, moment := range moments {
		run := fmt.Sprintf("10%02d", n)
		begun := make(chan struct{})
		go func() {
			defer close(begun)
			_, _ = s.provision(run, run, 2) // cut short by the kill, or not
		}()
		time.Sleep(moment * time.Millisecond)
		s.Kill()
		<-begun
		s.start()
		for _, i := range s.mustProvision(run, run, 2).GetInstances() {
			if other, taken := owned[i.GetInstanceId()]; taken {
				t.Errorf("host %s belongs to runs %s and %s", i.GetInstanceId(), other, run)
			}
			if i.GetRunId() != run || i.GetState() != remudav1.State_STATE_RUNNING {
				t.Errorf("host %s is %s of run %s", i.GetInstanceId(), i.GetState(), i.GetRunId())
			}
			owned[i.GetInstanceId()] = run
		}
		if n%2 == 1 { // so that both cold and warm are cut short
			s.release(run, true)
			for host, owner := range owned {
				if owner == run {
					delete(owned, host)
				}
			}
		}
	}
	s.eventually(func() string {
		if n := len(s.instances()); n < len(owned) {
			return fmt.Sprintf("%d live hosts, %d owned", n, len(owned))
		}
		return ""
	})
	s.everyHostOnce(owned)
}

func TestKillControldDuringRelease(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	for n, moment := range moments {
		run := fmt.Sprintf("20%02d", n)
		s.mustProvision(run, run, 2)
		begun := make(chan struct{})
		go func() {
			defer close(begun)
			_, _ = s.Fleet.Release(s.ctx, &remudav1.ReleaseRequest{Repository: repository, RunId: run, Wait: true})
		}()
		time.Sleep(moment * time.Millisecond)
		s.Kill()
		<-begun
		s.start()
		s.release(run, true)
		s.eventually(func() string {
			for _, i := range s.instances() {
				if i.GetState() != remudav1.State_STATE_IDLE || i.GetPooledTime() == nil {
					return fmt.Sprintf("host %s is %s: %s", i.GetInstanceId(), i.GetState(), i.GetReason())
				}
			}
			return ""
		})
		if n := len(s.instances()); n != 2 {
			t.Fatalf("%d hosts, want the same 2 all along", n)
		}
	}
}

func TestKillControldDuringSweeps(t *testing.T) {
	t.Parallel()
	s := newStage(t, "timeouts:\n  idle: 1s\n  claim_margin: 500ms\nsweeps:\n  due: 1s\n")
	for n, moment := range moments {
		run := fmt.Sprintf("30%02d", n)
		s.mustProvision(run, run, 2)
		s.release(run, true)
		time.Sleep(time.Second + moment*time.Millisecond) // expired, and being swept
		s.crash()
	}
	s.eventually(func() string {
		if live := s.instances(); len(live) > 0 {
			return fmt.Sprintf("%d hosts are still live", len(live))
		}
		processes, err := local.Processes(filepath.Join(s.dir, "hosts"))
		if err != nil || len(processes) > 0 {
			return fmt.Sprintf("machines still run: %v %v", processes, err)
		}
		runners, err := s.GitHub.Runners(s.ctx)
		if err != nil || len(runners) > 0 {
			return fmt.Sprintf("registrations are left: %v %v", runners, err)
		}
		return ""
	})
}

func TestKillAgentdDuringAJob(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	host := s.mustProvision("4001", "a", 1).GetInstances()[0].GetInstanceId()
	mark := filepath.Join(t.TempDir(), "go")
	if _, err := s.GitHub.StartRun(s.ctx, repository, "4001", workflow("until [ -e "+mark+" ]; do sleep 0.05; done\necho survived")); err != nil {
		t.Fatal(err)
	}
	s.eventually(func() string { return s.jobIs("4001", "in_progress") })
	s.busy()
	for range 3 {
		s.killAgentd(host)
	}
	s.crash() // controld as well
	s.eventually(func() string {
		if len(s.agentds(host)) == 0 {
			return "agentd has not come back"
		}
		return ""
	})
	if err := syscall.Mknod(mark, syscall.S_IFREG|0o600, 0); err != nil {
		t.Fatal(err)
	}
	run, err := s.GitHub.WaitRun(s.ctx, "4001", nil)
	if err != nil || run.Conclusion != "success" || !strings.Contains(run.Jobs[0].Log, "survived") {
		t.Fatalf("the job came out as %q (%v):\n%v", run.Conclusion, err, run.Jobs)
	}
	if got := s.release("4001", true); got.GetPooledCount() != 1 {
		t.Errorf("pooled %d, want the host that was adopted", got.GetPooledCount())
	}
}

func (s *stage) jobIs(runID, status string) string {
	run, err := s.GitHub.Run(s.ctx, runID)
	if err != nil {
		return err.Error()
	}
	if got := run.Jobs[0].Status; got != status {
		return "the job is " + got
	}
	return ""
}

// only is the one host that there is.
func (s *stage) only() *remudav1.Instance {
	s.Helper()
	list := s.instances()
	if len(list) != 1 {
		s.Fatalf("%d live hosts, want 1: %v", len(list), list)
	}
	return list[0]
}

// busy waits until the one host says that a job runs on it.
func (s *stage) busy() {
	s.Helper()
	s.eventually(func() string {
		if i := s.only(); !i.GetBusy() {
			return "the host does not say that it is busy, and is " + i.GetState().String()
		}
		return ""
	})
}

// agentds are the agentd processes of a host.
func (s *stage) agentds(host string) []local.Process {
	s.Helper()
	processes, err := local.Processes(filepath.Join(s.dir, "hosts", host))
	if err != nil {
		s.Fatal(err)
	}
	var list []local.Process
	for _, p := range processes {
		if strings.HasPrefix(p.Command, filepath.Join(bin(s.T), "agentd")+" ") {
			list = append(list, p)
		}
	}
	return list
}

// killAgentd kills a host's agentd with SIGKILL and waits for the next one.
func (s *stage) killAgentd(host string) {
	s.Helper()
	var pid int
	s.eventually(func() string {
		list := s.agentds(host)
		if len(list) == 0 {
			return "no agentd runs on " + host
		}
		pid = list[0].PID
		return ""
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		s.Fatal(err)
	}
	s.eventually(func() string {
		for _, p := range s.agentds(host) {
			if p.PID == pid {
				return "the killed agentd is still there"
			}
		}
		return ""
	})
}
