package cli

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/cli/view"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// mostDecisions is how many decisions a call has at most.
const mostDecisions = 10_000

// Plan says what the next scale-down would do with the fleet, or one at a later time.
func (a *App) Plan(ctx context.Context, at string) error {
	req, nothing := &remudav1.PlanScaleDownRequest{RowLimit: mostDecisions}, "The next scale-down has no host to judge. It judges hosts of runs that are not held and not leaving; `remuda ps` says when the others end."
	if at != "" {
		when, err := view.PlanTime(at, a.Now())
		if err != nil {
			return failure.Misused("--at: %w", err)
		}
		req.DecideTime, nothing = timestamppb.New(when), "A scale-down at that time has no host to judge. It judges hosts of runs that are not held and not leaving; `remuda ps` says when the others end."
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	defer s.close()
	return a.repeat(ctx, func(ctx context.Context) error {
		resp, err := call(ctx, s, DefaultTimeout, "plan a scale-down", s.fleet.PlanScaleDown, req)
		switch {
		case err != nil:
			return failure.WithRemedy(err, failure.Conflict, "Add `scale_down: {}` to controld's configuration; docs/policies.md#scale-down has its keys.")
		case a.Output.ForPrograms():
			return output.Message(a.Stdout, a.Output, resp)
		}
		if n := resp.GetMoreDecisions(); n > 0 {
			fmt.Fprintf(a.Stderr, "%s left out.\n", plural.Of(n, "more host is", "more hosts are"))
		}
		if at != "" {
			if err := a.print(view.PoolPlans(resp), ""); err != nil {
				return err
			}
			fmt.Fprintln(a.Stdout)
		}
		return a.print(view.Decisions(resp.GetDecisions()), nothing)
	})
}
