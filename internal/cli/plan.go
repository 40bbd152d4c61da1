package cli

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/view"
	"github.com/remuda-ci/remuda/internal/plan"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Plan says what the next scale-down would do with the fleet, or what one would do with that of a snapshot, for which it makes no call.
func (a *App) Plan(ctx context.Context, path string) error {
	if path == "" {
		return a.planned(ctx)
	}
	verdicts, err := plan.Read(path, a.Stdin)
	if err != nil {
		return failure.Of("", err)
	}
	switch a.Output {
	case output.JSON:
		err = plan.JSON(a.Stdout, verdicts)
	case output.YAML:
		err = output.Value(a.Stdout, a.Output, plan.Decisions(verdicts))
	default:
		err = plan.Table(a.Stdout, verdicts)
	}
	return failure.Of("write plan", err)
}

// mostDecisions is how many decisions a call has at most.
const mostDecisions = 10_000

// planned asks controld.
func (a *App) planned(ctx context.Context) error {
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	return a.repeat(ctx, func(ctx context.Context) error {
		resp, err := call(ctx, s, DefaultTimeout, "plan the next scale-down", s.fleet.PlanScaleDown, &remudav1.PlanScaleDownRequest{RowLimit: mostDecisions})
		if err != nil {
			return err
		}
		if a.Output.ForPrograms() {
			return output.Message(a.Stdout, a.Output, resp)
		}
		if n := resp.GetMoreDecisions(); n > 0 {
			fmt.Fprintf(a.Stderr, "%d more hosts are left out.\n", n)
		}
		return a.print(view.Decisions(resp.GetDecisions()), "The next scale-down has no host to judge.")
	})
}
