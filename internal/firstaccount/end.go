package firstaccount

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// codeEnded is the code of the reason of a machine that was ended by a call.
const codeEnded = "Client.UserInitiatedShutdown"

// hostRest is how long a machine goes on after its last line: EC2 shows a console some seconds late.
const hostRest = 45 * time.Second

var endCheck = check{
	name: "end",
	does: "ends the machine as controld does",
	assumptions: []findings.Assumption{
		{
			Name: "end-allowed", Text: "The policy of controld allows to end a machine of the fleet.",
			ReliedOn: "internal/aws/policy.go: OnMachines; internal/compute/ec2/launch.go: Terminate",
		},
		{
			Name: "end-reason", Text: "EC2 shows the end with the reason Client.UserInitiatedShutdown.",
			ReliedOn: "internal/compute/ec2/machine.go: endReason; internal/telemetry/metrics.go: the codes of machines that are gone",
		},
		{
			Name: "end-shown", Text: "It shows an ended machine as terminated within three minutes, and goes on showing it.",
			ReliedOn: "internal/compute/ec2/machine.go: state; docs/design.md: two-phase termination",
		},
	},
	run: checkEnd,
}

func checkEnd(ctx context.Context, s *session) error {
	l, err := s.theMachine(ctx)
	if err != nil {
		return err
	}
	if err := s.fleet.Terminate(ctx, []string{l.InstanceID}); err != nil {
		if aws.ClassOf(err) == aws.Denied {
			s.Decide("end-allowed", false, "%v", err)
			return nil
		}
		return err
	}
	s.Decide("end-allowed", true, "TerminateInstances succeeded")
	code, came, err := s.endCode(ctx, l.InstanceID)
	if err != nil {
		return err
	}
	s.Decide("end-reason", came && code == codeEnded, "its state reason was %q", code)
	took, gone, err := s.await(ctx, s.Times.End, "the machine to be terminated", func() (bool, error) {
		list, err := s.fleet.Describe(ctx, []string{l.InstanceID})
		return err == nil && list[0].State == lifecycle.MachineGone, err
	})
	if err != nil {
		return err
	}
	s.Decide("end-shown", gone && took <= settling, "it was terminated %s after the call: %t", findings.Seconds(took), gone)
	return nil
}
