package aws_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// stoppingPool has a host stopped as soon as it has waited for its idle time.
const stoppingPool = `
  default: {resource_classes: [large], idle_time: 3s, stopped: {maximum: 1}}
`

// TestAStoppedHostInAWS: EC2 stops the instance of a host whose idle time is over, and the next run has it started in place of a launch. Stopped
// again, it ends by an order.
func TestAStoppedHostInAWS(t *testing.T) {
	s := newStageWith(t, testrun.System.Dir(t), setup{pools: stoppingPool, more: quickSweeps})
	_, err := s.fleet.Refresh(s.ctx, &remudav1.RefreshRequest{})
	check(t, err)
	first := s.provision(ask("501", 1))
	host := first.GetInstances()[0].GetInstanceId()
	s.work("501", "echo first > leftover")
	s.release("501")
	s.stopped(host)

	next := s.provision(ask("502", 1))
	if next.GetReusedCount() != 1 || next.GetCreatedCount() != 0 || next.GetInstances()[0].GetInstanceId() != host || s.living() != 1 {
		t.Fatalf("the next run got %v of %d that run, want the stopped host %s alone", next, s.living(), host)
	}
	s.work("502", "test ! -e leftover")
	s.release("502")
	s.eventually("EC2 stops the instance again", func() bool { return s.instanceIs(host, types.InstanceStateNameStopped) })

	_, err = s.fleet.TerminateInstance(s.ctx, &remudav1.TerminateInstanceRequest{InstanceId: host})
	check(t, err)
	s.eventually("EC2 ends the stopped instance", func() bool { return s.instanceIs(host, types.InstanceStateNameTerminated) })
	s.launchedOnce()
	s.callsAreAllowed()
}

// stopped waits until EC2 shows an instance as stopped, the machine runs nothing, and a run could have the host started.
func (s *stage) stopped(host string) {
	s.Helper()
	s.eventually("EC2 stops the instance", func() bool { return s.instanceIs(host, types.InstanceStateNameStopped) })
	s.eventually("its agent is gone", func() bool { return s.machines.isOff(host) })
	s.eventually("controld has seen it", func() bool {
		for line := range strings.Lines(s.log.String()) {
			if strings.Contains(line, "instance="+host+" ") && strings.Contains(line, "code="+string(lifecycle.ReasonMachineStopped)) {
				return true
			}
		}
		return false
	})
}

func (s *stage) instanceIs(id string, state types.InstanceStateName) bool {
	s.Helper()
	list, err := s.account.instances(s.ctx)
	check(s.TB, err)
	for _, i := range list {
		if *i.InstanceId == id {
			return i.State.Name == state
		}
	}
	return false
}

// launchedOnce checks that controld asked EC2 for instances once.
func (s *stage) launchedOnce() {
	s.Helper()
	launches := 0
	for _, c := range s.account.controld.Calls() {
		if c.Action() == "ec2:CreateFleet" {
			launches++
		}
	}
	if launches != 1 {
		s.Errorf("controld called CreateFleet %d times, want once", launches)
	}
}

// callsAreAllowed checks that controld had permission for all that it called, by the policies for its own configuration, which has a pool that stops hosts.
func (s *stage) callsAreAllowed() {
	s.Helper()
	controld, refresh, calls := allowed(s.TB, s.config, "controld"), allowed(s.TB, s.config, "refresh"), called(s.account.controld)
	for action := range calls {
		if !controld[action] && !refresh[action] {
			s.Errorf("controld called %s, which no policy of its allows", action)
		}
	}
	for _, action := range []string{"ec2:StopInstances", "ec2:StartInstances"} {
		if !calls[action] {
			s.Errorf("controld did not call %s", action)
		}
	}
}
