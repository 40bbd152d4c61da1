package firstaccount

import (
	"context"
	"errors"
	"fmt"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var errorsCheck = check{
	name: "errors",
	does: "makes launches that cannot succeed: without the right to pass the role, and of a type that is too small",
	assumptions: []findings.Assumption{
		{
			Name: "errors-in-answer", Text: "What every offering of a launch is refused for is in the Errors of the answer, and no machine is launched.",
			ReliedOn: "internal/compute/ec2/shortage.go: cameShort",
		},
		{
			Name: "errors-type", Text: "An entry of the Errors names the type that EC2 chose, in its Overrides.",
			ReliedOn: "internal/compute/ec2/shortage.go: rememberShort leaves a type out of the next orders",
		},
		{
			Name: "errors-place", Text: "It names the subnet or the zone.",
			ReliedOn: "internal/compute/ec2/shortage.go: failureOf",
		},
		{
			Name: "none-fits", Text: "A launch whose requirements no type meets comes short; it is not a fault.",
			ReliedOn: "internal/compute/ec2/shortage.go; internal/aws/errors.go: OfFleetCode",
		},
		{
			Name: "none-fits-said", Text: "EC2 says so by UnfulfillableCapacity in the Errors, or refuses the call: it could not find any instance pools.",
			ReliedOn: "internal/compute/ec2/nopools.go: NoPools; internal/aws/errors.go: OfFleetCode",
		},
	},
	run: checkErrors,
}

func checkErrors(ctx context.Context, s *session) error {
	if err := s.templates(ctx); err != nil {
		return err
	}
	if err := s.refusedLaunch(ctx); err != nil {
		return err
	}
	version, err := s.fleet.Template(ctx, poolFleet)
	if err != nil {
		return err
	}
	o := s.order(poolFleet, version)
	o.InstanceTypes = []string{"t4g.nano", "t3.nano"} // they have less memory than the order asks for
	_, err = s.fleet.Launch(ctx, o)
	call := s.fleet.recorder.last()
	s.ids = append(s.ids, newIDs(s.ids, call.ids())...)
	if ctx.Err() != nil {
		return errInterrupted
	}
	var short *lifecycle.ShortageError
	s.Decide("none-fits", errors.As(err, &short), "controld says: %v%s", err, said(call))
	known := ec2.NoPools(call.err) || slices.Contains(call.codes(), "UnfulfillableCapacity")
	s.Decide("none-fits-said", known, "EC2 says: %s%s", listed(call.messages()), said(call))
	return nil
}

// refusedLaunch makes a launch whose every offering is refused: capacity cannot be made short, but a permission can.
func (s *session) refusedLaunch(ctx context.Context) error {
	call, err := s.launchWithoutRole(ctx)
	if err != nil {
		return err
	}
	if call.err != nil {
		s.Leave("errors-in-answer", "EC2 refused the whole call: %s", answerOf(call.err))
		return fmt.Errorf("there are no Errors to look at: EC2 refused the whole call with %s", answerOf(call.err))
	}
	s.Decide("errors-in-answer", len(call.out.Errors) > 0 && len(call.ids()) == 0, "%d entries%s and %d machines", len(call.out.Errors), said(call), len(call.ids()))
	types, places := 0, 0
	for _, e := range call.out.Errors {
		used := e.LaunchTemplateAndOverrides
		if used == nil || used.Overrides == nil {
			continue
		}
		if used.Overrides.InstanceType != "" {
			types++
		}
		if sdk.ToString(used.Overrides.SubnetId) != "" || sdk.ToString(used.Overrides.AvailabilityZone) != "" {
			places++
		}
	}
	if n := len(call.out.Errors); n > 0 {
		s.Decide("errors-type", types == n, "%d of %d entries name a type%s", types, n, said(call))
		s.Decide("errors-place", places == n, "%d of %d entries name a subnet or a zone", places, n)
	}
	return nil
}

// launchWithoutRole makes a launch in a session that may not pass the hosts' role.
func (s *session) launchWithoutRole(ctx context.Context) (fleetCall, error) {
	without, err := s.assume(ctx, []string{"iam:PassRole"})
	if err != nil {
		return fleetCall{}, err
	}
	version, err := without.Template(ctx, poolFleet)
	if err != nil {
		return fleetCall{}, err
	}
	_, err = without.Launch(ctx, s.order(poolFleet, version))
	call := without.recorder.last()
	s.ids = append(s.ids, newIDs(s.ids, call.ids())...)
	if call.in == nil || ctx.Err() != nil {
		return call, err
	}
	s.refused = without
	return call, nil
}
