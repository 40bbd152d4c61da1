package firstaccount

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/findings"
)

var architecturesCheck = check{
	name: "architectures",
	does: "launches a machine of a pool that has images of both architectures, and ends it",
	assumptions: []findings.Assumption{{
		Name: "both-requirements", Text: "The overrides of two launch templates, one for each architecture, may have the same requirements: those do not overlap.",
		ReliedOn: "internal/compute/ec2/order.go: request",
	}},
	run: checkArchitectures,
}

// checkArchitectures decides by whether EC2 took the launch: see sameRequirements.
func checkArchitectures(ctx context.Context, s *session) error {
	const name = "both-requirements"
	if s.otherImage.id == "" {
		s.Leave(name, "there is no image %s of Amazon", amazonLinux(s.otherImage.arch))
		return nil
	}
	l, err := s.launchFrom(ctx, poolBoth)
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case l == nil || l.call.in == nil:
		return err
	case overlap(l.call):
		s.Decide(name, false, "of a launch by %d templates EC2 says: %s", len(l.call.in.LaunchTemplateConfigs), listed(l.call.messages()))
	case err != nil:
		return err
	default:
		s.Decide(name, true, "a launch by %d templates was answered with a machine of type %s", len(l.call.in.LaunchTemplateConfigs), l.InstanceType)
	}
	return s.endLaunched(ctx, l)
}

// endLaunched ends the machine of a launch, if there is one: an answer may have both a machine and an error of another offering.
func (s *session) endLaunched(ctx context.Context, l *launch) error {
	ids := l.call.ids()
	if len(ids) == 0 {
		return nil
	}
	if err := s.fleet.Terminate(ctx, ids); err != nil {
		return fmt.Errorf("end the machine of pool %s: %w", l.order.Pool, err)
	}
	return nil
}

// overlap reports whether EC2 refused a launch for the reason that runs-on/runs-on#476 saw.
func overlap(c fleetCall) bool {
	return slices.ContainsFunc(c.messages(), func(m string) bool { return strings.Contains(m, "overlapping values") })
}
