package firstaccount

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const rehearsed = "controld/checkaws.go: config check --aws; internal/compute/ec2/rehearse.go"

var dryRunCheck = check{
	name: "dry-run",
	does: "asks EC2 with DryRun, with the rights and without them",
	assumptions: []findings.Assumption{
		{
			Name:     "dry-create-fleet",
			Text:     "CreateFleet with DryRun is answered DryRunOperation, or UnauthorizedOperation to a caller without the right.",
			ReliedOn: rehearsed,
		},
		{Name: "dry-run-instances", Text: "So is RunInstances.", ReliedOn: rehearsed},
		{Name: "dry-terminate-instances", Text: "So is TerminateInstances of a machine of the fleet.", ReliedOn: rehearsed},
	},
	run: checkDryRun,
}

// dryNames are the assumptions by the action.
var dryNames = map[string]string{
	"ec2:CreateFleet": "dry-create-fleet", "ec2:RunInstances": "dry-run-instances", "ec2:TerminateInstances": "dry-terminate-instances",
}

func checkDryRun(ctx context.Context, s *session) error {
	l, err := s.theMachine(ctx)
	if err != nil {
		return err
	}
	if _, err := s.must(ctx, s.Times.Boot, "the machine to run", func() (bool, error) {
		m, err := s.fleet.Describe(ctx, []string{l.InstanceID})
		return err == nil && m[0].State == lifecycle.MachineRunning, err
	}); err != nil {
		return err
	}
	without, err := s.assume(ctx, []string{"ec2:CreateFleet", "ec2:RunInstances", "ec2:TerminateInstances"})
	if err != nil {
		return err
	}
	orders := []lifecycle.LaunchOrder{l.order}
	may, mayNot := s.fleet.Rehearse(ctx, orders), without.Rehearse(ctx, orders)
	if ctx.Err() != nil {
		return errInterrupted
	}
	for i, r := range may {
		name := dryNames[r.Action]
		switch {
		case r.NotTried != "":
			s.Leave(name, "%s", r.NotTried)
		case mayNot[i].NotTried != "":
			s.Leave(name, "without the right: %s", mayNot[i].NotTried)
		default:
			s.Decide(name, r.Err == nil && mayNot[i].Denied(), "with the right: %s; without: %s", rehearsal(r), rehearsal(mayNot[i]))
		}
	}
	return nil
}

// rehearsal is the answer of a call with DryRun.
func rehearsal(r ec2.Rehearsal) string {
	switch {
	case r.Err == nil:
		return codeDryRun
	case aws.Code(r.Err) != "":
		return aws.Code(r.Err)
	}
	return fmt.Sprint(r.Err)
}
